#include "gate/serve/issuer.hpp"

#include <algorithm>
#include <array>

#include <openssl/evp.h>
#include <openssl/x509.h>

#include "gate/base/encode.hpp"
#include "gate/base/text.hpp"

namespace weir::serve {
namespace {

constexpr std::size_t k_longest_token = 8 << 10, k_longest_kid = 200;
constexpr JsonLimits k_set_limits{.bytes = 256 << 10, .depth = 8, .values = 4096};
constexpr JsonLimits k_token_limits{.bytes = k_longest_token, .depth = 8, .values = 512};
constexpr int k_least_bits = 2048, k_most_bits = 4096;
constexpr double k_leeway = 60;  // seconds, for clocks that differ
// Whose code runs in these is what `ref` says. In others (pull_request_target, issue_comment,
// workflow_run) somebody's code may run although the ref is the default branch.
constexpr std::array<std::string_view, 5> k_events{"push", "schedule", "workflow_dispatch",
                                                   "merge_group", "pull_request"};
constexpr std::string_view k_pulls = "refs/pull/";

// Base64 as RFC 4648 has it for URLs, without padding.
std::optional<std::string> decoded(std::string_view text) {
  std::string plain(text);
  for (char& c : plain) {
    if (c == '+' || c == '/' || c == '=' || c == '\n' || c == '\r') return std::nullopt;
    if (c == '-') c = '+';
    if (c == '_') c = '/';
  }
  plain.append((4 - plain.size() % 4) % 4, '=');
  return base64_decoded(plain);
}

Result<Json> decoded_json(std::string_view text) {
  const auto bytes = decoded(text);
  if (!bytes) return fail(Code::data, "expected base64url in each part of the token");
  return parse_json(*bytes, k_token_limits);
}

// Of DER (X.690): a value with its tag and length; of an unsigned number.
std::string der(char tag, const std::string& value) {
  std::string length(1, static_cast<char>(value.size()));
  if (value.size() > 127) {
    length = {static_cast<char>(0x82), static_cast<char>(value.size() >> 8U),
              static_cast<char>(value.size() & 0xFFU)};
  }
  return tag + length + value;
}
std::string der_number(std::string bytes) {
  bytes.erase(0, std::min(bytes.find_first_not_of('\0'), bytes.size()));
  const bool looks_negative = bytes.empty() || (static_cast<unsigned char>(bytes[0]) & 0x80U) != 0;
  return der(0x02, (looks_negative ? std::string(1, '\0') : std::string()) + bytes);
}

// As SubjectPublicKeyInfo (RFC 5280), which every OpenSSL reads.
std::shared_ptr<evp_pkey_st> rsa_key(const std::string& modulus, const std::string& exponent) {
  static const std::string k_rsa_encryption(
      "\x30\x0d\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01\x05\0", 15);
  const std::string key = der(0x30, der_number(modulus) + der_number(exponent));
  const std::string info = der(0x30, k_rsa_encryption + der(0x03, '\0' + key));
  const auto* at = reinterpret_cast<const unsigned char*>(info.data());
  return {d2i_PUBKEY(nullptr, &at, static_cast<long>(info.size())), EVP_PKEY_free};
}

}  // namespace

Result<IssuerKeys> parse_issuer_keys(std::string_view text) {
  WEIR_TRY(const Json json, parse_json(text, k_set_limits));
  JsonReader read(json, "keys");
  const Json& list = read.array("keys");
  if (auto problem = read.problem()) return tl::unexpected(*problem);
  IssuerKeys keys;
  for (const Json& one : list) {
    JsonReader key(one, "key");
    const std::string kty = key.string("kty"), kid = key.string("kid");
    const std::string alg = key.optional_string("alg").value_or("RS256");
    const std::string use = key.optional_string("use").value_or("sig");
    const auto modulus = decoded(key.optional_string("n").value_or(""));
    const auto exponent = decoded(key.optional_string("e").value_or(""));
    if (key.problem() || kty != "RSA" || alg != "RS256" || use != "sig" || !modulus || !exponent ||
        kid.empty() || kid.size() > k_longest_kid || modulus->size() > k_most_bits / 8 + 1 ||
        exponent->empty() || exponent->size() > 4) {
      continue;  // of another kind
    }
    auto made = rsa_key(*modulus, *exponent);
    if (!made || EVP_PKEY_bits(made.get()) < k_least_bits) continue;
    keys.emplace(kid, std::move(made));
  }
  if (keys.empty()) return fail(Code::data, "no key for RS256 in the set");
  return keys;
}

bool is_signed_token(std::string_view text) { return std::ranges::count(text, '.') == 2; }

Result<std::string> key_of(std::string_view token) {
  if (token.size() > k_longest_token || !is_signed_token(token)) {
    return fail(Code::data, "expected a token of three parts, at most {} bytes", k_longest_token);
  }
  WEIR_TRY(const Json header, decoded_json(token.substr(0, token.find('.'))));
  JsonReader read(header, "header");
  const std::string alg = read.string("alg"), kid = read.string("kid");
  if (auto problem = read.problem()) return tl::unexpected(*problem);
  // Never what the token says it is checked by: "none", or a secret made of the public key.
  if (alg != "RS256") return fail(Code::data, "its alg is not RS256");
  if (header.contains("crit")) return fail(Code::data, "its header asks for what weir lacks");
  if (kid.empty() || kid.size() > k_longest_kid)
    return fail(Code::data, "expected a kid of 1 to {} bytes", k_longest_kid);
  return kid;
}

Result<Json> checked_claims(std::string_view token, evp_pkey_st& key) {
  const std::size_t end = token.rfind('.');
  const auto signature = decoded(token.substr(end + 1));
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        EVP_MD_CTX_free);
  const auto bytes = [](const auto& text) {
    return reinterpret_cast<const unsigned char*>(text.data());
  };
  if (!signature || !context ||
      EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr, &key) != 1 ||
      EVP_DigestVerify(context.get(), bytes(*signature), signature->size(), bytes(token), end) !=
          1) {
    return fail(Code::data, "its signature does not hold");
  }
  const std::size_t dot = token.find('.');
  return decoded_json(token.substr(dot + 1, end - dot - 1));
}

Result<Grant> grant_of(const Json& claims, const IssuerOptions& options, double now) {
  JsonReader read(claims, "token");
  const std::string issuer = read.string("iss"), audience = read.string("aud");
  const double expires = read.number("exp"), issued = read.number("iat");
  const double begins = read.optional_number("nbf").value_or(issued);
  const std::string repository = text::lower(read.string("repository"));
  const std::string number = read.string("repository_id"), event = read.string("event_name");
  Grant grant{{}, read.string("ref"), text::lower(read.string("sha"))};
  if (auto problem = read.problem()) return tl::unexpected(*problem);
  if (issuer != options.issuer) return fail(Code::data, "another issuer's token");
  if (audience != options.audience) return fail(Code::data, "the token is for another audience");
  if (now > expires + k_leeway) return fail(Code::data, "the token has expired");
  if (now < begins - k_leeway || now < issued - k_leeway) {
    return fail(Code::data, "the token is not valid yet");
  }
  if (std::ranges::find(k_events, event) == k_events.end() ||
      (event == "pull_request") != grant.ref.starts_with(k_pulls)) {
    return fail(Code::data, "no uploads from this event");
  }
  const auto rule = std::ranges::find_if(options.rules, [&](const IssuerRule& one) {
    return (text::lower(one.repository) == repository || one.repository == number) &&
           text::glob_match(one.ref, grant.ref);
  });
  if (rule == options.rules.end()) return fail(Code::data, "no rule for this repository and ref");
  grant.rule = *rule;
  return grant;
}

Issuer::Found Issuer::find(std::string_view token, double now, double steady) {
  const auto kid = key_of(token);
  if (!kid) return {};
  std::shared_ptr<const IssuerKeys> keys;
  bool wants_keys = false;
  {
    const std::lock_guard lock(mutex_);
    keys = keys_;
    wants_keys = keys->empty() || is_stale(steady);
  }
  const auto key = keys->find(*kid);
  if (key == keys->end()) return {.grant = {}, .wants_keys = wants_keys};
  const auto claims = checked_claims(token, *key->second);
  if (!claims) return {};
  auto grant = grant_of(*claims, options_, now);
  if (!grant) return {};
  return {*std::move(grant)};
}

Result<void> Issuer::renew(double steady) {
  {
    const std::lock_guard lock(mutex_);
    if (!is_stale(steady)) return {};
    fetched_ = steady;
  }
  WEIR_TRY(const std::string text, options_.fetch());
  WEIR_TRY(IssuerKeys keys, parse_issuer_keys(text));
  const std::lock_guard lock(mutex_);
  keys_ = std::make_shared<const IssuerKeys>(std::move(keys));
  return {};
}

}  // namespace weir::serve
