// Which engine this is: told to weir, so that a comparison can say that it changed.
#pragma once

namespace weir::engine {

inline constexpr const char* k_version = "1";

}  // namespace weir::engine
