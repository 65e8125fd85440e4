// Files that are mostly nothing: a head, and a hole behind it that reads as zeros and takes no
// room.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "gate/base/result.hpp"

namespace weir::sys {

// Written to a temporary name, synced, renamed. `bytes`: of the whole file, at least those of
// `head`. The bytes that it takes of the disk, which are more than the head's where the file system
// keeps no holes. Code::io.
[[nodiscard]] Result<std::uint64_t> write_with_hole(const std::string& path, std::string_view head,
                                                    std::uint64_t bytes);

}  // namespace weir::sys
