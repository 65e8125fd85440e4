// SHA-256 with OpenSSL.
#include <array>

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

}  // namespace weir::sys
