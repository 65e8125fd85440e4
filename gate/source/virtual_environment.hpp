// Virtual environments of Python in the user's checkout, which git does not hold. Both sides of a
// pair may use one unless a module in it is the candidate's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gate/sys/files.hpp"

namespace weir::source {

// Returns the nearest folder at or above `path` (absolute) that is a virtual environment; nothing
// if there is none.
[[nodiscard]] std::optional<std::string> environment_around(const sys::Files& files,
                                                            const std::string& path);

// Returns the first file by which `environment` may lead back into the checkout around it: of a
// package installed with -e or from there, or a link. Nothing if there is none. `roots` are all
// names of the checkout's top. A file that cannot be read counts.
[[nodiscard]] std::optional<std::string> find_way_back(const sys::Files& files,
                                                       const std::string& environment,
                                                       const std::vector<std::string>& roots);

// Returns the files and folders of `environment` that are installed copies of packages or modules
// of which `changed`, paths from the checkout's top, edits code. A folder without __init__.py is
// none: several packages may share it.
[[nodiscard]] std::vector<std::string> find_copies(const sys::Files& files,
                                                   const std::string& environment,
                                                   const std::vector<std::string>& changed);

// Returns those of find_copies() that have an edited file otherwise than the checkout at `root`:
// they were installed before the edit.
[[nodiscard]] std::vector<std::string> find_stale_copies(const sys::Files& files,
                                                         const std::string& environment,
                                                         const std::string& root,
                                                         const std::vector<std::string>& changed);

}  // namespace weir::source
