// SHA-256, by the system's own library: for what is a defence. Mere names are base/hash.hpp's.
#pragma once

#include <string>
#include <string_view>

namespace weir::sys {

// 64 lower-case hexadecimal digits; "" where the library fails, which equals no hash.
[[nodiscard]] std::string sha256_hex(std::string_view bytes);

}  // namespace weir::sys
