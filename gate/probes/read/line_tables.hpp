// Finds source files whose code may run unseen, by a program's line tables (.debug_line of DWARF 5,
// in 64-bit little-endian ELF). Bytes are hostile. Pure.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace weir::probes {

// Returns the files that may run without a line of their own: files without lines, and files that
// are compiled together with another one, whose functions may be inlined there. Paths are
// normalized. Nothing where the tables cannot be read (stripped, compressed, older DWARF).
[[nodiscard]] std::optional<std::set<std::string>> find_maybe_inlined(std::string_view elf);

}  // namespace weir::probes
