// Files that run.
#pragma once

#include <string>
#include <string_view>

#include "gate/sys/files.hpp"

namespace weir::sys {

// Returns true for a file of ELF or Mach-O, or a script that names its interpreter.
[[nodiscard]] bool is_program(const Files& files, const std::string& path);

// Returns true for the ending of source, scripts, libraries and kernels: "py". Pure.
[[nodiscard]] bool is_code_suffix(std::string_view suffix);

// Returns true for a file that an interpreter or a GPU runs, by its ending, or that an interpreter
// imports from: "x.py", "x.spv", "x.zip". Pure.
[[nodiscard]] bool is_module(std::string_view path);

}  // namespace weir::sys
