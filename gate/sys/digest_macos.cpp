// SHA-256 with CommonCrypto.
#include <array>

#include <CommonCrypto/CommonDigest.h>

#include "gate/base/encode.hpp"
#include "gate/sys/digest.hpp"

namespace weir::sys {

std::string sha256_hex(std::string_view bytes) {
  std::array<unsigned char, CC_SHA256_DIGEST_LENGTH> digest{};
  CC_SHA256(bytes.data(), static_cast<CC_LONG>(bytes.size()), digest.data());
  return hex(digest.data(), digest.size());
}

// Returns the SHA-256 of the pieces that `next` returns up to an empty one, in hexadecimal.
Result<std::string> sha256_hex_of_pieces(const std::function<Result<std::string>()>& next) {
  CC_SHA256_CTX context;
  CC_SHA256_Init(&context);
  while (true) {
    WEIR_TRY(const std::string piece, next());
    if (piece.empty()) break;
    CC_SHA256_Update(&context, piece.data(), static_cast<CC_LONG>(piece.size()));
  }
  std::array<unsigned char, CC_SHA256_DIGEST_LENGTH> digest{};
  CC_SHA256_Final(digest.data(), &context);
  return hex(digest.data(), digest.size());
}

}  // namespace weir::sys
