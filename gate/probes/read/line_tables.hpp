// The source files of a program's line tables (.debug_line of DWARF 5, in 64-bit little-endian
// ELF): of which of them code may have run that no line tells. Bytes are hostile. Pure.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace weir::probes {

// Compiled together with another file (one includes it, all of a program at link time), so that its
// functions may be inlined into that one's and leave no line; or without a line of its own. Normal
// paths. Nothing where tables cannot be read: stripped, compressed, of an older DWARF, elsewhere.
[[nodiscard]] std::optional<std::set<std::string>> maybe_inlined(std::string_view elf);

}  // namespace weir::probes
