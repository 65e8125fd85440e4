#include "gate/serve/token.hpp"

#include <algorithm>
#include <array>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <sys/random.h>
#include <unistd.h>

#include "gate/base/encode.hpp"
#include "gate/base/text.hpp"

namespace weir::serve {
namespace {

constexpr std::string_view k_prefix = "weir_";
constexpr std::size_t k_id_digits = 12, k_secret_digits = 48;
constexpr std::size_t k_longest_authorization = 1024;  // bytes; ours have less than 200

std::string hex(const unsigned char* bytes, std::size_t size) {
  std::string digits;
  for (std::size_t i = 0; i < size; ++i) digits += fmt::format("{:02x}", bytes[i]);
  return digits;
}

bool is_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// Does one of `token`'s scopes do for `scope`?
bool has_scope(const history::StoredToken& token, Scope scope) {
  const std::vector<std::string> words = text::split(token.scopes, ' ');
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    const auto held = parse_scope(word);
    return held && (*held == scope || *held == Scope::admin);
  });
}

}  // namespace

std::string_view to_string(Scope scope) {
  switch (scope) {
    case Scope::read:
      return "read";
    case Scope::upload:
      return "upload";
    case Scope::admin:
      return "admin";
  }
  return "";
}

std::optional<Scope> parse_scope(std::string_view word) {
  for (const Scope scope : {Scope::read, Scope::upload, Scope::admin}) {
    if (word == to_string(scope)) return scope;
  }
  return std::nullopt;
}

Result<NewToken> make_token(history::StoredToken wanted) {
  std::array<unsigned char, (k_id_digits + k_secret_digits) / 2> random{};
  if (getentropy(random.data(), random.size()) != 0) {
    return fail(Code::io, "the system has no randomness to give");
  }
  NewToken made{std::move(wanted), {}};
  made.stored.id = hex(random.data(), k_id_digits / 2);
  const std::string text = fmt::format("{}{}_{}", k_prefix, made.stored.id,
                                       hex(random.data() + k_id_digits / 2, k_secret_digits / 2));
  made.stored.hash = sha256_hex(text);
  made.text = Secret(text);
  return made;
}

std::optional<std::string> id_of_token(std::string_view text) {
  if (!text.starts_with(k_prefix)) return std::nullopt;
  text.remove_prefix(k_prefix.size());
  if (text.size() != k_id_digits + 1 + k_secret_digits || text[k_id_digits] != '_') {
    return std::nullopt;
  }
  const std::string_view id = text.substr(0, k_id_digits);
  if (!is_hex(id) || !is_hex(text.substr(k_id_digits + 1))) return std::nullopt;
  return std::string(id);
}

std::string sha256_hex(std::string_view bytes) {
  std::array<unsigned char, 32> digest{};
  unsigned int size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1) {
    return "";  // equals no hash that is kept
  }
  return hex(digest.data(), digest.size());
}

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

bool is_good(const history::StoredToken& token, double now) {
  return !token.revoked_at && (!token.expires_at || now < *token.expires_at);
}

bool allows(const history::StoredToken& token, Scope scope, std::string_view project) {
  return has_scope(token, scope) && text::glob_match(token.project, project);
}

bool allows_all(const history::StoredToken& token, Scope scope) {
  return has_scope(token, scope) && !token.project.empty() &&
         token.project.find_first_not_of('*') == std::string::npos;
}

std::optional<Credential> credential_of(const std::string* authorization) {
  if (authorization == nullptr || authorization->size() > k_longest_authorization) {
    return std::nullopt;
  }
  const std::string_view all = text::trim(*authorization);
  const std::size_t space = std::min(all.find(' '), all.size());
  const std::string kind = text::lower(all.substr(0, space));
  const std::string_view rest = text::trim(all.substr(space));
  if (kind == "bearer") return Credential{std::string(rest), false};
  if (kind != "basic") return std::nullopt;
  const auto decoded = base64_decoded(rest);
  if (!decoded) return std::nullopt;
  const std::size_t colon = decoded->find(':');
  if (colon == std::string::npos) return std::nullopt;
  return Credential{decoded->substr(colon + 1), true};
}

}  // namespace weir::serve
