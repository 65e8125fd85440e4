// Metadata values of GGUF files, in the file's own encoding.
#include <bit>

#include "gate/model/gguf.hpp"
#include "gate/model/gguf_encoding.hpp"

namespace weir::model {
namespace {

bool is_signed(GgufType type) {
  return type == GgufType::i8 || type == GgufType::i16 || type == GgufType::i32 ||
         type == GgufType::i64;
}
bool is_integer(GgufType type) {
  return fixed_size(type) && type != GgufType::f32 && type != GgufType::f64 &&
         type != GgufType::boolean;
}

// Returns the integer at the beginning of `bytes`, its sign extended to 64 bits.
std::int64_t integer_at(GgufType type, std::string_view bytes) {
  const std::uint64_t size = fixed_size(type).value_or(8);
  const std::uint64_t above = 64 - 8 * size;
  const std::uint64_t word = decode<std::uint64_t>(bytes, size) << above;
  if (is_signed(type)) return static_cast<std::int64_t>(word) >> above;
  return static_cast<std::int64_t>(word >> above);
}

std::optional<std::uint64_t> unsigned_at(GgufType type, std::string_view bytes) {
  const std::int64_t value = integer_at(type, bytes);
  if (value < 0 && type != GgufType::u64) return std::nullopt;
  return static_cast<std::uint64_t>(value);
}

// Appends `value` as `type` to `out`; returns false if it does not fit.
bool append_unsigned(std::string& out, GgufType type, std::uint64_t value) {
  const std::uint64_t size = fixed_size(type).value_or(0);
  const std::uint64_t bits = 8 * size - (is_signed(type) ? 1 : 0);
  if (bits < 64 && value >> bits != 0) return false;
  encode(out, value, size);
  return true;
}

// Returns an array of elements with 32 bits.
GgufValue encode_words(GgufType element, const auto& values) {
  std::string bytes;
  for (const auto value : values) encode(bytes, std::bit_cast<std::uint32_t>(value));
  return {element, values.size(), std::move(bytes)};
}

}  // namespace

GgufValue::GgufValue(GgufType type, std::string bytes) : type_(type), bytes_(std::move(bytes)) {}

GgufValue::GgufValue(GgufType element, std::uint64_t count, std::string bytes)
    : type_(GgufType::array), element_(element), count_(count), bytes_(std::move(bytes)) {}

GgufValue GgufValue::u32(std::uint32_t value) {
  std::string bytes;
  encode(bytes, value);
  return {GgufType::u32, std::move(bytes)};
}

GgufValue GgufValue::f32_bits(std::uint32_t ieee754) {
  return {GgufType::f32, u32(ieee754).bytes()};
}

GgufValue GgufValue::boolean(bool value) {
  return {GgufType::boolean, std::string(1, value ? '\1' : '\0')};
}

GgufValue GgufValue::string(std::string_view value) {
  std::string bytes;
  encode_string(bytes, value);
  return {GgufType::string, std::move(bytes)};
}

GgufValue GgufValue::strings(std::span<const std::string> values) {
  std::string bytes;
  for (const std::string& value : values) encode_string(bytes, value);
  return {GgufType::string, values.size(), std::move(bytes)};
}

GgufValue GgufValue::i32s(std::span<const std::int32_t> values) {
  return encode_words(GgufType::i32, values);
}

GgufValue GgufValue::f32s(std::span<const float> values) {
  return encode_words(GgufType::f32, values);
}

std::optional<std::uint64_t> GgufValue::to_unsigned() const {
  if (!is_integer(type_)) return std::nullopt;
  return unsigned_at(type_, bytes_);
}

std::optional<std::string> GgufValue::to_string() const {
  if (type_ != GgufType::string) return std::nullopt;
  return bytes_.substr(8);
}

// Returns the elements of an array of integers; nullopt for other values, or if one is negative.
std::optional<std::vector<std::uint64_t>> GgufValue::to_unsigned_list() const {
  if (!is_array() || !is_integer(element_)) return std::nullopt;
  const std::uint64_t size = fixed_size(element_).value_or(1);
  std::vector<std::uint64_t> values;
  values.reserve(count_);
  for (std::uint64_t i = 0; i < count_; ++i) {
    const auto value = unsigned_at(element_, std::string_view(bytes_).substr(i * size));
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  return values;
}

// Returns the elements of an array of texts; nullopt for other values. Each is stored after its
// length in 8 bytes.
std::optional<std::vector<std::string>> GgufValue::to_string_list() const {
  if (!is_array() || element_ != GgufType::string) return std::nullopt;
  std::vector<std::string> values;
  values.reserve(count_);
  std::string_view rest = bytes_;
  for (std::uint64_t i = 0; i < count_; ++i) {
    const auto length = decode<std::uint64_t>(rest);
    values.emplace_back(rest.substr(8, length));
    rest.remove_prefix(8 + length);
  }
  return values;
}

std::optional<GgufValue> GgufValue::with_unsigned(std::uint64_t value) const {
  std::string bytes;
  if (!is_integer(type_) || !append_unsigned(bytes, type_, value)) return std::nullopt;
  return GgufValue(type_, std::move(bytes));
}

std::optional<GgufValue> GgufValue::with_unsigned_list(
    std::span<const std::uint64_t> values) const {
  if (!is_array() || !is_integer(element_)) return std::nullopt;
  std::string bytes;
  for (const std::uint64_t value : values) {
    if (!append_unsigned(bytes, element_, value)) return std::nullopt;
  }
  return GgufValue(element_, values.size(), std::move(bytes));
}

// Returns the array of the elements at `indices`; indices beyond the end are skipped. Other values,
// and arrays of arrays, stay as they are.
GgufValue GgufValue::with_elements_at(std::span<const std::uint64_t> indices) const {
  if (!is_array() || element_ == GgufType::array) return *this;
  const std::string_view bytes = bytes_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> byte_ranges;  // first byte, bytes
  byte_ranges.reserve(count_);
  for (std::uint64_t i = 0, offset = 0; i < count_; ++i) {
    const std::uint64_t size = element_ == GgufType::string
                                   ? 8 + decode<std::uint64_t>(bytes.substr(offset))
                                   : fixed_size(element_).value_or(1);
    byte_ranges.emplace_back(offset, size);
    offset += size;
  }
  std::string bytes_kept;
  std::uint64_t count = 0;
  for (const std::uint64_t index : indices) {
    if (index >= byte_ranges.size()) continue;
    bytes_kept += bytes.substr(byte_ranges[index].first, byte_ranges[index].second);
    ++count;
  }
  return {element_, count, std::move(bytes_kept)};
}

}  // namespace weir::model
