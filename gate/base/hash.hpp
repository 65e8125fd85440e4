// Content hashes (XXH3, 128 bits): names for things that are the same, not a defence.
#pragma once

#include <string>
#include <string_view>

namespace weir {

// 32 lower-case hexadecimal digits.
[[nodiscard]] std::string hash_hex(std::string_view bytes);
// The first `digits` (1 to 32) of them.
[[nodiscard]] std::string short_hash(std::string_view bytes, std::size_t digits = 12);

}  // namespace weir
