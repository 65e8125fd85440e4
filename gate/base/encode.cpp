// Encodings of bytes as text: base64, percent-encoding, hexadecimal.
#include "gate/base/encode.hpp"

#include <cstdint>

#include <fmt/format.h>

#include "gate/base/text.hpp"

namespace weir {
namespace {

constexpr std::string_view k_alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

// Encodes bytes as base64: three bytes as four letters, with '=' at the end of incomplete groups.
std::string base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      const bool has_byte = i + k < bytes.size();
      group = (group << 8U) | (has_byte ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    const std::size_t bytes_left = bytes.size() - i;
    text += k_alphabet[group >> 18U];
    text += k_alphabet[(group >> 12U) & 63U];
    text += bytes_left > 1 ? k_alphabet[(group >> 6U) & 63U] : '=';
    text += bytes_left > 2 ? k_alphabet[group & 63U] : '=';
  }
  return text;
}

// Decodes base64; nullopt if it is malformed or not canonical. Ignores line breaks.
std::optional<std::string> decode_base64(std::string_view text) {
  std::string bytes;
  std::uint32_t bits = 0;
  int bit_count = 0;
  std::size_t digits = 0;
  std::size_t padding = 0;
  for (const char c : text) {
    if (c == '\n' || c == '\r') continue;
    ++digits;
    if (c == '=') {
      ++padding;
      continue;
    }
    const std::size_t value = k_alphabet.find(c);
    if (value == std::string_view::npos || padding > 0) return std::nullopt;
    bits = (bits << 6U) | static_cast<std::uint32_t>(value);
    bit_count += 6;
    if (bit_count < 8) continue;
    bit_count -= 8;
    bytes += static_cast<char>((bits >> static_cast<unsigned>(bit_count)) & 0xFFU);
    bits &= (1U << static_cast<unsigned>(bit_count)) - 1U;
  }
  // Unused bits must be zero, else two texts would decode to the same bytes.
  if (digits % 4 != 0 || padding > 2 || bits != 0) return std::nullopt;
  return bytes;
}

// Percent-encodes all bytes except letters, digits and "-._~", for a URL.
std::string percent_encode(std::string_view bytes) {
  constexpr std::string_view k_unreserved = "-._~";
  std::string encoded;
  encoded.reserve(bytes.size());
  for (const char c : bytes) {
    if (text::is_alphanumeric(c) || k_unreserved.find(c) != std::string_view::npos) {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

std::string hex(const unsigned char* bytes, std::size_t size) {
  std::string digits;
  for (std::size_t i = 0; i < size; ++i) digits += fmt::format("{:02x}", bytes[i]);
  return digits;
}

}  // namespace weir
