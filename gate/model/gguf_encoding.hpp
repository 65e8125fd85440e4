// How GGUF writes down numbers: little-endian, sizes by type. Shared by reader and writer. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "gate/model/gguf.hpp"

namespace weir::model {

[[nodiscard]] constexpr bool known_type(std::uint32_t number) { return number <= 12; }

// Bytes of one value; nothing for strings and arrays.
[[nodiscard]] constexpr std::optional<std::uint64_t> fixed_size(GgufType type) {
  // By the type's number.
  constexpr std::uint64_t k_sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  const std::uint64_t size = k_sizes[static_cast<std::uint32_t>(type)];
  return size > 0 ? std::optional(size) : std::nullopt;
}

// REQUIRES: Word is unsigned and `bytes`, of any kind of char, has at least `size`.
template <class Word>
[[nodiscard]] Word decode(const auto& bytes, std::size_t size = sizeof(Word)) {
  Word word = 0;
  for (std::size_t i = 0; i < size; ++i) {
    word = static_cast<Word>(
        word | static_cast<Word>(Word{static_cast<unsigned char>(bytes[i])} << (8 * i)));
  }
  return word;
}

template <class Word>
void encode(std::string& out, Word word, std::size_t size = sizeof(Word)) {
  for (std::size_t i = 0; i < size; ++i) {
    out.push_back(static_cast<char>(static_cast<unsigned char>(word >> (8 * i))));
  }
}

inline void encode_string(std::string& out, std::string_view text) {
  encode<std::uint64_t>(out, text.size());
  out += text;
}

[[nodiscard]] constexpr std::uint64_t align_up(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

}  // namespace weir::model
