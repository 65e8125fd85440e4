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

}  // namespace weir::sys
