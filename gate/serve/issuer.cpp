// Checks tokens that GitHub Actions signs for its jobs (OpenID Connect).
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
constexpr int k_min_bits = 2048, k_max_bits = 4096;
constexpr double k_leeway = 60;  // seconds, for clocks that differ
// In these events the code that runs is that of `ref`. In others (pull_request_target,
// issue_comment, workflow_run) a stranger's code may run although ref is the default branch.
constexpr std::array<std::string_view, 5> k_events{"push", "schedule", "workflow_dispatch",
                                                   "merge_group", "pull_request"};
constexpr std::string_view k_pulls = "refs/pull/";

// Decodes base64url without padding (RFC 4648).
std::optional<std::string> decode_base64url(std::string_view text) {
  std::string base64(text);
  for (char& c : base64) {
    if (c == '+' || c == '/' || c == '=' || c == '\n' || c == '\r') return std::nullopt;
    if (c == '-') c = '+';
    if (c == '_') c = '/';
  }
  base64.append((4 - base64.size() % 4) % 4, '=');
  return decode_base64(base64);
}

Result<Json> decode_json(std::string_view text) {
  const auto bytes = decode_base64url(text);
  if (!bytes) return fail(Code::data, "expected base64url in each part of the token");
  return parse_json(*bytes, k_token_limits);
}

// Encodes a value in DER (X.690) with its tag and length.
std::string encode_der(char tag, const std::string& value) {
  std::string length(1, static_cast<char>(value.size()));
  if (value.size() > 127) {
    length = {static_cast<char>(0x82), static_cast<char>(value.size() >> 8U),
              static_cast<char>(value.size() & 0xFFU)};
  }
  return tag + length + value;
}
// Encodes an unsigned number in DER.
std::string encode_der_number(std::string bytes) {
  bytes.erase(0, std::min(bytes.find_first_not_of('\0'), bytes.size()));
  const bool looks_negative = bytes.empty() || (static_cast<unsigned char>(bytes[0]) & 0x80U) != 0;
  return encode_der(0x02, (looks_negative ? std::string(1, '\0') : std::string()) + bytes);
}

// Makes a key from modulus and exponent, via SubjectPublicKeyInfo (RFC 5280), which every OpenSSL
// reads.
std::shared_ptr<evp_pkey_st> make_rsa_key(const std::string& modulus, const std::string& exponent) {
  static const std::string k_rsa_encryption(
      "\x30\x0d\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01\x05\0", 15);
  const std::string key =
      encode_der(0x30, encode_der_number(modulus) + encode_der_number(exponent));
  const std::string info = encode_der(0x30, k_rsa_encryption + encode_der(0x03, '\0' + key));
  const auto* at = reinterpret_cast<const unsigned char*>(info.data());
  return {d2i_PUBKEY(nullptr, &at, static_cast<long>(info.size())), EVP_PKEY_free};
}

}  // namespace

// Reads the RSA keys for RS256 signatures of a JSON Web Key Set, by key id (kid). Skips keys of
// other kinds and keys that are too short; fails if none is left.
Result<IssuerKeys> parse_issuer_keys(std::string_view text) {
  WEIR_TRY(const Json json, parse_json(text, k_set_limits));
  JsonReader reader(json, "keys");
  const Json& key_entries = reader.array("keys");
  if (auto problem = reader.problem()) return tl::unexpected(*problem);
  IssuerKeys keys;
  for (const Json& entry : key_entries) {
    JsonReader key(entry, "key");
    const std::string key_type = key.string("kty"), key_id = key.string("kid");
    const std::string algorithm = key.optional_string("alg").value_or("RS256");
    const std::string use = key.optional_string("use").value_or("sig");
    const auto modulus = decode_base64url(key.optional_string("n").value_or(""));
    const auto exponent = decode_base64url(key.optional_string("e").value_or(""));
    if (key.problem() || key_type != "RSA" || algorithm != "RS256" || use != "sig" || !modulus ||
        !exponent || key_id.empty() || key_id.size() > k_longest_kid ||
        modulus->size() > k_max_bits / 8 + 1 || exponent->empty() || exponent->size() > 4) {
      continue;  // a key of another kind
    }
    auto public_key = make_rsa_key(*modulus, *exponent);
    if (!public_key || EVP_PKEY_bits(public_key.get()) < k_min_bits) continue;
    keys.emplace(key_id, std::move(public_key));
  }
  if (keys.empty()) return fail(Code::data, "no key for RS256 in the set");
  return keys;
}

bool is_signed_token(std::string_view text) { return std::ranges::count(text, '.') == 2; }

// Returns the key id (kid) from the header of a signed token (JWT). Fails if the token is malformed
// or not for RS256.
Result<std::string> parse_key_id(std::string_view token) {
  if (token.size() > k_longest_token || !is_signed_token(token)) {
    return fail(Code::data, "expected a token of three parts, at most {} bytes", k_longest_token);
  }
  WEIR_TRY(const Json header, decode_json(token.substr(0, token.find('.'))));
  JsonReader reader(header, "header");
  const std::string algorithm = reader.string("alg"), key_id = reader.string("kid");
  if (auto problem = reader.problem()) return tl::unexpected(*problem);
  // Don't trust the token's alg: it could be "none", or a secret made from the public key.
  if (algorithm != "RS256") return fail(Code::data, "its alg is not RS256");
  if (header.contains("crit")) return fail(Code::data, "its header asks for what weir lacks");
  if (key_id.empty() || key_id.size() > k_longest_kid)
    return fail(Code::data, "expected a kid of 1 to {} bytes", k_longest_kid);
  return key_id;
}

// Verifies the signature of a token (HEADER.CLAIMS.SIGNATURE) with the key and returns its claims.
// Fails if the signature is wrong.
Result<Json> verify_claims(std::string_view token, evp_pkey_st& key) {
  const std::size_t signature_dot = token.rfind('.');
  const auto signature = decode_base64url(token.substr(signature_dot + 1));
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        EVP_MD_CTX_free);
  const auto bytes = [](const auto& text) {
    return reinterpret_cast<const unsigned char*>(text.data());
  };
  if (!signature || !context ||
      EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr, &key) != 1 ||
      EVP_DigestVerify(context.get(), bytes(*signature), signature->size(), bytes(token),
                       signature_dot) != 1) {
    return fail(Code::data, "its signature does not hold");
  }
  const std::size_t claims_dot = token.find('.');
  return decode_json(token.substr(claims_dot + 1, signature_dot - claims_dot - 1));
}

// Checks the claims of a verified token (issuer, audience, times in Unix seconds, event). Returns
// the first rule for their repository and ref, with ref and commit. Fails if none fits.
Result<Grant> find_grant(const Json& claims, const IssuerOptions& options, double now) {
  JsonReader reader(claims, "token");
  const std::string issuer = reader.string("iss"), audience = reader.string("aud");
  const double expires = reader.number("exp"), issued = reader.number("iat");
  const double begins = reader.optional_number("nbf").value_or(issued);
  const std::string repository = text::lower(reader.string("repository"));
  const std::string repository_number = reader.string("repository_id"),
                    event = reader.string("event_name");
  Grant grant{{}, reader.string("ref"), text::lower(reader.string("sha"))};
  if (auto problem = reader.problem()) return tl::unexpected(*problem);
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
  const auto rule = std::ranges::find_if(options.rules, [&](const IssuerRule& candidate) {
    return (text::lower(candidate.repository) == repository ||
            candidate.repository == repository_number) &&
           text::glob_match(candidate.ref, grant.ref);
  });
  if (rule == options.rules.end()) return fail(Code::data, "no rule for this repository and ref");
  grant.rule = *rule;
  return grant;
}

// Returns the grant of a token that the keys in memory verify; never waits for a fetch. Without a
// grant, `wants_keys` is set if its key may be among newer ones.
Issuer::Found Issuer::find(std::string_view token, double now, double steady) {
  const auto kid = parse_key_id(token);
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
  const auto claims = verify_claims(token, *key->second);
  if (!claims) return {};
  auto grant = find_grant(*claims, options_, now);
  if (!grant) return {};
  return {*std::move(grant)};
}

// Fetches the issuer's keys, unless that was done a short time ago. `steady` is the monotonic time
// in seconds.
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
