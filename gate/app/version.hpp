#pragma once

#include <string_view>

namespace weir::app {

inline constexpr std::string_view k_version = WEIR_VERSION;

}  // namespace weir::app
