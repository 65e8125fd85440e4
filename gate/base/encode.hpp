// Bytes as text for other systems: base64 (RFC 4648, with padding), percent-encoding (RFC 3986) and
// hexadecimal digits. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace weir {

[[nodiscard]] std::string base64(std::string_view bytes);
// Line ends in it are skipped (GitHub sends them); nothing when it is not base64.
[[nodiscard]] std::optional<std::string> decode_base64(std::string_view text);
// All but letters, digits and "-._~" as %XX: fit for one segment of a path or a query's value.
[[nodiscard]] std::string percent_encode(std::string_view bytes);
// Two lower-case digits a byte.
[[nodiscard]] std::string hex(const unsigned char* bytes, std::size_t size);

}  // namespace weir
