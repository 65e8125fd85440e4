// What a program file says of itself, without running it: the loader it asks for, the libraries it
// needs and where it looks for them, and the functions it takes from or gives to others.
//
// Only 64-bit little-endian ELF is read in full, and the load commands of Mach-O; of
// other files the kind is told. Bytes are
// hostile: every table has a limit, every place is checked, nothing is trusted to end. Pure: bytes
// come in through a function.
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

// What a macOS program's file says of itself: whether dyld would put a probe into it, and which
// libraries it names. Bytes are hostile, as ELF's; pure.

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

// `size` bytes from `offset`; fewer where the file ends before (none behind its end). Must not
// allocate more than the file holds.
using ReadBytes = std::function<Result<std::string>(std::uint64_t offset, std::uint64_t size)>;
[[nodiscard]] ReadBytes bytes_of(std::string_view text);  // refers to `text`

enum class FileKind { elf, mach_o, script, windows, other };

struct ProgramFile {
  FileKind kind = FileKind::other;
  std::string script;           // of a script: what stands behind "#!", printable
  std::optional<MachO> mach_o;  // of mach_o, unless it contradicts itself or is no 64-bit one

  // The rest is ELF's. `bits` and `machine` are always there, the others with 64 bits alone.
  int bits = 64;
  std::uint16_t machine = 0;          // e_machine: 62 is x86-64, 183 is AArch64
  bool is_program = false;            // else a library
  std::optional<std::string> loader;  // "/lib64/ld-linux-x86-64.so.2"
  bool symbolic = false;              // its own functions cannot be stood in front of (-Bsymbolic)
  std::string soname;
  std::vector<std::string> needed;   // in order
  std::vector<std::string> rpath;    // entries as written ("$ORIGIN/../lib"); old tag, DT_RPATH
  std::vector<std::string> runpath;  // DT_RUNPATH
  // Names with a wanted prefix, sorted, each once.
  std::vector<std::string> imported, exported;
  // Functions within it that nobody else sees: from .symtab, absent in a stripped file.
  std::vector<std::string> inner;

  // Loads nothing, so that nothing can be loaded into it.
  [[nodiscard]] bool is_static() const { return is_program && !loader && needed.empty(); }
  [[nodiscard]] bool imports(std::string_view name) const {
    return std::ranges::binary_search(imported, name);
  }
  [[nodiscard]] bool exports(std::string_view name) const {
    return std::ranges::binary_search(exported, name);
  }
};

// `prefixes`: of the names to keep; empty: all. Code::data where the file contradicts itself, is
// cut short, or a table is larger than any real one.
[[nodiscard]] Result<ProgramFile> read_program_file(
    const ReadBytes& read, std::span<const std::string_view> prefixes = {});

// "x86-64", "AArch64", "machine 243".
[[nodiscard]] std::string machine_name(std::uint16_t machine);
// The machine that this weir, and so its probes, were built for.
[[nodiscard]] std::uint16_t own_elf_machine();

}  // namespace weir::probes
