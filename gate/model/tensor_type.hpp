// Tensor types of ggml (as GGUF files number them) and deterministic random data for each.
//
// The data comes from integer arithmetic alone: no floating-point unit, no libm, no library
// generator. So the same seed gives the same bytes on every machine, compiler and rounding mode.
// Values are finite and small enough that a model of any depth gives finite logits. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "gate/base/result.hpp"

namespace weir::model {

// The numbers are the file format's and never change.
enum class TensorType : std::uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q8_1 = 9,
  q2_k = 10,
  q3_k = 11,
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
  q8_k = 15,
  iq2_xxs = 16,
  iq2_xs = 17,
  iq3_xxs = 18,
  iq1_s = 19,
  iq4_nl = 20,
  iq3_s = 21,
  iq2_s = 22,
  iq4_xs = 23,
  i8 = 24,
  i16 = 25,
  i32 = 26,
  i64 = 27,
  f64 = 28,
  iq1_m = 29,
  bf16 = 30,
  tq1_0 = 34,
  tq2_0 = 35,
  mxfp4 = 39,
  nvfp4 = 40,
  q1_0 = 41,
  q2_0 = 42,
};

struct TensorTypeInfo {
  TensorType type;
  std::string_view name;       // "Q4_K"
  std::uint32_t block_values;  // values in a block; a row is a whole number of blocks
  std::uint32_t block_bytes;
};

// Nothing for a number that is not in the list above.
[[nodiscard]] const TensorTypeInfo* find_tensor_type(std::uint32_t number);
// Ignores case: "q4_k" and "Q4_K".
[[nodiscard]] const TensorTypeInfo* find_tensor_type(std::string_view name);
[[nodiscard]] const TensorTypeInfo& tensor_type_info(TensorType type);

// Bytes of a tensor; its first dimension is the row. Fails with Code::data when a row is not a
// whole number of blocks or the size does not fit into 63 bits.
[[nodiscard]] Result<std::uint64_t> tensor_bytes(const TensorTypeInfo& info,
                                                 std::span<const std::uint64_t> dims);

// What random values shall look like.
enum class Fill {
  weights,   // both signs, standard deviation about 1/sqrt(row length)
  ones,      // 1 to 1.06: norm weights, rope factors
  negative,  // -1 to -2: decay rates of state space models
};
// Which of them suits a tensor, told from its name ("blk.0.attn_norm.weight") and shape.
[[nodiscard]] Fill fill_for(std::string_view tensor_name, std::span<const std::uint64_t> dims);

// The bytes of one tensor, block by block. A block depends on seed, tensor name, type, fill, row
// length and its own index alone, so any part can be made without the rest.
class TensorBytes {
 public:
  TensorBytes(std::uint64_t seed, std::string_view tensor_name, TensorType type, Fill fill,
              std::uint64_t row_length);

  // Writes blocks first_block, first_block + 1, … into `out`, whose size must be a multiple of the
  // type's block_bytes. Other threads may do the same on the same object.
  void write(std::uint64_t first_block, std::span<unsigned char> out) const;

 private:
  void shape(std::span<unsigned char> block) const;
  TensorTypeInfo info_;
  Fill fill_;
  unsigned spread_;  // weights are about 2^-spread_
  std::uint64_t key_;
};

}  // namespace weir::model
