// Reads the sections of a 64-bit little-endian ELF file. Bytes are hostile. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>

namespace weir::probes {

// Takes values from the front of bytes. Once they run out, values are 0 or empty, and `bad` is set.
struct LittleEndianReader {
  std::string_view rest;
  bool bad = false;

  std::string_view bytes(std::uint64_t size) {
    bad = bad || size > rest.size();
    const std::string_view front = rest.substr(0, bad ? 0 : size);
    rest.remove_prefix(front.size());
    return front;
  }
  // A little-endian number of `size` bytes.
  std::uint64_t number(std::size_t size) {
    std::uint64_t value = 0;
    const std::string_view digits = bytes(size);
    for (std::size_t i = digits.size(); i-- > 0;) {
      value = value << 8 | static_cast<unsigned char>(digits[i]);
    }
    return value;
  }
  // A LEB128 number. The value of a signed one is wrong, but its bytes are skipped.
  std::uint64_t leb() {
    std::uint64_t value = 0, byte = 0x80;
    for (unsigned shift = 0; !bad && (byte & 0x80) != 0; shift += 7) {
      byte = number(1);
      if (shift < 64) value |= (byte & 0x7F) << shift;
    }
    return value;
  }
  // A text that a 0 ends.
  std::string_view text() {
    const std::string_view text = rest.substr(0, rest.find('\0'));
    bytes(text.size() + 1);
    return text;
  }
};

struct Section {
  std::string_view bytes;  // empty for sections without bytes in the file
  std::uint64_t size = 0;
  std::uint64_t type = 0, address = 0;
};
using Sections = std::map<std::string_view, Section>;

inline constexpr std::string_view k_elf_64_bits = "\x7F\x45LF\x02\x01";

// Calls `visit` with the name and each section, in order; with an empty name where it is broken.
// None where the table of sections is broken. Names and bytes point into `elf`.
template <class Visit>
void each_section(std::string_view elf, Visit visit) {
  constexpr std::uint64_t k_size = 64, k_compressed = 0x800;
  const auto from = [&](std::uint64_t at) { return elf.substr(std::min(at, elf.size())); };
  const auto number = [&](std::uint64_t at, std::size_t size) {
    return LittleEndianReader{from(at)}.number(size);
  };
  const auto part = [&](std::uint64_t section) {
    return from(number(section + 24, 8)).substr(0, number(section + 32, 8));
  };
  const std::uint64_t table = number(40, 8), count = number(60, 2);
  if (!elf.starts_with(k_elf_64_bits) || from(table).size() / k_size < count) return;
  const std::string_view names = part(table + k_size * std::min(count, number(62, 2)));
  for (std::uint64_t section = table; section < table + k_size * count; section += k_size) {
    const std::uint64_t name = number(section, 4);
    const bool is_compressed = (number(section + 8, 8) & k_compressed) != 0;
    visit(name < names.size() ? LittleEndianReader{names.substr(name)}.text() : std::string_view(),
          Section{is_compressed ? std::string_view() : part(section), number(section + 32, 8),
                  number(section + 4, 4), number(section + 16, 8)},
          is_compressed);
  }
}

// The sections by name, without compressed ones; none where the table of sections is broken. Names
// and bytes point into `elf`.
[[nodiscard]] inline Sections read_sections(std::string_view elf) {
  Sections sections;
  each_section(elf, [&](std::string_view name, const Section& section, bool is_compressed) {
    if (!name.empty() && !is_compressed) sections[name] = section;
  });
  return sections;
}

}  // namespace weir::probes
