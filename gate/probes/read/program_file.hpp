// Reads a program file without running it: its loader, the libraries that it needs and where it
// looks for them, and the functions that it imports and exports.
//
// Only 64-bit little-endian ELF is read in full, and the load commands of Mach-O; other files give
// their kind alone. Bytes are hostile: every table has a limit, and every offset is checked. Pure:
// bytes come in through a function.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gate/base/result.hpp"

namespace weir::probes {

// A macOS program: the libraries that it names, and if dyld would load a probe into it.
struct MachO {
  bool is_program = false;  // else a library or a bundle
  bool dynamic = false;     // asks for dyld
  // Names as written, in order: "/System/Library/Frameworks/Metal.framework/Versions/A/Metal".
  std::vector<std::string> libraries;
  bool restricted = false;        // a __RESTRICT segment, or signed as restricted
  bool hardened = false;          // signed with the hardened runtime
  bool allows_variables = false;  // entitled to DYLD_ variables ...
  bool allows_libraries = false;  // ... and to libraries that others signed

  // True if dyld would ignore DYLD_INSERT_LIBRARIES, or refuse the library.
  [[nodiscard]] bool closed() const {
    return restricted || (hardened && !(allows_variables && allows_libraries));
  }
  // True if the file name of a library starts with `prefix`.
  [[nodiscard]] bool needs(std::string_view prefix) const;
};

// Returns `size` bytes from `offset`; fewer where the file ends before (none behind its end). Must
// not allocate more than the file holds.
using ReadBytes = std::function<Result<std::string>(std::uint64_t offset, std::uint64_t size)>;
[[nodiscard]] ReadBytes bytes_of(std::string_view text);  // refers to `text`

enum class FileKind { elf, mach_o, script, windows, other };

struct ProgramFile {
  FileKind kind = FileKind::other;
  std::string script;           // a script's line behind "#!", printable
  std::optional<MachO> mach_o;  // if it is a consistent 64-bit file

  // The rest is ELF's. `bits` and `machine` are always there, the others with 64 bits alone.
  int bits = 64;
  std::uint16_t machine = 0;          // e_machine: 62 is x86-64, 183 is AArch64
  bool is_program = false;            // else a library
  std::optional<std::string> loader;  // "/lib64/ld-linux-x86-64.so.2"
  bool symbolic = false;              // its own functions cannot be interposed (-Bsymbolic)
  std::string soname;
  std::vector<std::string> needed;   // in order
  std::vector<std::string> rpath;    // entries as written ("$ORIGIN/../lib"); old tag, DT_RPATH
  std::vector<std::string> runpath;  // DT_RUNPATH
  // Functions with one of the prefixes, sorted, each once.
  std::vector<std::string> imported, exported;
  // The same of all its functions in .symtab, also internal ones; empty in a stripped file.
  std::vector<std::string> inner;

  // True if it loads no library: then no probe can be loaded either.
  [[nodiscard]] bool is_static() const { return is_program && !loader && needed.empty(); }
  [[nodiscard]] bool imports(std::string_view name) const {
    return std::ranges::binary_search(imported, name);
  }
  [[nodiscard]] bool exports(std::string_view name) const {
    return std::ranges::binary_search(exported, name);
  }
};

// Keeps names with one of `prefixes`, or all if there are none. Fails with Code::data where the
// file contradicts itself, is cut short, or has a table larger than any real one.
[[nodiscard]] Result<ProgramFile> read_program_file(
    const ReadBytes& read, std::span<const std::string_view> prefixes = {});

// "x86-64", "AArch64", "machine 243".
[[nodiscard]] std::string machine_name(std::uint16_t machine);
// The machine that this weir, and so its probes, were built for.
[[nodiscard]] std::uint16_t own_elf_machine();

}  // namespace weir::probes
