// Tests of tensor types and their blocks.
#include "gate/model/tensor_type.hpp"

#include <bit>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace weir::model {
namespace tensor_type_test {

std::vector<unsigned char> make_bytes(TensorType type, Fill fill, std::uint64_t row,
                                      std::uint64_t blocks) {
  std::vector<unsigned char> bytes(blocks * tensor_type_info(type).block_bytes);
  TensorBytes(1, "blk.0.attn_q.weight", type, fill, row).write(0, bytes);
  return bytes;
}

double read_half(const std::vector<unsigned char>& bytes, std::size_t at) {
  const int bits = bytes[at] | bytes[at + 1] << 8;
  const double magnitude = std::ldexp(1024 + (bits & 0x3ff), (bits >> 10 & 0x1f) - 25);
  EXPECT_NE(bits >> 10 & 0x1f, 0x1f) << "infinite or not a number";
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

TEST(TensorType, KnowsSizesOfBlocks) {
  // Bytes for one row of 256 values, as the format's block structures add up.
  const struct {
    const char* name;
    std::uint64_t bytes;
  } cases[] = {{"F32", 1024}, {"F16", 512},  {"BF16", 512},   {"Q4_0", 144},
               {"Q4_1", 160}, {"Q5_0", 176}, {"Q5_1", 192},   {"Q8_0", 272},
               {"Q2_K", 84},  {"Q3_K", 110}, {"Q4_K", 144},   {"Q5_K", 176},
               {"Q6_K", 210}, {"q6_k", 210}, {"IQ4_NL", 144}, {"IQ4_XS", 136}};
  for (const auto& [name, bytes] : cases) {
    const TensorTypeInfo* info = find_tensor_type(name);
    ASSERT_NE(info, nullptr) << name;
    const std::vector<std::uint64_t> dims{256};
    EXPECT_EQ(tensor_bytes(*info, dims).value_or(0), bytes) << name;
  }
  EXPECT_EQ(find_tensor_type(4), nullptr);  // a number no longer in use
  EXPECT_EQ(find_tensor_type("Q9_K"), nullptr);
}

TEST(TensorType, RefusesRowsThatAreNotWholeBlocksAndSizesBeyondRange) {
  const auto& q4 = tensor_type_info(TensorType::q4_k);
  EXPECT_FALSE(tensor_bytes(q4, std::vector<std::uint64_t>{128, 2}));
  EXPECT_FALSE(tensor_bytes(q4, std::vector<std::uint64_t>{256, 1ULL << 62, 8}));
  EXPECT_FALSE(
      tensor_bytes(tensor_type_info(TensorType::f64), std::vector<std::uint64_t>{1ULL << 61}));
  EXPECT_EQ(tensor_bytes(q4, std::vector<std::uint64_t>{512, 3}).value_or(0), 864U);  // 6 x 144
}

TEST(TensorType, MakesAnyPartWithoutTheRest) {
  for (const TensorType type : {TensorType::f16, TensorType::q6_k, TensorType::q4_0}) {
    const TensorBytes tensor(7, "output.weight", type, Fill::weights, 256);
    const std::size_t size = tensor_type_info(type).block_bytes;
    std::vector<unsigned char> full(20 * size);
    tensor.write(0, full);
    std::vector<unsigned char> part(5 * size);
    tensor.write(11, part);
    EXPECT_TRUE(std::equal(part.begin(), part.end(), full.begin() + 11 * static_cast<long>(size)));
  }
}

TEST(TensorType, SpreadsWeightsByRowLength) {
  for (const std::uint64_t row : {64U, 256U, 4096U}) {
    const auto bytes = make_bytes(TensorType::f16, Fill::weights, row, 10000);
    double sum = 0;
    double squares = 0;
    for (std::size_t i = 0; i < 10000; ++i) {
      const double value = read_half(bytes, 2 * i);
      sum += value;
      squares += value * value;
    }
    // A row of weights times a vector of ones then is about 1: within a factor of two of it.
    const double rms = std::sqrt(squares / 10000);
    EXPECT_GT(rms * std::sqrt(static_cast<double>(row)), 0.5) << row;
    EXPECT_LT(rms * std::sqrt(static_cast<double>(row)), 2.0) << row;
    EXPECT_LT(std::abs(sum / 10000), rms / 20) << row;  // standard error is rms/100
  }
}

TEST(TensorType, MakesNormsNearOneAndDecaysNegative) {
  const auto ones = make_bytes(TensorType::f32, Fill::ones, 64, 1000);
  const auto decays = make_bytes(TensorType::f32, Fill::negative, 64, 1000);
  for (std::size_t i = 0; i < 1000; ++i) {
    const auto value = [&](const std::vector<unsigned char>& bytes) {
      std::uint32_t bits = 0;
      for (unsigned b = 0; b < 4; ++b) bits |= std::uint32_t{bytes[4 * i + b]} << (8 * b);
      return std::bit_cast<float>(bits);
    };
    EXPECT_GE(value(ones), 1.0F);
    EXPECT_LT(value(ones), 1.0626F);
    EXPECT_LE(value(decays), -1.0F);
    EXPECT_GT(value(decays), -2.0F);
  }
}

TEST(TensorType, KeepsScalesOfQuantizedBlocksSmallAndFinite) {
  // The places of half-precision scales in each format; 2^-4 is a weight's size at 256 a row.
  const struct {
    TensorType type;
    std::size_t at;
  } cases[] = {{TensorType::q4_0, 0},  {TensorType::q8_0, 0},   {TensorType::q4_k, 0},
               {TensorType::q4_k, 2},  {TensorType::q6_k, 208}, {TensorType::q2_k, 80},
               {TensorType::q3_k, 108}};
  for (const auto& [type, at] : cases) {
    const auto bytes = make_bytes(type, Fill::weights, 256, 200);
    const std::size_t size = tensor_type_info(type).block_bytes;
    for (std::size_t block = 0; block < 200; ++block) {
      const double scale = read_half(bytes, block * size + at);
      EXPECT_GT(scale, 0) << tensor_type_info(type).name;
      EXPECT_LT(scale, 1.0 / 16) << tensor_type_info(type).name;
    }
  }
}

TEST(TensorType, ChoosesWhatSuitsATensor) {
  const struct {
    const char* name;
    std::vector<std::uint64_t> dims;
    Fill fill;
  } cases[] = {{"blk.0.attn_norm.weight", {256}, Fill::ones},
               {"blk.0.attn_q.weight", {256, 256}, Fill::weights},
               {"blk.0.attn_q.bias", {256}, Fill::weights},
               {"rope_freqs.weight", {32}, Fill::ones},
               {"blk.3.ssm_a", {16, 512}, Fill::negative},
               {"token_embd.weight", {256, 512}, Fill::weights}};
  for (const auto& [name, dims, fill] : cases) EXPECT_EQ(fill_for(name, dims), fill) << name;
}

}  // namespace tensor_type_test
}  // namespace weir::model
