#include "gate/probes/read/line_tables.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gate/base/text.hpp"
#include "gate/probes/read/sections.hpp"
#include "gate/profile/reach.hpp"

namespace weir::probes {
namespace {

struct Tables {
  std::set<std::string> named, with_lines;
  std::set<std::string> guests;  // in a unit that another file is the first of
};

class Unit {
 public:
  Unit(std::string_view unit, const Sections& sections, Tables& out)
      : at_{unit}, sections_(sections), out_(out) {}

  // False where it is not whole, or of a version that is not read.
  bool read() {
    if (at_.number(2) != 5) return false;
    at_.bytes(2);  // sizes of addresses
    const std::uint64_t header = at_.number(4);
    Cursor program{at_.left};
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
      if (file != files_.front()) out_.guests.insert(file);
    }
    run(program, first_special, operands);
    return !program.bad;
  }

 private:
  std::string below(std::string_view name, std::uint64_t folder) {
    constexpr std::size_t k_longest = 4096, k_most = std::size_t{16} << 20;
    const bool relative = !name.starts_with('/') && folder < folders_.size();
    // Entries are small and may all lead to one long text.
    at_.bad |= name.size() > k_longest;
    std::string path = (relative ? folders_[folder] + "/" : "");
    path += name.substr(0, k_longest);
    copied_ += path.size();
    at_.bad |= copied_ > k_most;
    return path;
  }
  template <class Take>
  void read_names(const Take& take) {
    constexpr std::uint64_t k_path = 1, k_folder = 2;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> forms(at_.number(1));
    for (auto& [what, form] : forms) {
      what = at_.leb();
      form = at_.leb();
    }
    for (std::uint64_t left = at_.leb(); left > 0 && !at_.bad && !forms.empty(); --left) {
      std::string_view name;
      std::uint64_t folder = 0;
      for (const auto& [what, form] : forms) {
        const auto [text, number] = value(form);
        if (what == k_path) name = text;
        if (what == k_folder) folder = number;
      }
      take(name, folder);
    }
  }
  // A text or a number, by DW_FORM.
  std::pair<std::string_view, std::uint64_t> value(std::uint64_t form) {
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
    return {Cursor{texts->second.bytes.substr(from)}.text(), 0};
  }

  // Which files instructions are of; where these lie does not matter.
  void run(Cursor& program, std::uint64_t first_special, std::string_view operands) {
    constexpr std::uint64_t k_extended = 0, k_row = 1, k_set_file = 4, k_fixed_advance = 9;
    std::uint64_t file = 1;
    while (!program.left.empty() && !program.bad) {
      const std::uint64_t code = program.number(1);
      if (code >= first_special || code == k_row) {
        if (file < files_.size()) out_.with_lines.insert(files_[file]);
      } else if (code == k_extended) {
        constexpr char k_end = 1;  // of a sequence
        if (program.bytes(program.leb()).starts_with(k_end)) file = 1;
      } else if (code == k_set_file) {
        file = program.leb();
      } else if (code == k_fixed_advance) {
        program.bytes(2);
      } else {
        for (char n = operands[code - 1]; n > 0; --n) program.leb();
      }
    }
  }

  Cursor at_;
  const Sections& sections_;
  Tables& out_;
  std::vector<std::string> folders_, files_;
  std::size_t copied_ = 0;  // bytes of both
};

}  // namespace

std::optional<std::set<std::string>> maybe_inlined(std::string_view elf) {
  const Sections sections = sections_of(elf);
  const auto lines = sections.find(".debug_line");
  if (lines == sections.end()) return std::nullopt;
  Tables tables;
  Cursor at{lines->second.bytes};
  while (!at.left.empty()) {
    const std::string_view unit = at.bytes(at.number(4));
    if (at.bad || !Unit(unit, sections, tables).read()) return std::nullopt;
  }
  std::erase_if(tables.named, [&](const std::string& file) {
    return tables.with_lines.contains(file) && !tables.guests.contains(file);
  });
  return std::move(tables.named);
}

}  // namespace weir::probes
