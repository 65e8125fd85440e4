// What a macOS program's file says of itself: whether dyld would put a probe into it, and which
// libraries it names. Bytes are hostile, as elf.hpp's; pure.
#pragma once

#include <string>
#include <vector>

#include "gate/base/result.hpp"

namespace weir::probes {

struct MachO {
  bool is_program = false;  // else a library or a bundle
  bool dynamic = false;     // asks for dyld
  // Names as written, in order: "/System/Library/Frameworks/Metal.framework/Versions/A/Metal".
  std::vector<std::string> libraries;
  bool restricted = false;        // a __RESTRICT segment, or signed as restricted
  bool hardened = false;          // signed with the hardened runtime
  bool allows_variables = false;  // entitled to DYLD_ variables ...
  bool allows_libraries = false;  // ... and to libraries that others signed

  // No DYLD_INSERT_LIBRARIES: dyld passes the variable by, or the library.
  [[nodiscard]] bool closed() const {
    return restricted || (hardened && !(allows_variables && allows_libraries));
  }
  // By the beginning of a library's file name.
  [[nodiscard]] bool needs(std::string_view prefix) const;
};

}  // namespace weir::probes
