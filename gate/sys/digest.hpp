// SHA-256, by the system's own library: for what is a defence. Mere names are base/hash.hpp's.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "gate/base/result.hpp"

namespace weir::sys {

// 64 lower-case hexadecimal digits; "" where the library fails, which equals no hash.
[[nodiscard]] std::string sha256_hex(std::string_view bytes);
// The same of the pieces that `next` returns, up to an empty one. Fails where `next` does.
[[nodiscard]] Result<std::string> sha256_hex_of_pieces(
    const std::function<Result<std::string>()>& next);

}  // namespace weir::sys
