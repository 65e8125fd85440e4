// SHA-256 with OpenSSL.
#include <array>
#include <memory>

#include <openssl/evp.h>

#include "gate/base/encode.hpp"
#include "gate/sys/digest.hpp"

namespace weir::sys {

std::string sha256_hex(std::string_view bytes) {
  std::array<unsigned char, 32> digest{};
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr, EVP_sha256(), nullptr) != 1) {
    return "";
  }
  return hex(digest.data(), digest.size());
}

// Returns the SHA-256 of the pieces that `next` returns up to an empty one, in hexadecimal; "" if
// the library fails.
Result<std::string> sha256_hex_of_pieces(const std::function<Result<std::string>()>& next) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        EVP_MD_CTX_free);
  if (context == nullptr || EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) != 1) return "";
  while (true) {
    WEIR_TRY(const std::string piece, next());
    if (piece.empty()) break;
    if (EVP_DigestUpdate(context.get(), piece.data(), piece.size()) != 1) return "";
  }
  std::array<unsigned char, 32> digest{};
  if (EVP_DigestFinal_ex(context.get(), digest.data(), nullptr) != 1) return "";
  return hex(digest.data(), digest.size());
}

}  // namespace weir::sys
