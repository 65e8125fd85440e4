// Tensor types, and random data that is valid for each of them.
#include "gate/model/tensor_type.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/model/gguf_encoding.hpp"

namespace weir::model {
namespace {

// A half-precision scale inside a block: its place, and by how many powers of two it is smaller
// than the weights (the spread of the integers that it multiplies). The minimum of a block is
// chosen so that weights lie around 0: about -8 d for Q4_1, -16 d for Q5_1. It is `negated` if the
// format adds it.
struct HalfField {
  std::uint32_t offset;
  int shift;
  bool negated = false;
};
struct TypeRow : TensorTypeInfo {
  std::array<HalfField, 2> halves{};
  std::size_t half_count = 0;
};
#define WEIR_TYPE_ROW(type, number, name, values, bytes, ...) \
  {{TensorType::type, name, values, bytes} __VA_OPT__(, ) __VA_ARGS__},
constexpr TypeRow k_types[] = {WEIR_TENSOR_TYPES(WEIR_TYPE_ROW)};
#undef WEIR_TYPE_ROW

// splitmix64's output function: a bijection of 64 bits that looks random.
constexpr std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9U;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebU;
  x ^= x >> 31;
  return x;
}

// Files are little-endian on every machine.
template <class Word>
void store(std::span<unsigned char> bytes, std::size_t at, Word word) {
  for (std::size_t i = 0; i < sizeof(Word); ++i) {
    bytes[at + i] = static_cast<unsigned char>(word >> (8 * i));
  }
}

// Returns 2^-power x (1 + mantissa/1024) as a half; the smallest normal half is 2^-14.
std::uint16_t make_half(int power, unsigned mantissa) {
  const auto exponent = static_cast<unsigned>(15 - std::clamp(power, 0, 14));
  return static_cast<std::uint16_t>(exponent << 10 | (mantissa & 0x3ffU));
}

// Returns a float's bits, made of random bits: sign, two bits that lower the exponent, mantissa.
// Its root mean square is 0.88 x 2^-spread.
std::uint64_t random_float(std::uint64_t bits, unsigned mantissa_bits, unsigned exponent_bits,
                           Fill fill, unsigned spread) {
  const std::uint64_t one_exponent =
      (std::uint64_t{1} << (exponent_bits - 1)) - 1;  // exponent of 1.0
  const std::uint64_t mantissa = bits & ((std::uint64_t{1} << mantissa_bits) - 1);
  const std::uint64_t sign = std::uint64_t{1} << (mantissa_bits + exponent_bits);
  if (fill == Fill::ones) return one_exponent << mantissa_bits | mantissa >> 4;
  if (fill == Fill::negative) return sign | one_exponent << mantissa_bits | mantissa;
  const std::uint64_t exponent_drop = spread + (bits >> (mantissa_bits + 1) & 3U);
  const std::uint64_t exponent = one_exponent - std::min(exponent_drop, one_exponent - 1);
  const bool is_negative = (bits >> mantissa_bits & 1U) != 0;
  return (is_negative ? sign : 0) | exponent << mantissa_bits | mantissa;
}

}  // namespace

const TensorTypeInfo* find_tensor_type(std::uint32_t number) {
  return find_first(
      k_types, [&](const TypeRow& row) { return static_cast<std::uint32_t>(row.type) == number; });
}

const TensorTypeInfo* find_tensor_type(std::string_view name) {
  const std::string wanted = text::lower(name);
  return find_first(k_types, [&](const TypeRow& row) { return text::lower(row.name) == wanted; });
}

const TensorTypeInfo& tensor_type_info(TensorType type) {
  const TensorTypeInfo* row = find_tensor_type(static_cast<std::uint32_t>(type));
  return row != nullptr ? *row : k_types[0];  // every enumerator is in the table
}

// Returns the bytes of a tensor. Fails if a row is not a whole number of blocks, or on overflow.
Result<std::uint64_t> tensor_bytes(const TensorTypeInfo& info,
                                   std::span<const std::uint64_t> dims) {
  constexpr std::uint64_t k_max_bytes = std::numeric_limits<std::int64_t>::max();
  const std::uint64_t row = dims.empty() ? 1 : dims.front();
  if (row % info.block_values != 0) {
    return fail(Code::data, "a row of {} values is not a whole number of {} blocks of {}", row,
                info.name, info.block_values);
  }
  std::uint64_t bytes = row / info.block_values;
  if (bytes > k_max_bytes / info.block_bytes)
    return fail(Code::data, "a row of {} is too long", row);
  bytes *= info.block_bytes;
  for (std::size_t i = 1; i < dims.size(); ++i) {
    if (dims[i] != 0 && bytes > k_max_bytes / dims[i]) {
      return fail(Code::data, "a tensor of {} dimensions is too large", dims.size());
    }
    bytes *= dims[i];
  }
  return bytes;
}

Fill fill_for(std::string_view tensor_name, std::span<const std::uint64_t> dims) {
  const auto has = [&](std::string_view part) {
    return tensor_name.find(part) != std::string_view::npos;
  };
  if (tensor_name.ends_with(".bias")) return Fill::weights;
  if (has("ssm_a") && !has("ssm_a_norm") && !has("ssm_alpha")) return Fill::negative;
  if (has("norm") || has("rope_freqs") || has("rope_factors") || has("ssm_d")) return Fill::ones;
  const bool is_vector =
      std::all_of(dims.begin() + (dims.empty() ? 0 : 1), dims.end(), [](auto d) { return d == 1; });
  return is_vector ? Fill::ones : Fill::weights;
}

TensorBytes::TensorBytes(std::uint64_t seed, std::string_view tensor_name, TensorType type,
                         Fill fill, std::uint64_t row_length)
    : info_(tensor_type_info(type)),
      fill_(fill),
      // 2^-spread is 1/sqrt(row length), rounded to a power of two.
      spread_(
          static_cast<unsigned>(std::bit_width(std::max<std::uint64_t>(row_length, 1) - 1) + 1) /
          2),
      key_(0xcbf29ce484222325U) {
  for (const char c : tensor_name) {  // FNV-1a
    key_ ^= static_cast<unsigned char>(c);
    key_ *= 0x100000001b3U;
  }
  key_ = mix(key_ ^ mix(seed + 0x9e3779b97f4a7c15U));
}

// Fills `out` with random blocks, from number `first_block` on. A block depends on its number
// alone.
void TensorBytes::write(std::uint64_t first_block, std::span<unsigned char> out) const {
  const std::size_t size = info_.block_bytes;
  // Word w of the tensor's endless random stream is mix(key + w x golden ratio). Block b starts at
  // byte b x size of it, so that no bit is wasted.
  std::uint64_t word = 0;
  std::uint64_t word_index = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t at = first_block * size;
  for (unsigned char& byte : out) {
    if (at / 8 != word_index) {
      word_index = at / 8;
      word = mix(key_ + word_index * 0x9e3779b97f4a7c15U);
    }
    byte = static_cast<unsigned char>(word >> (8 * (at % 8)));
    ++at;
  }
  for (std::size_t start = 0; start + size <= out.size(); start += size) {
    shape(out.subspan(start, size));
  }
}

// Turns random bytes into a valid block. Most bits of a quantized block may have any value, but not
// its scales.
void TensorBytes::shape(std::span<unsigned char> block) const {
  const auto spread = [&] { return static_cast<int>(spread_); };
  // For a block that is one number, or begins with one.
  const auto make_float = [&]<class Word>(Word /*as*/, unsigned mantissa, unsigned exponent) {
    const auto bits = decode<Word>(block);
    store(block, 0, static_cast<Word>(random_float(bits, mantissa, exponent, fill_, spread_)));
  };
  switch (info_.type) {
    case TensorType::f16:
      return make_float(std::uint16_t{}, 10, 5);
    case TensorType::bf16:
      return make_float(std::uint16_t{}, 7, 8);
    case TensorType::f32:
    case TensorType::q8_k:
      return make_float(std::uint32_t{}, 23, 8);
    case TensorType::f64:
      return make_float(std::uint64_t{}, 52, 11);
    case TensorType::i8:
    case TensorType::i16:
    case TensorType::i32:
    case TensorType::i64:  // indices and tables: 0 is always within range
      std::ranges::fill(block, static_cast<unsigned char>(0));
      return;
    case TensorType::mxfp4:  // one power-of-two scale (bias 127, doubled integers up to 12)
      block[0] = static_cast<unsigned char>(127U - std::min(spread_ + 2, 100U));
      return;
    case TensorType::nvfp4:  // four scales of 4 exponent (bias 7) and 3 mantissa bits
      for (std::size_t i = 0; i < 4; ++i) {
        block[i] =
            static_cast<unsigned char>((7U - std::min(spread_ + 2, 6U)) << 3 | (block[i] & 7U));
      }
      return;
    case TensorType::iq1_m: {  // the scale is spread over the upper nibbles of four 16-bit words
      const unsigned scale = make_half(spread() + 3, decode<std::uint16_t>(block.subspan(48)));
      for (std::size_t i = 0; i < 4; ++i) {
        unsigned char& high = block[48 + 2 * i + 1];
        high = static_cast<unsigned char>((high & 0x0fU) | (scale >> (4 * i) & 0xfU) << 4);
      }
      return;
    }
    case TensorType::q8_0:
    case TensorType::q8_1:  // quantizers never write -128, and kernels count on it
      for (std::size_t i = info_.block_bytes - 32; i < info_.block_bytes; ++i) {
        if (block[i] == 0x80) block[i] = 0x81;
      }
      break;
    case TensorType::q6_k:  // 16 signed scales, here of -16 to 15
      for (std::size_t i = 192; i < 208; ++i) {
        block[i] = static_cast<unsigned char>((block[i] & 0x1fU) - 16U);
      }
      break;
    default:
      break;
  }
  const TypeRow& type_row =
      *find_first(k_types, [&](const TypeRow& row) { return row.type == info_.type; });
  for (std::size_t i = 0; i < type_row.half_count; ++i) {
    const HalfField& field = type_row.halves[i];
    const std::uint16_t value =
        make_half(spread() + field.shift, decode<std::uint16_t>(block.subspan(field.offset)));
    store(block, field.offset, static_cast<std::uint16_t>(value | (field.negated ? 0x8000U : 0U)));
  }
}

}  // namespace weir::model
