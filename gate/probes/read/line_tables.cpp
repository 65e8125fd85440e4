#include "gate/probes/read/line_tables.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "gate/base/text.hpp"
#include "gate/profile/reach.hpp"

namespace weir::probes {
namespace {

// Takes values from the front; what is not there is 0 or empty, and `bad`.
struct Cursor {
  std::string_view left;
  bool bad = false;

  std::string_view bytes(std::uint64_t size) {
    bad = bad || size > left.size();
    const std::string_view taken = left.substr(0, bad ? 0 : size);
    left.remove_prefix(taken.size());
    return taken;
  }
  std::uint64_t number(std::size_t size) {
    std::uint64_t value = 0;
    const std::string_view taken = bytes(size);
    for (std::size_t i = taken.size(); i-- > 0;) {
      value = value << 8 | static_cast<unsigned char>(taken[i]);
    }
    return value;
  }
  // LEB128; signed ones are only passed over.
  std::uint64_t leb() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; !bad; shift += 7) {
      const std::uint64_t byte = number(1);
      if (shift < 64) value |= (byte & 0x7F) << shift;
      if ((byte & 0x80) == 0) break;
    }
    return value;
  }
  std::string_view text() {
    const std::string_view taken = left.substr(0, left.find('\0'));
    bytes(taken.size() + 1);
    return taken;
  }
};

using Sections = std::map<std::string_view, std::string_view>;

// By name; none of them where the table of sections is not whole. Compressed ones are left out.
Sections sections_of(std::string_view elf) {
  constexpr std::uint64_t k_size = 64, k_compressed = 0x800;
  const auto at = [&](std::uint64_t offset, std::size_t size) {
    return Cursor{elf.substr(std::min<std::uint64_t>(offset, elf.size()))}.number(size);
  };
  const std::uint64_t table = at(40, 8), count = at(60, 2);
  if (!elf.starts_with("\x7F"
                       "ELF\x02\x01") ||
      table > elf.size() || (elf.size() - table) / k_size < count) {
    return {};
  }
  const auto part = [&](std::uint64_t section) {
    const std::uint64_t from = at(section + 24, 8);
    return from > elf.size() ? std::string_view() : elf.substr(from, at(section + 32, 8));
  };
  const std::string_view names = part(table + k_size * std::min(count, at(62, 2)));
  Sections sections;
  for (std::uint64_t section = table; section < table + k_size * count; section += k_size) {
    const std::uint64_t name = at(section, 4);
    if (name >= names.size() || (at(section + 8, 8) & k_compressed) != 0) continue;
    sections[Cursor{names.substr(name)}.text()] = part(section);
  }
  return sections;
}

struct Tables {
  std::set<std::string> named, with_lines;
  std::set<std::string> guests;  // in a unit that another file is the first of
};

class Unit {
 public:
  Unit(std::string_view unit, std::size_t offset_size, const Sections& sections, Tables& out)
      : at_{unit}, offset_size_(offset_size), sections_(sections), out_(out) {}

  // False where it is not whole, or of a version that is not known.
  bool read() {
    version_ = at_.number(2);
    if (version_ < 2 || version_ > 5) return false;
    if (version_ == 5) at_.bytes(2);  // sizes of addresses
    Cursor program{at_.left};
    program.bytes(program.number(offset_size_));
    at_.number(offset_size_);
    at_.bytes(version_ >= 4 ? 5 : 4);
    const std::uint64_t first_special = at_.number(1);
    const std::string_view operands = at_.bytes(std::max<std::uint64_t>(1, first_special) - 1);
    version_ == 5 ? read_tables() : read_old_tables();
    if (at_.bad) return false;
    const std::size_t first = version_ == 5 ? 0 : 1;
    for (const std::string& file : files_) {
      if (file.empty()) continue;
      out_.named.insert(file);
      if (first < files_.size() && file != files_[first]) out_.guests.insert(file);
    }
    run(program, first_special, operands);
    return !program.bad;
  }

 private:
  void add(std::string_view name, std::uint64_t folder) {
    std::string path(name);
    if (!name.starts_with('/') && folder < folders_.size()) path = folders_[folder] + "/" + path;
    files_.push_back(text::printable(profile::normal_path(path)));
  }
  void read_old_tables() {
    folders_.emplace_back(".");  // that of the compiler, which is not here
    while (!at_.bad && !at_.left.starts_with('\0')) folders_.emplace_back(at_.text());
    at_.bytes(1);
    files_.emplace_back();  // numbers begin at 1
    while (!at_.bad && !at_.left.starts_with('\0')) {
      const std::string_view name = at_.text();
      add(name, at_.leb());
      at_.leb(), at_.leb();
    }
  }
  void read_tables() {
    read_entries([&](std::string_view name, std::uint64_t) {
      const bool below = !name.starts_with('/') && !folders_.empty();
      folders_.push_back((below ? folders_.front() + "/" : "") + std::string(name));
    });
    read_entries([&](std::string_view name, std::uint64_t folder) { add(name, folder); });
  }
  template <class Take>
  void read_entries(const Take& take) {
    constexpr std::uint64_t k_path = 1, k_folder = 2;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> forms(at_.number(1));
    for (auto& [what, form] : forms) what = at_.leb(), form = at_.leb();
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
  std::pair<std::string_view, std::uint64_t> value(std::uint64_t form) {
    const auto in = [&](const char* section) {
      const auto found = sections_.find(section);
      const std::uint64_t from = at_.number(offset_size_);
      at_.bad = at_.bad || found == sections_.end() || from >= found->second.size();
      return at_.bad ? std::string_view() : Cursor{found->second.substr(from)}.text();
    };
    switch (form) {
      case 0x08:
        return {at_.text(), 0};  // string
      case 0x0E:
        return {in(".debug_str"), 0};  // strp
      case 0x1F:
        return {in(".debug_line_str"), 0};  // line_strp
      case 0x0B:
        return {"", at_.number(1)};  // data1
      case 0x05:
        return {"", at_.number(2)};  // data2
      case 0x0F:
        return {"", at_.leb()};  // udata
      case 0x1E:
        at_.bytes(16);
        return {};  // data16, an MD5
      default:
        at_.bad = true;
        return {};
    }
  }

  void run(Cursor& program, std::uint64_t first_special, std::string_view operands) {
    std::uint64_t file = 1;
    const auto row = [&] {
      if (file < files_.size()) out_.with_lines.insert(files_[file]);
    };
    while (!program.left.empty() && !program.bad) {
      const std::uint64_t code = program.number(1);
      if (code >= first_special || code == 1) {  // special, copy
        row();
      } else if (code == 0) {  // extended; its first ends a sequence
        if (program.bytes(program.leb()).starts_with('\x01')) file = 1;
      } else if (code == 4) {
        file = program.leb();
      } else if (code == 9) {
        program.bytes(2);
      } else {
        for (char n = operands[code - 1]; n > 0; --n) program.leb();
      }
    }
  }

  Cursor at_;
  const std::size_t offset_size_;
  const Sections& sections_;
  Tables& out_;
  std::uint64_t version_ = 0;
  std::vector<std::string> folders_, files_;
};

}  // namespace

std::optional<std::set<std::string>> maybe_inlined(std::string_view elf) {
  const Sections sections = sections_of(elf);
  const auto lines = sections.find(".debug_line");
  if (lines == sections.end()) return std::nullopt;
  Tables tables;
  Cursor at{lines->second};
  while (!at.left.empty()) {
    std::uint64_t size = at.number(4);
    const bool wide = size == 0xFFFFFFFF;
    if (wide) size = at.number(8);
    const std::string_view unit = at.bytes(size);
    if (at.bad || !Unit(unit, wide ? 8 : 4, sections, tables).read()) return std::nullopt;
  }
  std::erase_if(tables.named, [&](const std::string& file) {
    return tables.with_lines.contains(file) && !tables.guests.contains(file);
  });
  return std::move(tables.named);
}

}  // namespace weir::probes
