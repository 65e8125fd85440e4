// Built, not run.
#include <cstdint>

#include <mach-o/dyld.h>

#include "gate/sys/paths.hpp"
#include "gate/sys/process.hpp"

namespace weir::sys {

std::string own_program() {
  std::uint32_t size = 0;
  _NSGetExecutablePath(nullptr, &size);  // says how much it takes
  std::string path(size, '\0');
  if (size == 0 || _NSGetExecutablePath(path.data(), &size) != 0) return "";
  // As it was called, links and dots included.
  return real_path(path.c_str()).value_or("");
}

}  // namespace weir::sys
