// Content hashes (XXH3, 128 bits): names for things that are the same, not a defence.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weir {

// 32 lower-case hexadecimal digits.
[[nodiscard]] std::string hash_hex(std::string_view bytes);
// The first `digits` (1 to 32) of them.
[[nodiscard]] std::string short_hash(std::string_view bytes, std::size_t digits = 12);

// 64 bits, for tables; `seed` is what came before, where several texts are hashed.
[[nodiscard]] std::uint64_t hash_number(std::string_view bytes, std::uint64_t seed = 0);

}  // namespace weir
