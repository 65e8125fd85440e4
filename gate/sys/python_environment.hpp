// The folders in which a virtual environment of Python keeps its packages.
#pragma once

#include <string>
#include <vector>

#include "gate/sys/files.hpp"

namespace weir::sys {

// Returns true for the folder of a virtual environment: it has a pyvenv.cfg.
[[nodiscard]] bool is_python_environment(const Files& files, const std::string& folder);

// Returns the folders of packages below lib and lib64, whether they exist or not. On many systems
// lib64 is a link to lib: then each has two names.
[[nodiscard]] std::vector<std::string> package_folders(const Files& files,
                                                       const std::string& environment);

}  // namespace weir::sys
