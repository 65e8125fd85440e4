// A small ELF file made to order, laid out as linkers do: header, segments, loader, symbols, names,
// dynamic section; addresses are places in the file. No table of sections, as in a stripped file.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weir::probes {

struct ElfBytes {
  std::uint16_t type = 3, machine = 62;  // ET_DYN, x86-64
  std::optional<std::string> loader = {};
  std::vector<std::string> needed = {};
  std::string runpath = {}, rpath = {}, soname = {};
  std::vector<std::string> imported = {}, exported = {};
  std::uint64_t flags_1 = 0;
  bool symbolic = false;
  bool dynamic = true;
  std::string section = {};  // name of a section of 16 bytes; "": the file has no sections

  [[nodiscard]] std::string str() const {
    std::string names(1, '\0');
    const auto name = [&](const std::string& text) {
      const std::size_t at = names.size();
      names += text + '\0';
      return at;
    };
    std::string symbols(24, '\0');
    const auto symbol = [&](const std::string& text, bool here) {
      put(symbols, name(text), 4);
      put(symbols, 0x12, 1);  // STB_GLOBAL, STT_FUNC
      put(symbols, 0, 1);
      put(symbols, here ? 1 : 0, 2);
      put(symbols, here ? 0x1000 : 0, 8);
      put(symbols, 0, 8);
    };
    for (const std::string& function : imported) symbol(function, false);
    for (const std::string& function : exported) symbol(function, true);
    std::vector<std::pair<std::uint64_t, std::uint64_t>> tags;
    for (const std::string& library : needed) tags.emplace_back(1, name(library));
    if (!soname.empty()) tags.emplace_back(14, name(soname));
    if (!rpath.empty()) tags.emplace_back(15, name(rpath));
    if (!runpath.empty()) tags.emplace_back(29, name(runpath));
    if (symbolic) tags.emplace_back(16, 0);
    if (flags_1 != 0) tags.emplace_back(0x6ffffffb, flags_1);

    const std::size_t segments = 1 + (loader ? 1 : 0) + (dynamic ? 1 : 0);
    const std::string loader_text = loader ? *loader + '\0' : "";
    const std::size_t loader_at = 64 + segments * 56;
    const std::size_t symbols_at = loader_at + loader_text.size();
    const std::size_t names_at = symbols_at + symbols.size();
    const std::size_t dynamic_at = names_at + names.size();
    tags.emplace_back(5, names_at);
    tags.emplace_back(6, symbols_at);
    tags.emplace_back(10, names.size());
    tags.emplace_back(0, 0);
    std::string dynamic_text;
    for (const auto& [tag, value] : tags) {
      put(dynamic_text, tag, 8);
      put(dynamic_text, value, 8);
    }
    std::string out(
        "\x7f"
        "ELF\2\1\1",
        7);
    out.resize(16);
    put(out, type, 2);
    put(out, machine, 2);
    put(out, 1, 4);
    put(out, 0x1000, 8);  // start address
    put(out, 64, 8);      // segments
    const std::size_t file_size = dynamic_at + dynamic_text.size();
    put(out, section.empty() ? 0 : file_size, 8);
    put(out, 0, 4);
    put(out, 64, 2);
    put(out, 56, 2);
    put(out, segments, 2);
    put(out, 64, 2);
    put(out, section.empty() ? 0 : 2, 2);
    put(out, section.empty() ? 0 : 1, 2);
    segment(out, 1, 0, file_size);
    if (loader) segment(out, 3, loader_at, loader_text.size());
    if (dynamic) segment(out, 2, dynamic_at, dynamic_text.size());
    return out + loader_text + symbols + names + dynamic_text +
           (section.empty() ? "" : section_table(file_size));
  }

 private:
  static void put(std::string& out, std::uint64_t value, int size) {
    for (int i = 0; i < size; ++i) {
      out += static_cast<char>(i < 8 ? value >> (8 * i) & 0xff : 0);
    }
  }
  // Returns the headers of the section and of the section with its name, and that name.
  [[nodiscard]] std::string section_table(std::uint64_t at) const {
    std::string out;
    const std::uint64_t names_at = at + 128, names_size = section.size() + 2;
    for (const auto& [name_at, type_of, begin, size] :
         {std::array<std::uint64_t, 4>{1, 1, 0, 16}, {0, 3, names_at, names_size}}) {
      put(out, name_at, 4);
      put(out, type_of, 4);
      put(out, 0, 16);
      put(out, begin, 8);
      put(out, size, 8);
      put(out, 0, 24);
    }
    return out + '\0' + section + '\0';
  }
  static void segment(std::string& out, std::uint64_t type_of, std::uint64_t at,
                      std::uint64_t size) {
    put(out, type_of, 4);
    put(out, 4, 4);
    for (int i = 0; i < 3; ++i) put(out, at, 8);
    for (int i = 0; i < 2; ++i) put(out, size, 8);
    put(out, 1, 8);
  }
};

}  // namespace weir::probes
