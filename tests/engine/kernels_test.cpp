// The CPU's kernels against plain sums in double precision, for each type and for odd sizes.
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "tools/engine/cpu_kernels.hpp"
#include "tools/engine/half.hpp"
#include "tools/engine/model.hpp"
#include "tools/engine/workers.hpp"

namespace weir::engine {
namespace kernels_test {

using model::TensorType;

std::vector<float> random_values(std::size_t n, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& value : values) value = normal(engine);
  return values;
}

struct Matrix {
  std::vector<unsigned char> bytes;
  Tensor tensor;

  Matrix(TensorType type, std::uint32_t columns, std::uint32_t rows) {
    const auto& info = model::tensor_type_info(type);
    const std::vector<std::uint64_t> dims{columns, rows};
    bytes.resize(model::tensor_bytes(info, dims).value());
    model::TensorBytes(1, "w", type, model::Fill::weights, columns).write(0, bytes);
    tensor = {"w", type, columns, rows, bytes.size() / rows, std::as_bytes(std::span(bytes))};
  }
};

TEST(Kernels, MultiplyLikePlainSumsOfUnpackedWeights) {
  const struct {
    TensorType type;
    std::vector<std::uint32_t> columns;
  } cases[] = {
      // Below, at and beside every length of a vector register.
      {TensorType::f32, {1, 2, 3, 7, 8, 15, 16, 17, 31, 63, 64, 65, 129, 256}},
      {TensorType::f16, {2, 4, 6, 14, 16, 18, 34, 62, 64, 66, 130, 256}},
      {TensorType::bf16, {2, 4, 6, 14, 16, 18, 34, 62, 64, 66, 130, 256}},
      {TensorType::q8_0, {32, 64, 96, 544}},
      {TensorType::q4_0, {32, 64, 96, 544}},
  };
  for (const auto& c : cases) {
    for (const std::uint32_t columns : c.columns) {
      const Matrix matrix(c.type, columns, 5);
      std::vector<float> x = random_values(columns, columns);
      Quantized quantized;
      if (needs_quantized(c.type)) {
        quantize(x, quantized);
        // The kernel multiplies with the quantized vector, so the plain sum takes the same.
        for (std::size_t i = 0; i < x.size(); ++i) {
          x[i] = quantized.scales[i / 32] * static_cast<float>(quantized.values[i]);
        }
      }
      for (const bool add : {false, true}) {
        std::vector<float> y(5, 1);
        multiply_rows(c.type, matrix.tensor.bytes.data(), matrix.tensor.row_bytes, columns, 5,
                      {x.data(), &quantized}, add, y.data());
        for (std::uint32_t row = 0; row < 5; ++row) {
          std::vector<float> weights(columns);
          unpack_row(matrix.tensor, row, weights);
          double sum = add ? 1 : 0, size = 1;
          for (std::uint32_t i = 0; i < columns; ++i) {
            sum += double{weights[i]} * double{x[i]};
            size += std::fabs(double{weights[i]} * double{x[i]});
          }
          // Each of the sums rounds by less than 2^-24 of what it adds up.
          EXPECT_NEAR(y[row], sum, size * 1e-6)
              << model::tensor_type_info(c.type).name << " " << columns << " add " << add;
        }
      }
    }
  }
}

TEST(Kernels, QuantizeToTheNearestOf255Steps) {
  std::vector<float> x = random_values(64, 3);
  std::fill(x.begin() + 32, x.end(), 0.0F);  // a block of zeros has the scale 0
  Quantized q;
  quantize(x, q);
  ASSERT_EQ(q.scales.size(), 2U);
  EXPECT_EQ(q.scales[1], 0.0F);
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_LE(std::fabs(x[i] - q.scales[i / 32] * static_cast<float>(q.values[i])),
              0.5001F * q.scales[i / 32])
        << i;
  }
}

TEST(Kernels, HalvesAreThoseOfIeee754) {
  const struct {
    std::uint16_t half;
    float value;
  } cases[] = {{0x0000, 0.0F},          {0x3c00, 1.0F},       {0xc000, -2.0F},
               {0x7bff, 65504.0F},      {0x0400, 0x1p-14F},   {0x0001, 0x1p-24F},
               {0x83ff, -0x1.ff8p-15F}, {0x3555, 0x1.554p-2F}};
  for (const auto& c : cases) EXPECT_EQ(float_of_half(c.half), c.value) << c.half;
  EXPECT_TRUE(std::isinf(float_of_half(0x7c00)));
  EXPECT_TRUE(std::isnan(float_of_half(0x7e00)));
}

TEST(Kernels, ActivateAndSoftenLikeTheFormulas) {
  for (const std::size_t n : {1U, 5U, 16U, 33U, 700U}) {
    std::vector<float> gate = random_values(n, 1);
    const std::vector<float> before = gate, up = random_values(n, 2);
    silu_times(gate, up);
    std::vector<float> soft = before;
    const float sum = exponentials(soft);
    double all = 0;
    const double largest = *std::max_element(before.begin(), before.end());
    for (const float value : before) all += std::exp(double{value} - largest);
    EXPECT_NEAR(sum / all, 1, 1e-5) << n;
    for (std::size_t i = 0; i < n; ++i) {
      const double g = before[i];
      EXPECT_NEAR(gate[i], g / (1 + std::exp(-g)) * double{up[i]}, 1e-5) << n;
      EXPECT_NEAR(soft[i], std::exp(g - largest), 1e-5) << n;
    }
  }
}

TEST(Workers, DoEveryPartOnceWhateverTheirNumber) {
  for (const unsigned threads : {1U, 2U, 5U}) {
    Workers workers(threads);
    for (std::uint32_t count = 1; count < 200; count += 7) {
      std::vector<std::atomic<int>> done(count);
      workers.share(count, 1, [&](std::uint32_t first, std::uint32_t last) {
        for (std::uint32_t i = first; i < last; ++i) ++done[i];
      });
      for (const auto& times : done) EXPECT_EQ(times, 1) << threads << " threads, " << count;
    }
  }
}

}  // namespace kernels_test
}  // namespace weir::engine
