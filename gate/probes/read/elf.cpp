#include "gate/probes/read/elf.hpp"

#include <algorithm>
#include <array>

#include "gate/base/text.hpp"

namespace weir::probes {
namespace {

// Far above what real files have (a debug build of a large engine: 300 000 symbols).
constexpr std::uint64_t k_most_segments = 1024;
constexpr std::uint64_t k_most_sections = 65'536;
constexpr std::uint64_t k_most_dynamic = 16'384;
constexpr std::uint64_t k_most_symbols = 4'000'000;
constexpr std::uint64_t k_most_text = std::uint64_t{256} << 20;
constexpr std::size_t k_most_needed = 1024;
constexpr std::size_t k_longest_name = 4096;

constexpr std::uint64_t k_symbol_size = 24, k_segment_size = 56, k_section_size = 64;

std::uint64_t number(std::string_view bytes, std::size_t at, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = size; i-- > 0;) {
    value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  }
  return value;
}

// The text that starts at `at` of a string table; what does not end within it is cut.
std::string_view text_at(std::string_view table, std::uint64_t at) {
  if (at >= table.size()) return {};
  table.remove_prefix(static_cast<std::size_t>(at));
  return table.substr(0, std::min(table.find('\0'), k_longest_name));
}

struct Segment {
  std::uint64_t type = 0, offset = 0, address = 0, size = 0;
};

struct Section {
  std::uint64_t type = 0, offset = 0, size = 0, link = 0;
};

struct Dynamic {
  std::vector<std::uint64_t> needed;
  std::optional<std::uint64_t> text, symbols, hash, soname, rpath, runpath;
  std::uint64_t text_size = 0, flags_1 = 0;
  bool symbolic = false;
};

class Elf {
 public:
  Elf(const ReadBytes& read, std::span<const std::string_view> prefixes)
      : read_(read), prefixes_(prefixes) {}

  Result<ProgramFile> run(std::string_view header);

 private:
  [[nodiscard]] Result<std::string> exactly(std::uint64_t offset, std::uint64_t size,
                                            const char* what) const;
  [[nodiscard]] Result<void> read_segments(std::string_view header);
  // Stripped programs may have none, and a wrong table is no reason to know nothing.
  void read_sections(std::string_view header);
  [[nodiscard]] Result<void> read_loader();
  [[nodiscard]] Result<void> read_dynamic();
  [[nodiscard]] Result<void> read_names(std::string_view table);
  [[nodiscard]] Result<void> read_dynamic_symbols(std::string_view table);
  void read_inner_symbols();
  [[nodiscard]] Result<std::uint64_t> offset_of(std::uint64_t address, const char* what) const;
  [[nodiscard]] std::uint64_t count_symbols() const;
  [[nodiscard]] bool wanted(std::string_view name) const;

  const ReadBytes& read_;
  std::span<const std::string_view> prefixes_;
  std::vector<Segment> segments_;
  std::vector<Section> sections_;
  Dynamic dynamic_;
  ProgramFile file_;
};

Result<std::string> Elf::exactly(std::uint64_t offset, std::uint64_t size, const char* what) const {
  WEIR_TRY(std::string bytes, read_(offset, size));
  if (bytes.size() != size) return fail(Code::data, "ELF: its {} lies beyond its end", what);
  return bytes;
}

Result<void> Elf::read_segments(std::string_view header) {
  const std::uint64_t offset = number(header, 32, 8), count = number(header, 56, 2);
  if (count == 0) return {};
  if (number(header, 54, 2) != k_segment_size || count > k_most_segments) {
    return fail(Code::data, "ELF: its table of segments is not one");
  }
  WEIR_TRY(const std::string table, exactly(offset, count * k_segment_size, "table of segments"));
  for (std::size_t at = 0; at < table.size(); at += k_segment_size) {
    segments_.push_back({.type = number(table, at, 4),
                         .offset = number(table, at + 8, 8),
                         .address = number(table, at + 16, 8),
                         .size = number(table, at + 32, 8)});
  }
  return {};
}

void Elf::read_sections(std::string_view header) {
  const std::uint64_t offset = number(header, 40, 8), count = number(header, 60, 2);
  if (count == 0 || number(header, 58, 2) != k_section_size || count > k_most_sections) return;
  const auto table = exactly(offset, count * k_section_size, "table of sections");
  if (!table) return;
  for (std::size_t at = 0; at < table->size(); at += k_section_size) {
    sections_.push_back({.type = number(*table, at + 4, 4),
                         .offset = number(*table, at + 24, 8),
                         .size = number(*table, at + 32, 8),
                         .link = number(*table, at + 40, 4)});
  }
}

Result<void> Elf::read_loader() {
  constexpr std::uint64_t k_loader = 3;
  for (const Segment& segment : segments_) {
    if (segment.type != k_loader) continue;
    if (segment.size > k_longest_name) return fail(Code::data, "ELF: no loader has such a name");
    WEIR_TRY(const std::string name, exactly(segment.offset, segment.size, "loader's name"));
    file_.loader = text::printable(text_at(name, 0));
    return {};
  }
  return {};
}

Result<std::uint64_t> Elf::offset_of(std::uint64_t address, const char* what) const {
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

Result<void> Elf::read_dynamic() {
  constexpr std::uint64_t k_dynamic = 2, k_entry = 16;
  const auto found = std::find_if(segments_.begin(), segments_.end(),
                                  [](const Segment& one) { return one.type == k_dynamic; });
  if (found == segments_.end()) return {};
  if (found->size / k_entry > k_most_dynamic) {
    return fail(Code::data, "ELF: its dynamic section is larger than any");
  }
  WEIR_TRY(const std::string table, exactly(found->offset, found->size, "dynamic section"));
  for (std::size_t at = 0; at + k_entry <= table.size(); at += k_entry) {
    const std::uint64_t value = number(table, at + 8, 8);
    switch (number(table, at, 8)) {  // the tags of the System V ABI and of GNU
      case 0:
        at = table.size() - k_entry;
        break;
      case 1:
        if (dynamic_.needed.size() == k_most_needed) {
          return fail(Code::data, "ELF: it needs more than {} libraries", k_most_needed);
        }
        dynamic_.needed.push_back(value);
        break;
      case 4:
        dynamic_.hash = value;
        break;
      case 5:
        dynamic_.text = value;
        break;
      case 6:
        dynamic_.symbols = value;
        break;
      case 10:
        dynamic_.text_size = value;
        break;
      case 14:
        dynamic_.soname = value;
        break;
      case 15:
        dynamic_.rpath = value;
        break;
      case 16:
        dynamic_.symbolic = true;
        break;
      case 29:
        dynamic_.runpath = value;
        break;
      case 30:
        dynamic_.symbolic = dynamic_.symbolic || (value & 2) != 0;
        break;
      case 0x6ffffffb:
        dynamic_.flags_1 = value;
        break;
      default:
        break;
    }
  }
  if (!dynamic_.text) return {};
  if (dynamic_.text_size > k_most_text) {
    return fail(Code::data, "ELF: its names take {} bytes", dynamic_.text_size);
  }
  WEIR_TRY(const std::uint64_t offset, offset_of(*dynamic_.text, "table of names"));
  WEIR_TRY(const std::string names, exactly(offset, dynamic_.text_size, "table of names"));
  WEIR_CHECK(read_names(names));
  return read_dynamic_symbols(names);
}

Result<void> Elf::read_names(std::string_view table) {
  const auto name = [&](std::uint64_t at) { return text::printable(text_at(table, at)); };
  const auto folders = [&](const std::optional<std::uint64_t>& at) {
    std::vector<std::string> list;
    if (!at) return list;
    for (std::string& one : text::split(name(*at), ':')) {
      if (!one.empty()) list.push_back(std::move(one));
    }
    return list;
  };
  for (const std::uint64_t at : dynamic_.needed) file_.needed.push_back(name(at));
  if (dynamic_.soname) file_.soname = name(*dynamic_.soname);
  file_.rpath = folders(dynamic_.rpath);
  file_.runpath = folders(dynamic_.runpath);
  file_.symbolic = dynamic_.symbolic;
  return {};
}

// The dynamic section does not tell how many symbols there are: the table of sections does, or the
// old hash table, or where the names begin, which linkers put behind the symbols.
std::uint64_t Elf::count_symbols() const {
  constexpr std::uint64_t k_dynamic_symbols = 11;
  for (const Section& section : sections_) {
    if (section.type == k_dynamic_symbols) return section.size / k_symbol_size;
  }
  if (dynamic_.hash) {
    const auto offset = offset_of(*dynamic_.hash, "hash table");
    const auto head = offset ? read_(*offset, 8) : tl::unexpected(offset.error());
    if (head && head->size() == 8) return number(*head, 4, 4);
  }
  if (*dynamic_.text <= *dynamic_.symbols) return 0;
  return (*dynamic_.text - *dynamic_.symbols) / k_symbol_size;
}

bool Elf::wanted(std::string_view name) const {
  if (name.empty()) return false;
  return prefixes_.empty() ||
         std::any_of(prefixes_.begin(), prefixes_.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

Result<void> Elf::read_dynamic_symbols(std::string_view table) {
  if (!dynamic_.symbols) return {};
  const std::uint64_t count = count_symbols();
  if (count > k_most_symbols) return fail(Code::data, "ELF: it says it has {} symbols", count);
  WEIR_TRY(const std::uint64_t offset, offset_of(*dynamic_.symbols, "table of symbols"));
  WEIR_TRY(const std::string symbols, exactly(offset, count * k_symbol_size, "table of symbols"));
  for (std::size_t at = 0; at < symbols.size(); at += k_symbol_size) {
    const std::string_view name = text_at(table, number(symbols, at, 4));
    if (!wanted(name)) continue;
    const std::uint64_t binding = number(symbols, at + 4, 1) >> 4;
    const std::uint64_t visibility = number(symbols, at + 5, 1) & 3;
    const bool here = number(symbols, at + 6, 2) != 0;
    // Local or hidden names are nobody's to find.
    if (binding == 0 || (here && (visibility == 1 || visibility == 2))) continue;
    (here ? file_.exported : file_.imported).push_back(text::printable(name));
  }
  return {};
}

void Elf::read_inner_symbols() {
  constexpr std::uint64_t k_symbols = 2, k_function = 2;
  // The first alone: thousands of sections could point to the same large table.
  const auto section = std::find_if(sections_.begin(), sections_.end(),
                                    [](const Section& one) { return one.type == k_symbols; });
  if (section == sections_.end() || section->link >= sections_.size()) return;
  const Section& names = sections_[static_cast<std::size_t>(section->link)];
  const std::uint64_t count = section->size / k_symbol_size;
  if (count > k_most_symbols || names.size > k_most_text) return;
  const auto symbols = exactly(section->offset, count * k_symbol_size, "symbols");
  const auto table = exactly(names.offset, names.size, "names");
  if (!symbols || !table) return;
  for (std::size_t at = 0; at < symbols->size(); at += k_symbol_size) {
    const bool function = (number(*symbols, at + 4, 1) & 15) == k_function;
    if (!function || number(*symbols, at + 6, 2) == 0) continue;
    const std::string_view name = text_at(*table, number(*symbols, at, 4));
    if (wanted(name)) file_.inner.push_back(text::printable(name));
  }
}

void sort_once(std::vector<std::string>& names) {
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
}

Result<ProgramFile> Elf::run(std::string_view header) {
  file_.kind = FileKind::elf;
  const auto word_size = static_cast<unsigned char>(header[4]);
  const bool little = header[5] == 1;
  if (word_size != 1 && word_size != 2) return fail(Code::data, "ELF of a kind that nobody has");
  file_.bits = word_size == 2 ? 64 : 32;
  if (header.size() < 20) return fail(Code::data, "ELF: cut short in its header");
  file_.machine = static_cast<std::uint16_t>(
      little ? number(header, 18, 2) : number(header, 18, 1) << 8 | number(header, 19, 1));
  if (file_.bits != 64 || !little) return std::move(file_);
  if (header.size() < 64) return fail(Code::data, "ELF: cut short in its header");
  WEIR_CHECK(read_segments(header));
  read_sections(header);
  WEIR_CHECK(read_loader());
  WEIR_CHECK(read_dynamic());
  read_inner_symbols();
  constexpr std::uint64_t k_fixed_program = 2, k_is_a_program = 0x08000000;
  file_.is_program = number(header, 16, 2) == k_fixed_program || file_.loader.has_value() ||
                     (dynamic_.flags_1 & k_is_a_program) != 0;
  sort_once(file_.imported);
  sort_once(file_.exported);
  sort_once(file_.inner);
  return std::move(file_);
}

bool is_mach_o(std::string_view head) {
  const std::uint64_t magic = number(head, 0, 4);
  // A universal file has the magic of a Java class; those count far more than a few architectures.
  const bool universal = magic == 0xbebafeca && head.size() >= 8 && number(head, 4, 3) == 0 &&
                         static_cast<unsigned char>(head[7]) < 30;
  return magic == 0xfeedfacf || magic == 0xfeedface || universal;
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

bool ProgramFile::imports(std::string_view name) const {
  return std::binary_search(imported.begin(), imported.end(), name);
}

bool ProgramFile::exports(std::string_view name) const {
  return std::binary_search(exported.begin(), exported.end(), name);
}

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
  if (head.starts_with("\x7f"
                       "ELF") &&
      head.size() > 6) {
    return Elf(read, prefixes).run(std::string_view(head).substr(0, 64));
  }
  if (head.starts_with("MZ")) file.kind = FileKind::windows;
  if (head.size() >= 4 && is_mach_o(head)) {
    file.kind = FileKind::mach_o;
    if (auto found = read_mach_o(read)) file.mach_o = std::move(*found);
  }
  return file;
}

std::string machine_name(std::uint16_t machine) {
  switch (machine) {
    case 3:
      return "x86";
    case 40:
      return "Arm";
    case 62:
      return "x86-64";
    case 183:
      return "AArch64";
    case 243:
      return "RISC-V";
    default:
      return fmt::format("machine {}", machine);
  }
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

}  // namespace weir::probes
