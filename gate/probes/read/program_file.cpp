// Reads the tables of ELF and Mach-O files that say what a program loads, imports and exports.
#include "gate/probes/read/program_file.hpp"

#include <algorithm>
#include <map>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/probes/read/sections.hpp"
#include "gate/sys/paths.hpp"

namespace weir::probes {
namespace {

// Far above what real files have (a debug build of a large engine: 300 000 symbols).
constexpr std::uint64_t k_max_segments = 1024;
constexpr std::uint64_t k_max_sections = 65'536;
constexpr std::uint64_t k_max_dynamic_entries = 16'384;
constexpr std::uint64_t k_max_symbols = 4'000'000;
constexpr std::uint64_t k_max_text_bytes = std::uint64_t{256} << 20;
constexpr std::size_t k_max_needed_libraries = 1024;
constexpr std::size_t k_longest_name = 4096;
constexpr std::uint64_t k_max_commands_bytes = std::uint64_t{1} << 20;
constexpr std::uint64_t k_max_signature_bytes = std::uint64_t{4} << 20;

constexpr std::uint64_t k_symbol_size = 24, k_segment_size = 56, k_section_size = 64;

// A little-endian number of `size` bytes at `at`. Bytes behind the end count as 0.
std::uint64_t number(std::string_view bytes, std::size_t at, std::size_t size) {
  const std::string_view rest = bytes.substr(std::min(at, bytes.size()));
  return LittleEndianReader{rest}.number(std::min(size, rest.size()));
}

// A big-endian number of 4 bytes at `at`.
std::uint64_t big_endian(std::string_view bytes, std::size_t at) {
  return __builtin_bswap32(static_cast<std::uint32_t>(number(bytes, at, 4)));
}

// The text that starts at `at` in a string table, cut at the table's end.
std::string_view text_at(std::string_view table, std::uint64_t at) {
  if (at >= table.size()) return {};
  table.remove_prefix(static_cast<std::size_t>(at));
  return table.substr(0, std::min(table.find('\0'), k_longest_name));
}

// Reads an ELF file; see read_program_file().
class Elf {
 public:
  Elf(const ReadBytes& read, std::span<const std::string_view> prefixes)
      : read_(read), prefixes_(prefixes) {}

  // Reads the tables that `header` names. Other files than 64-bit little-endian ones give only
  // their machine.
  Result<ProgramFile> read_file(std::string_view header) {
    file_.kind = FileKind::elf;
    const std::uint64_t word_size = number(header, 4, 1);
    const bool is_little_endian = header[5] == 1;
    if (word_size != 1 && word_size != 2) return fail(Code::data, "ELF of a kind that nobody has");
    file_.bits = word_size == 2 ? 64 : 32;
    if (header.size() < 20) return fail(Code::data, "ELF: cut short in its header");
    file_.machine = static_cast<std::uint16_t>(is_little_endian ? number(header, 18, 2)
                                                                : big_endian(header, 18) >> 16);
    if (file_.bits != 64 || !is_little_endian) return std::move(file_);
    if (header.size() < 64) return fail(Code::data, "ELF: cut short in its header");
    WEIR_CHECK(read_segments(header));
    read_sections(header);
    WEIR_CHECK(read_loader());
    WEIR_CHECK(read_dynamic());
    read_inner_symbols();
    constexpr std::uint64_t k_fixed_program = 2, k_is_a_program = 0x08000000;
    file_.is_program = number(header, 16, 2) == k_fixed_program || file_.loader.has_value() ||
                       (tag(k_flags_1).value_or(0) & k_is_a_program) != 0;
    for (auto* names : {&file_.imported, &file_.exported, &file_.inner}) {
      std::ranges::sort(*names);
      names->erase(std::unique(names->begin(), names->end()), names->end());
    }
    return std::move(file_);
  }

 private:
  struct Segment {
    std::uint64_t type = 0, offset = 0, address = 0, size = 0;
  };
  struct Section {
    std::uint64_t type = 0, offset = 0, size = 0, link = 0;
  };
  // Tags of the dynamic section, of the System V ABI and of GNU.
  enum Tag : std::uint64_t {
    k_needed = 1,
    k_hash = 4,
    k_names = 5,
    k_symbols = 6,
    k_names_size = 10,
    k_soname = 14,
    k_rpath = 15,
    k_symbolic = 16,
    k_runpath = 29,
    k_flags = 30,
    k_flags_1 = 0x6ffffffb,
  };

  // Reads `size` bytes at `offset`; fails where the file ends before. `what` names them.
  [[nodiscard]] Result<std::string> read_exactly(std::uint64_t offset, std::uint64_t size,
                                                 const char* what) const {
    WEIR_TRY(std::string bytes, read_(offset, size));
    if (bytes.size() != size) return fail(Code::data, "ELF: its {} lies beyond its end", what);
    return bytes;
  }

  // Reads the table of segments that the header names.
  Result<void> read_segments(std::string_view header) {
    const std::uint64_t offset = number(header, 32, 8), count = number(header, 56, 2);
    if (count == 0) return {};
    if (number(header, 54, 2) != k_segment_size || count > k_max_segments) {
      return fail(Code::data, "ELF: its table of segments is not one");
    }
    WEIR_TRY(const std::string table,
             read_exactly(offset, count * k_segment_size, "table of segments"));
    for (std::size_t at = 0; at < table.size(); at += k_segment_size) {
      segments_.push_back({.type = number(table, at, 4),
                           .offset = number(table, at + 8, 8),
                           .address = number(table, at + 16, 8),
                           .size = number(table, at + 32, 8)});
    }
    return {};
  }

  // Reads the table of sections. Stripped programs may have none, so a missing or broken table is
  // no error.
  void read_sections(std::string_view header) {
    const std::uint64_t offset = number(header, 40, 8), count = number(header, 60, 2);
    if (count == 0 || number(header, 58, 2) != k_section_size || count > k_max_sections) return;
    const auto table = read_exactly(offset, count * k_section_size, "table of sections");
    if (!table) return;
    for (std::size_t at = 0; at < table->size(); at += k_section_size) {
      sections_.push_back({.type = number(*table, at + 4, 4),
                           .offset = number(*table, at + 24, 8),
                           .size = number(*table, at + 32, 8),
                           .link = number(*table, at + 40, 4)});
    }
  }

  template <class Part>
  static const Part* find_by_type(const std::vector<Part>& parts, std::uint64_t type) {
    return weir::find_first(parts, [&](const Part& part) { return part.type == type; });
  }

  Result<void> read_loader() {
    constexpr std::uint64_t k_loader = 3;
    const Segment* segment = find_by_type(segments_, k_loader);
    if (segment == nullptr) return {};
    if (segment->size > k_longest_name) return fail(Code::data, "ELF: no loader has such a name");
    WEIR_TRY(const std::string name, read_exactly(segment->offset, segment->size, "loader's name"));
    file_.loader = text::printable(text_at(name, 0));
    return {};
  }

  // Converts an address of the loaded program to an offset in its file. `what` lies there.
  [[nodiscard]] Result<std::uint64_t> file_offset(std::uint64_t address, const char* what) const {
    constexpr std::uint64_t k_load = 1;
    for (const Segment& segment : segments_) {
      if (segment.type != k_load || address < segment.address) continue;
      const std::uint64_t within = address - segment.address;
      if (within < segment.size && segment.offset <= UINT64_MAX - within) {
        return segment.offset + within;
      }
    }
    return fail(Code::data, "ELF: its {} lies in none of its segments", what);
  }

  // The last value that the dynamic section has for a tag.
  [[nodiscard]] std::optional<std::uint64_t> tag(Tag which) const {
    const auto* value = look_up(tags_, which);
    return value == nullptr ? std::nullopt : std::optional(*value);
  }

  // Reads the dynamic section: needed libraries, search paths and symbols.
  Result<void> read_dynamic() {
    constexpr std::uint64_t k_dynamic = 2, k_entry = 16, k_bind_symbolic = 2;
    const Segment* segment = find_by_type(segments_, k_dynamic);
    if (segment == nullptr) return {};
    if (segment->size / k_entry > k_max_dynamic_entries) {
      return fail(Code::data, "ELF: its dynamic section is larger than any");
    }
    WEIR_TRY(const std::string table,
             read_exactly(segment->offset, segment->size, "dynamic section"));
    std::vector<std::uint64_t> needed;
    for (std::size_t at = 0; at + k_entry <= table.size(); at += k_entry) {
      const std::uint64_t which = number(table, at, 8), value = number(table, at + 8, 8);
      if (which == 0) break;
      if (which != k_needed) {
        tags_[which] = value;
      } else if (needed.size() < k_max_needed_libraries) {
        needed.push_back(value);
      } else {
        return fail(Code::data, "ELF: it needs more than {} libraries", k_max_needed_libraries);
      }
    }
    file_.symbolic = tag(k_symbolic) || (tag(k_flags).value_or(0) & k_bind_symbolic) != 0;
    if (!tag(k_names)) return {};
    const std::uint64_t size = tag(k_names_size).value_or(0);
    if (size > k_max_text_bytes) return fail(Code::data, "ELF: its names take {} bytes", size);
    WEIR_TRY(const std::uint64_t offset, file_offset(*tag(k_names), "table of names"));
    WEIR_TRY(const std::string names, read_exactly(offset, size, "table of names"));
    const auto name = [&](std::uint64_t at) { return text::printable(text_at(names, at)); };
    const auto folders = [&](Tag which) {
      std::vector<std::string> list;
      if (tag(which)) list = text::split(name(*tag(which)), ':');
      std::erase(list, "");
      return list;
    };
    for (const std::uint64_t at : needed) file_.needed.push_back(name(at));
    if (tag(k_soname)) file_.soname = name(*tag(k_soname));
    file_.rpath = folders(k_rpath);
    file_.runpath = folders(k_runpath);
    return read_dynamic_symbols(names);
  }

  // Counts the dynamic symbols, by the table of sections or by the old hash table. Without both
  // the count is up to the names, which linkers put behind the symbols.
  [[nodiscard]] std::uint64_t count_symbols() const {
    constexpr std::uint64_t k_dynamic_symbols = 11;
    if (const Section* section = find_by_type(sections_, k_dynamic_symbols)) {
      return section->size / k_symbol_size;
    }
    if (tag(k_hash)) {
      const auto offset = file_offset(*tag(k_hash), "hash table");
      const auto head = offset ? read_(*offset, 8) : tl::unexpected(offset.error());
      if (head && head->size() == 8) return number(*head, 4, 4);
    }
    const std::uint64_t names = *tag(k_names), symbols = *tag(k_symbols);
    return names <= symbols ? 0 : (names - symbols) / k_symbol_size;
  }

  // True if the name has one of the prefixes, or no prefix is given.
  [[nodiscard]] bool is_wanted(std::string_view name) const {
    if (name.empty()) return false;
    return prefixes_.empty() || std::ranges::any_of(prefixes_, [&](std::string_view prefix) {
             return name.starts_with(prefix);
           });
  }

  // Adds the dynamic symbols to the imported and exported names. `names`: their string table.
  Result<void> read_dynamic_symbols(std::string_view names) {
    if (!tag(k_symbols)) return {};
    const std::uint64_t count = count_symbols();
    if (count > k_max_symbols) return fail(Code::data, "ELF: it says it has {} symbols", count);
    WEIR_TRY(const std::uint64_t offset, file_offset(*tag(k_symbols), "table of symbols"));
    WEIR_TRY(const std::string symbols,
             read_exactly(offset, count * k_symbol_size, "table of symbols"));
    for (std::size_t at = 0; at < symbols.size(); at += k_symbol_size) {
      const std::string_view name = text_at(names, number(symbols, at, 4));
      if (!is_wanted(name)) continue;
      const std::uint64_t binding = number(symbols, at + 4, 1) >> 4;
      const std::uint64_t visibility = number(symbols, at + 5, 1) & 3;
      const bool is_defined = number(symbols, at + 6, 2) != 0;
      // Other files cannot see local or hidden symbols.
      if (binding == 0 || (is_defined && (visibility == 1 || visibility == 2))) continue;
      if (is_defined) {
        file_.exported.push_back(text::printable(name));
      } else {
        file_.imported.push_back(text::printable(name));
      }
    }
    return {};
  }

  // Adds the functions of .symtab, which a stripped file lacks. Broken tables are ignored.
  void read_inner_symbols() {
    constexpr std::uint64_t k_all_symbols = 2, k_function = 2;
    // Only the first section counts: thousands of them could point to the same large table.
    const Section* section = find_by_type(sections_, k_all_symbols);
    if (section == nullptr || section->link >= sections_.size()) return;
    const Section& names = sections_[static_cast<std::size_t>(section->link)];
    const std::uint64_t count = section->size / k_symbol_size;
    if (count > k_max_symbols || names.size > k_max_text_bytes) return;
    const auto symbols = read_exactly(section->offset, count * k_symbol_size, "symbols");
    const auto table = read_exactly(names.offset, names.size, "names");
    if (!symbols || !table) return;
    for (std::size_t at = 0; at < symbols->size(); at += k_symbol_size) {
      const bool is_function = (number(*symbols, at + 4, 1) & 15) == k_function;
      if (!is_function || number(*symbols, at + 6, 2) == 0) continue;
      const std::string_view name = text_at(*table, number(*symbols, at, 4));
      if (is_wanted(name)) file_.inner.push_back(text::printable(name));
    }
  }

  const ReadBytes& read_;
  std::span<const std::string_view> prefixes_;
  std::vector<Segment> segments_;
  std::vector<Section> sections_;
  std::map<std::uint64_t, std::uint64_t> tags_;
  ProgramFile file_;
};

bool is_mach_o(std::string_view head) {
  const std::uint64_t magic = number(head, 0, 4);
  // A universal file has the magic of a Java class. The next bytes are a small number of
  // architectures, or the class's version, which is higher.
  const bool universal = magic == 0xbebafeca && head.size() >= 8 && number(head, 4, 3) == 0 &&
                         static_cast<unsigned char>(head[7]) < 30;
  return magic == 0xfeedfacf || magic == 0xfeedface || universal;
}

// Returns true if a property list of entitlements has <true/> for the key.
bool is_entitled(std::string_view list, std::string_view key) {
  const std::size_t at = list.find(fmt::format("<key>{}</key>", key));
  if (at == std::string_view::npos) return false;
  const std::string_view rest = list.substr(at + key.size() + 11);
  const std::size_t value = rest.find_first_not_of(" \t\r\n");
  return value != std::string_view::npos && rest.substr(value).starts_with("<true/>");
}

// Reads the flags and entitlements of a macOS code signature; they tell if libraries may be loaded
// into the program.
void read_signature(std::string_view signature, MachO& out) {
  constexpr std::uint64_t k_signature = 0xfade0cc0, k_directory = 0xfade0c02, k_list = 0xfade7171;
  constexpr std::uint64_t k_restrict = 0x800, k_hardened = 0x10000;
  if (signature.size() < 12 || big_endian(signature, 0) != k_signature) return;
  const std::uint64_t count = std::min<std::uint64_t>(big_endian(signature, 8), 64);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t at = big_endian(signature, static_cast<std::size_t>(12 + 8 * i + 4));
    if (at >= signature.size()) continue;
    const std::string_view blob = signature.substr(static_cast<std::size_t>(at));
    if (big_endian(blob, 0) == k_directory) {
      out.restricted = out.restricted || (big_endian(blob, 12) & k_restrict) != 0;
      out.hardened = out.hardened || (big_endian(blob, 12) & k_hardened) != 0;
    } else if (big_endian(blob, 0) == k_list) {
      const std::string_view list = blob.substr(0, static_cast<std::size_t>(big_endian(blob, 4)));
      out.allows_variables =
          is_entitled(list, "com.apple.security.cs.allow-dyld-environment-variables");
      out.allows_libraries = is_entitled(list, "com.apple.security.cs.disable-library-validation");
    }
  }
}

void read_library(std::string_view command, MachO& out) {
  const std::uint64_t at = number(command, 8, 4);
  if (at >= command.size() || out.libraries.size() == k_max_needed_libraries) return;
  out.libraries.push_back(text::printable(text_at(command, at)));
}

// Offset of a universal file's part for Apple's 64-bit processors, else of its first part. 0 for a
// file with one part.
std::uint64_t find_part(std::string_view head) {
  constexpr std::uint64_t k_universal = 0xcafebabe, k_arm64 = 0x0100000c;
  if (big_endian(head, 0) != k_universal) return 0;
  std::uint64_t start = big_endian(head, 16);
  for (std::size_t i = 0; i < std::min<std::uint64_t>(big_endian(head, 4), 8); ++i) {
    if (big_endian(head, 8 + 20 * i) == k_arm64) start = big_endian(head, 8 + 20 * i + 8);
  }
  return start;
}

// Reads the load commands of a macOS program (Mach-O). Fails with Code::data where it contradicts
// itself.
Result<MachO> read_mach_o(const ReadBytes& read) {
  constexpr std::uint64_t k_64_bits = 0xfeedfacf, k_header = 32;
  constexpr std::uint64_t k_segment = 0x19, k_dyld = 0xe, k_signed = 0x1d;
  constexpr std::uint64_t k_libraries[] = {0xc, 0x80000018, 0x8000001f, 0x20};
  WEIR_TRY(const std::string head, read(0, 256));
  const std::uint64_t start = find_part(head);
  WEIR_TRY(const std::string header, read(start, k_header));
  if (header.size() < k_header || number(header, 0, 4) != k_64_bits) {
    return fail(Code::data, "Mach-O: not a 64-bit program");
  }
  const std::uint64_t size = number(header, 20, 4);
  if (size > k_max_commands_bytes) return fail(Code::data, "Mach-O: absurdly many load commands");
  WEIR_TRY(const std::string commands, read(start + k_header, size));
  if (commands.size() != size) return fail(Code::data, "Mach-O: cut short in its load commands");
  MachO out;
  out.is_program = number(header, 12, 4) == 2;
  for (std::size_t at = 0; at + 8 <= commands.size();) {
    const std::uint64_t kind = number(commands, at, 4), length = number(commands, at + 4, 4);
    if (length < 8 || length > commands.size() - at) {
      return fail(Code::data, "Mach-O: a load command of {} bytes", length);
    }
    const std::string_view command =
        std::string_view(commands).substr(at, static_cast<std::size_t>(length));
    at += static_cast<std::size_t>(length);
    if (kind == k_dyld) out.dynamic = true;
    if (kind == k_segment && command.substr(8).starts_with("__RESTRICT")) out.restricted = true;
    if (holds(k_libraries, kind)) read_library(command, out);
    if (kind == k_signed) {
      const std::uint64_t bytes = std::min(number(command, 12, 4), k_max_signature_bytes);
      WEIR_TRY(const std::string signature, read(start + number(command, 8, 4), bytes));
      read_signature(signature, out);
    }
  }
  return out;
}

}  // namespace

ReadBytes bytes_of(std::string_view bytes) {
  return [bytes](std::uint64_t offset, std::uint64_t size) -> Result<std::string> {
    if (offset >= bytes.size()) return std::string();
    return std::string(
        bytes.substr(static_cast<std::size_t>(offset),
                     static_cast<std::size_t>(std::min<std::uint64_t>(size, bytes.size()))));
  };
}

// Reads what kind of program a file is, by its first bytes: a script, ELF, Mach-O, a Windows
// program, or something else.
Result<ProgramFile> read_program_file(const ReadBytes& read,
                                      std::span<const std::string_view> prefixes) {
  WEIR_TRY(const std::string head, read(0, 256));
  ProgramFile file;
  if (head.starts_with("#!")) {
    file.kind = FileKind::script;
    const std::string_view line = std::string_view(head).substr(2, head.find('\n') - 2);
    file.script = text::printable(text::trim(line));
    return file;
  }
  if (head.starts_with("\x7F\x45LF") && head.size() > 6) {
    return Elf(read, prefixes).read_file(std::string_view(head).substr(0, 64));
  }
  if (head.starts_with("MZ")) file.kind = FileKind::windows;
  if (head.size() >= 4 && is_mach_o(head)) {
    file.kind = FileKind::mach_o;
    if (auto mach_o = read_mach_o(read)) file.mach_o = std::move(*mach_o);
  }
  return file;
}

std::string machine_name(std::uint16_t machine) {
  constexpr std::pair<std::uint16_t, const char*> k_machines[] = {
      {3, "x86"}, {40, "Arm"}, {62, "x86-64"}, {183, "AArch64"}, {243, "RISC-V"}};
  const auto* entry = find_first(k_machines, [&](const auto& row) { return row.first == machine; });
  return entry == nullptr ? fmt::format("machine {}", machine) : entry->second;
}

std::uint16_t own_elf_machine() {
#if defined(__x86_64__)
  return 62;
#elif defined(__aarch64__)
  return 183;
#elif defined(__riscv)
  return 243;
#else
  return 0;
#endif
}

bool MachO::needs(std::string_view prefix) const {
  return std::ranges::any_of(libraries, [&](const std::string& library) {
    return sys::file_name_of(library).starts_with(prefix);
  });
}

}  // namespace weir::probes
