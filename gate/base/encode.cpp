#include "gate/base/encode.hpp"

#include <cstdint>

#include <fmt/format.h>

#include "gate/base/text.hpp"

namespace weir {
namespace {

constexpr std::string_view k_alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string base64(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      const bool there = i + k < bytes.size();
      group = (group << 8U) | (there ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    const std::size_t left = bytes.size() - i;
    out += k_alphabet[group >> 18U];
    out += k_alphabet[(group >> 12U) & 63U];
    out += left > 1 ? k_alphabet[(group >> 6U) & 63U] : '=';
    out += left > 2 ? k_alphabet[group & 63U] : '=';
  }
  return out;
}

std::optional<std::string> base64_decoded(std::string_view text) {
  std::string out;
  std::uint32_t bits = 0;
  int held = 0;
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
    held += 6;
    if (held < 8) continue;
    held -= 8;
    out += static_cast<char>((bits >> static_cast<unsigned>(held)) & 0xFFU);
    bits &= (1U << static_cast<unsigned>(held)) - 1U;
  }
  // Bits left over must be none, else two texts would mean the same bytes.
  if (digits % 4 != 0 || padding > 2 || bits != 0) return std::nullopt;
  return out;
}

std::string percent_encoded(std::string_view bytes) {
  constexpr std::string_view k_unreserved = "-._~";
  std::string out;
  out.reserve(bytes.size());
  for (const char c : bytes) {
    if (text::is_alphanumeric(c) || k_unreserved.find(c) != std::string_view::npos) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

std::string hex(const unsigned char* bytes, std::size_t size) {
  std::string digits;
  for (std::size_t i = 0; i < size; ++i) digits += fmt::format("{:02x}", bytes[i]);
  return digits;
}

}  // namespace weir
