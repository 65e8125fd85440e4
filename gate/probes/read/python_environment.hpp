// Finds the libraries of a Python virtual environment: its packages open them at run time, so that
// no program names them.
#pragma once

#include <string>
#include <vector>

#include "gate/sys/files.hpp"

namespace weir::probes {

// Returns the folder of the virtual environment in which `program` (its Python, or a script that
// pip wrote) lies: the one above "bin", with a pyvenv.cfg. "" for other programs.
[[nodiscard]] std::string python_environment_of(const std::string& program,
                                                const sys::Files& files);

// Returns the paths of shared libraries ("x.so", "x.so.12") in the environment's packages, sorted;
// at most 4096, at most eight folders deep.
[[nodiscard]] std::vector<std::string> libraries_of_environment(const std::string& environment,
                                                                const sys::Files& files);

}  // namespace weir::probes
