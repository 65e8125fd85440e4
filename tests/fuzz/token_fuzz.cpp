// Fuzz target: any bytes as an issuer's keys and as a job's token, up to claims that fit; bytes
// that nobody signed are never let in.
#include <cstdlib>

#include "gate/serve/issuer.hpp"

namespace {

// RFC 7515's key (A.2), which signed nothing that comes here.
constexpr const char* k_keys =
    R"({"keys":[{"kty":"RSA","kid":"k","e":"AQAB","n":"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ"}]})";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, unsigned long size) {
  using namespace weir;
  static const serve::IssuerKeys k_key = *serve::parse_issuer_keys(k_keys);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)serve::parse_issuer_keys(text);
  if (const auto kid = serve::parse_key_id(text)) {
    if (serve::verify_claims(text, *k_key.at("k"))) std::abort();
  }
  serve::IssuerOptions options;
  options.rules = {{"p", "o/n", "refs/*"}};
  const auto claims = parse_json(text, {.bytes = 8 << 10, .depth = 8, .values = 512});
  if (claims) (void)serve::find_grant(*claims, options, 1e9);
  return 0;
}
