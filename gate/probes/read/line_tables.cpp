// Reads the line tables (DWARF 5, .debug_line) of a program.
#include "gate/probes/read/line_tables.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gate/base/text.hpp"
#include "gate/probes/read/sections.hpp"
#include "gate/profile/reach.hpp"

namespace weir::probes {
namespace {

// Source files of all line tables of a program.
struct SourceFiles {
  std::set<std::string> named, with_lines;
  std::set<std::string> included;  // named by a unit whose first file is another one
};

// The line table of one unit of compilation.
class Unit {
 public:
  Unit(std::string_view unit, const Sections& sections, SourceFiles& out)
      : at_{unit}, sections_(sections), out_(out) {}

  // Adds the unit's files to `out`. False for a broken table, or a version other than 5.
  bool read() {
    if (at_.number(2) != 5) return false;
    at_.bytes(2);  // sizes of addresses
    const std::uint64_t header = at_.number(4);
    LittleEndianReader program{at_.rest};
    program.bytes(header);
    at_.bytes(5);
    const std::uint64_t first_special = at_.number(1);
    const std::string_view operands = at_.bytes(std::max<std::uint64_t>(1, first_special) - 1);
    read_names([&](std::string_view name, std::uint64_t) { folders_.push_back(below(name, 0)); });
    read_names([&](std::string_view name, std::uint64_t folder) {
      files_.push_back(text::printable(profile::normal_path(below(name, folder))));
    });
    if (at_.bad) return false;
    for (const std::string& file : files_) {
      out_.named.insert(file);
      if (file != files_.front()) out_.included.insert(file);
    }
    run_program(program, first_special, operands);
    return !program.bad;
  }

 private:
  // Joins a name with its folder. Sizes are limited: many small entries may refer to one long text.
  std::string below(std::string_view name, std::uint64_t folder) {
    constexpr std::size_t k_max_name_length = 4096, k_max_copied_bytes = std::size_t{16} << 20;
    const bool is_relative = !name.starts_with('/') && folder < folders_.size();
    at_.bad |= name.size() > k_max_name_length;
    std::string path = (is_relative ? folders_[folder] + "/" : "");
    path += name.substr(0, k_max_name_length);
    copied_ += path.size();
    at_.bad |= copied_ > k_max_copied_bytes;
    return path;
  }

  // Reads a table of names, of folders or of files: a list of (content, form), then the entries in
  // that shape. Calls `add` with each entry's name and index of its folder.
  template <class Add>
  void read_names(const Add& add) {
    constexpr std::uint64_t k_path = 1, k_folder = 2;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> forms(at_.number(1));
    for (auto& [content, form] : forms) {
      content = at_.leb();
      form = at_.leb();
    }
    std::uint64_t entries = at_.leb();
    for (; entries > 0 && !at_.bad && !forms.empty(); --entries) {
      std::string_view name;
      std::uint64_t folder = 0;
      for (const auto& [content, form] : forms) {
        const auto [text, number] = read_value(form);
        if (content == k_path) name = text;
        if (content == k_folder) folder = number;
      }
      add(name, folder);
    }
  }

  // Reads a text or a number, by its form (DW_FORM). Texts may lie in another section.
  std::pair<std::string_view, std::uint64_t> read_value(std::uint64_t form) {
    constexpr std::uint64_t k_string = 0x08, k_strp = 0x0E, k_line_strp = 0x1F, k_data1 = 0x0B,
                            k_data2 = 0x05, k_udata = 0x0F, k_data16 = 0x1E;
    if (form == k_string) return {at_.text(), 0};
    if (form == k_data1 || form == k_data2) return {"", at_.number(form == k_data1 ? 1 : 2)};
    if (form == k_udata) return {"", at_.leb()};
    if (form == k_data16) return {at_.bytes(16), 0};
    const auto texts = sections_.find(form == k_strp ? ".debug_str" : ".debug_line_str");
    const std::uint64_t from = at_.number(4);
    at_.bad |= (form != k_strp && form != k_line_strp) || texts == sections_.end() ||
               from >= texts->second.bytes.size();
    if (at_.bad) return {};
    return {LittleEndianReader{texts->second.bytes.substr(from)}.text(), 0};
  }

  // Runs the line program, to find the files that instructions belong to; addresses do not matter.
  // `operands`: the number of operands of each standard opcode.
  void run_program(LittleEndianReader& program, std::uint64_t first_special,
                   std::string_view operands) {
    constexpr std::uint64_t k_extended = 0, k_row = 1, k_set_file = 4, k_fixed_advance = 9;
    std::uint64_t file = 1;
    while (!program.rest.empty() && !program.bad) {
      const std::uint64_t code = program.number(1);
      if (code >= first_special || code == k_row) {
        if (file < files_.size()) out_.with_lines.insert(files_[file]);
      } else if (code == k_extended) {
        constexpr char k_end_sequence = 1;
        if (program.bytes(program.leb()).starts_with(k_end_sequence)) file = 1;
      } else if (code == k_set_file) {
        file = program.leb();
      } else if (code == k_fixed_advance) {
        program.bytes(2);
      } else {
        for (char n = operands[code - 1]; n > 0; --n) program.leb();
      }
    }
  }

  LittleEndianReader at_;
  const Sections& sections_;
  SourceFiles& out_;
  std::vector<std::string> folders_, files_;
  std::size_t copied_ = 0;  // bytes in both
};

}  // namespace

// Returns source files that may run without a line of their own, as they are inlined. Nothing if
// the tables of lines cannot be read.
std::optional<std::set<std::string>> find_maybe_inlined(std::string_view elf) {
  const Sections sections = read_sections(elf);
  const auto lines = sections.find(".debug_line");
  if (lines == sections.end()) return std::nullopt;
  SourceFiles source_files;
  LittleEndianReader at{lines->second.bytes};
  while (!at.rest.empty()) {
    const std::string_view unit = at.bytes(at.number(4));
    if (at.bad || !Unit(unit, sections, source_files).read()) return std::nullopt;
  }
  // A file that is only ever compiled by itself, and has lines, is not inlined.
  std::erase_if(source_files.named, [&](const std::string& file) {
    return source_files.with_lines.contains(file) && !source_files.included.contains(file);
  });
  return std::move(source_files.named);
}

}  // namespace weir::probes
