// The sections of a 64-bit little-endian ELF file, and values out of them. Bytes are hostile. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>

namespace weir::probes {

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
    std::uint64_t value = 0, byte = 0x80;
    for (unsigned shift = 0; !bad && (byte & 0x80) != 0; shift += 7) {
      byte = number(1);
      if (shift < 64) value |= (byte & 0x7F) << shift;
    }
    return value;
  }
  std::string_view text() {
    const std::string_view taken = left.substr(0, left.find('\0'));
    bytes(taken.size() + 1);
    return taken;
  }
};

struct Section {
  std::string_view bytes;  // empty where the file holds none of it
  std::uint64_t size = 0;
};
using Sections = std::map<std::string_view, Section>;

// By name, without compressed ones; none where the table of sections is not whole. The names and
// bytes are those of `elf`.
[[nodiscard]] inline Sections sections_of(std::string_view elf) {
  constexpr std::uint64_t k_size = 64, k_compressed = 0x800;
  const auto from = [&](std::uint64_t at) { return elf.substr(std::min(at, elf.size())); };
  const auto number = [&](std::uint64_t at, std::size_t size) {
    return Cursor{from(at)}.number(size);
  };
  const auto part = [&](std::uint64_t section) {
    return from(number(section + 24, 8)).substr(0, number(section + 32, 8));
  };
  const std::uint64_t table = number(40, 8), count = number(60, 2);
  if (!elf.starts_with("\x7F\x45LF\x02\x01") || from(table).size() / k_size < count) return {};
  const std::string_view names = part(table + k_size * std::min(count, number(62, 2)));
  Sections sections;
  for (std::uint64_t section = table; section < table + k_size * count; section += k_size) {
    const std::uint64_t name = number(section, 4);
    if (name >= names.size() || (number(section + 8, 8) & k_compressed) != 0) continue;
    sections[Cursor{names.substr(name)}.text()] = {part(section), number(section + 32, 8)};
  }
  return sections;
}

}  // namespace weir::probes
