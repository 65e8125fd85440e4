// Which system this weir is built for; what it is for outside sys is words and file names.
#pragma once

namespace weir::sys {

#ifdef __APPLE__
inline constexpr bool k_on_macos = true;
#else
inline constexpr bool k_on_macos = false;
#endif

}  // namespace weir::sys
