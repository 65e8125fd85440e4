// What the operating system says about the call that just failed.
#pragma once

#include <cerrno>
#include <string>
#include <system_error>

namespace weir::sys {

// Thread-safe, unlike strerror.
inline std::string errno_words() { return std::generic_category().message(errno); }

}  // namespace weir::sys
