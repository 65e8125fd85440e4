// Files that a command line names, whatever they are for.
#pragma once

#include <string>
#include <vector>

#include "gate/config/matrix.hpp"
#include "gate/sys/files.hpp"

namespace weir::run {

// Returns the files that words of `line` behind the program name, or parts of such words
// ("--data=w.bin", "cd data && cat *.bin"), counted from `folder` and from the folders that the
// command names; and the files in these. Folders that a variable names, `folder` itself and what
// lies above it are left out, and so is what many thousand files lie beside.
[[nodiscard]] std::vector<std::string> find_named_files(const sys::Files& files,
                                                        const config::CommandLine& line,
                                                        const std::string& folder);

// Returns the libraries that lie beside a program, or in the folder "lib" beside its own.
[[nodiscard]] std::vector<std::string> find_libraries(const sys::Files& files,
                                                      const std::string& program);

}  // namespace weir::run
