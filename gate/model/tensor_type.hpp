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

// X(type, number, name, values in a block, its bytes), and the half-precision scales in a block
// (see tensor_type.cpp), how many. The numbers are the file format's and never change.
#define WEIR_TENSOR_TYPES(X)                               \
  X(f32, 0, "F32", 1, 4)                                   \
  X(f16, 1, "F16", 1, 2)                                   \
  X(q4_0, 2, "Q4_0", 32, 18, {{{0, 2}}}, 1)                \
  X(q4_1, 3, "Q4_1", 32, 20, {{{0, 2}, {2, -1, true}}}, 2) \
  X(q5_0, 6, "Q5_0", 32, 22, {{{0, 3}}}, 1)                \
  X(q5_1, 7, "Q5_1", 32, 24, {{{0, 3}, {2, -1, true}}}, 2) \
  X(q8_0, 8, "Q8_0", 32, 34, {{{0, 6}}}, 1)                \
  X(q8_1, 9, "Q8_1", 32, 36, {{{0, 6}, {2, 6}}}, 2)        \
  X(q2_k, 10, "Q2_K", 256, 84, {{{80, 3}, {82, 3}}}, 2)    \
  X(q3_k, 11, "Q3_K", 256, 110, {{{108, 5}}}, 1)           \
  X(q4_k, 12, "Q4_K", 256, 144, {{{0, 8}, {2, 5}}}, 2)     \
  X(q5_k, 13, "Q5_K", 256, 176, {{{0, 9}, {2, 5}}}, 2)     \
  X(q6_k, 14, "Q6_K", 256, 210, {{{208, 7}}}, 1)           \
  X(q8_k, 15, "Q8_K", 256, 292)                            \
  X(iq2_xxs, 16, "IQ2_XXS", 256, 66, {{{0, 6}}}, 1)        \
  X(iq2_xs, 17, "IQ2_XS", 256, 74, {{{0, 6}}}, 1)          \
  X(iq3_xxs, 18, "IQ3_XXS", 256, 98, {{{0, 6}}}, 1)        \
  X(iq1_s, 19, "IQ1_S", 256, 50, {{{0, 3}}}, 1)            \
  X(iq4_nl, 20, "IQ4_NL", 32, 18, {{{0, 6}}}, 1)           \
  X(iq3_s, 21, "IQ3_S", 256, 110, {{{0, 7}}}, 1)           \
  X(iq2_s, 22, "IQ2_S", 256, 82, {{{0, 6}}}, 1)            \
  X(iq4_xs, 23, "IQ4_XS", 256, 136, {{{0, 10}}}, 1)        \
  X(i8, 24, "I8", 1, 1)                                    \
  X(i16, 25, "I16", 1, 2)                                  \
  X(i32, 26, "I32", 1, 4)                                  \
  X(i64, 27, "I64", 1, 8)                                  \
  X(f64, 28, "F64", 1, 8)                                  \
  X(iq1_m, 29, "IQ1_M", 256, 56)                           \
  X(bf16, 30, "BF16", 1, 2)                                \
  X(tq1_0, 34, "TQ1_0", 256, 54, {{{52, 0}}}, 1)           \
  X(tq2_0, 35, "TQ2_0", 256, 66, {{{64, 0}}}, 1)           \
  X(mxfp4, 39, "MXFP4", 32, 17)                            \
  X(nvfp4, 40, "NVFP4", 64, 36)                            \
  X(q1_0, 41, "Q1_0", 128, 18, {{{0, 0}}}, 1)              \
  X(q2_0, 42, "Q2_0", 64, 18, {{{0, 0}}}, 1)

enum class TensorType : std::uint32_t {
#define WEIR_ENUMERATOR(type, number, ...) type = number,
  WEIR_TENSOR_TYPES(WEIR_ENUMERATOR)
#undef WEIR_ENUMERATOR
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

// Distribution of random values.
enum class Fill {
  weights,   // both signs, standard deviation about 1/sqrt(row length)
  ones,      // 1 to 1.06: norm weights, rope factors
  negative,  // -1 to -2: decay rates of state space models
};
// Returns the distribution that suits a tensor, by its name ("blk.0.attn_norm.weight") and shape.
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
