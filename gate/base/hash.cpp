// XXH3 hashes.
#include "gate/base/hash.hpp"

#include <fmt/format.h>
#include <xxhash.h>

namespace weir {

std::string hash_hex(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string short_hash(std::string_view bytes, std::size_t digits) {
  return hash_hex(bytes).substr(0, digits);
}

std::uint64_t hash_number(std::string_view bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

}  // namespace weir
