// Compiled once for each instruction set: Highway includes this file again and again.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tools/engine/cpu_kernels.cpp"
#include <hwy/foreach_target.h>
// (in this order)
#include <algorithm>
#include <cmath>
#include <cstring>

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "tools/engine/cpu_kernels.hpp"

HWY_BEFORE_NAMESPACE();
namespace weir::engine::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using model::TensorType;

// Each takes Lanes(Floats) weights from place `i` of a row.
struct LoadF32 {
  static auto at(const std::byte* row, std::size_t i) {
    return hn::LoadU(Floats(), reinterpret_cast<const float*>(row) + i);
  }
};
struct LoadF16 {
  static auto at(const std::byte* row, std::size_t i) {
    const hn::Rebind<hwy::float16_t, Floats> d;
    return hn::PromoteTo(Floats(), hn::LoadU(d, reinterpret_cast<const hwy::float16_t*>(row) + i));
  }
};
struct LoadBf16 {
  static auto at(const std::byte* row, std::size_t i) {
    const hn::Rebind<hwy::bfloat16_t, Floats> d;
    return hn::PromoteTo(Floats(), hn::LoadU(d, reinterpret_cast<const hwy::bfloat16_t*>(row) + i));
  }
};

// A half float in front of a block.
HWY_INLINE float scale_at(const std::byte* block) {
  const hn::CappedTag<float, 1> one;
  const hn::Rebind<hwy::float16_t, decltype(one)> half;
  return hn::GetLane(
      hn::PromoteTo(one, hn::LoadU(half, reinterpret_cast<const hwy::float16_t*>(block))));
}

// The half float that is nearest.
HWY_INLINE float as_half(float value) {
  const hn::CappedTag<float, 1> one;
  const hn::Rebind<hwy::float16_t, decltype(one)> half;
  return hn::GetLane(hn::PromoteTo(one, hn::DemoteTo(half, hn::Set(one, value))));
}

// Returns the dot product of a row of weights (each of `Bytes` bytes) and the n floats at `x`. Four
// sums run at once, since one addition has to wait for the one before it. The last values are
// padded with zeros to a whole vector.
template <class Load, std::size_t Bytes>
HWY_INLINE float dot_floats(const std::byte* row, const float* x, std::size_t n) {
  const Floats d;
  const std::size_t lanes = hn::Lanes(d);
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  std::size_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    s0 = hn::MulAdd(Load::at(row, i), hn::LoadU(d, x + i), s0);
    s1 = hn::MulAdd(Load::at(row, i + lanes), hn::LoadU(d, x + i + lanes), s1);
    s2 = hn::MulAdd(Load::at(row, i + 2 * lanes), hn::LoadU(d, x + i + 2 * lanes), s2);
    s3 = hn::MulAdd(Load::at(row, i + 3 * lanes), hn::LoadU(d, x + i + 3 * lanes), s3);
  }
  for (; i + lanes <= n; i += lanes) {
    s0 = hn::MulAdd(Load::at(row, i), hn::LoadU(d, x + i), s0);
  }
  if (i < n) {  // padded with zeros
    HWY_ALIGN std::byte rest[Bytes * HWY_MAX_BYTES / 4] = {};
    HWY_ALIGN float x_rest[HWY_MAX_BYTES / 4] = {};
    std::memcpy(rest, row + i * Bytes, (n - i) * Bytes);
    std::memcpy(x_rest, x + i, (n - i) * sizeof(float));
    s1 = hn::MulAdd(Load::at(rest, 0), hn::Load(d, x_rest), s1);
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
}

using Shorts = hn::CappedTag<std::int16_t, 16>;
using Sums = hn::RepartitionToWide<Shorts>;

// Returns the dot product of a row of Q8_0 and a quantized vector of n values. A block of 32 values
// has 34 bytes: a scale (half), then 32 bytes. Products are summed as integers, then multiplied by
// both scales.
HWY_INLINE float dot_q8_0(const std::byte* row, const Quantized& x, std::size_t n) {
  const Shorts d;
  const Sums d_sum;
  const hn::RebindToFloat<Sums> d_float;
  const hn::Rebind<std::int8_t, Shorts> d_byte;
  auto total = hn::Zero(d_float);
  for (std::size_t block = 0; block < n / 32; ++block, row += 34) {
    const auto* row_bytes = reinterpret_cast<const std::int8_t*>(row + 2);
    const std::int8_t* vector_bytes = x.values.data() + block * 32;
    auto even_sums = hn::Zero(d_sum), odd_sums = even_sums;
    for (std::size_t i = 0; i < 32; i += hn::Lanes(d)) {
      even_sums = hn::ReorderWidenMulAccumulate(
          d_sum, hn::PromoteTo(d, hn::LoadU(d_byte, row_bytes + i)),
          hn::PromoteTo(d, hn::LoadU(d_byte, vector_bytes + i)), even_sums, odd_sums);
    }
    const auto scale = hn::Set(d_float, scale_at(row) * x.scales[block]);
    total = hn::MulAdd(hn::ConvertTo(d_float, hn::Add(even_sums, odd_sums)), scale, total);
  }
  return hn::GetLane(hn::SumOfLanes(d_float, total));
}

// Returns the dot product of a row of Q4_0 and a quantized vector of n values. A block of 32 values
// has 18 bytes: a scale (half), then 16 bytes with two values each, 8 too large.
HWY_INLINE float dot_q4_0(const std::byte* row, const Quantized& x, std::size_t n) {
  const Shorts d;
  const Sums d_sum;
  const hn::RebindToFloat<Sums> d_float;
  const hn::Rebind<std::int8_t, Shorts> d_byte;
  const hn::Rebind<std::uint8_t, Shorts> d_nibbles;
  const auto eight = hn::Set(d, 8), low = hn::Set(d, 15);
  auto total = hn::Zero(d_float);
  for (std::size_t block = 0; block < n / 32; ++block, row += 18) {
    const auto* row_bytes = reinterpret_cast<const std::uint8_t*>(row + 2);
    const std::int8_t* vector_bytes = x.values.data() + block * 32;
    auto even_sums = hn::Zero(d_sum), odd_sums = even_sums;
    for (std::size_t i = 0; i < 16; i += hn::Lanes(d)) {
      const auto both = hn::PromoteTo(d, hn::LoadU(d_nibbles, row_bytes + i));
      even_sums = hn::ReorderWidenMulAccumulate(
          d_sum, hn::Sub(hn::And(both, low), eight),
          hn::PromoteTo(d, hn::LoadU(d_byte, vector_bytes + i)), even_sums, odd_sums);
      even_sums = hn::ReorderWidenMulAccumulate(
          d_sum, hn::Sub(hn::ShiftRight<4>(both), eight),
          hn::PromoteTo(d, hn::LoadU(d_byte, vector_bytes + 16 + i)), even_sums, odd_sums);
    }
    const auto scale = hn::Set(d_float, scale_at(row) * x.scales[block]);
    total = hn::MulAdd(hn::ConvertTo(d_float, hn::Add(even_sums, odd_sums)), scale, total);
  }
  return hn::GetLane(hn::SumOfLanes(d_float, total));
}

// Multiplies rows of a matrix with the vector `x`. `add` adds the products to `out` instead of
// replacing it.
void MultiplyRows(TensorType type, const std::byte* row, std::size_t row_bytes, std::size_t columns,
                  std::size_t rows, const Operand& x, bool add, float* out) {
  const auto for_each_row = [&](const auto& dot_product) {
    for (std::size_t i = 0; i < rows; ++i, row += row_bytes) {
      const float sum = dot_product(row);
      out[i] = add ? out[i] + sum : sum;
    }
  };
  switch (type) {
    case TensorType::f32:
      return for_each_row([&](auto* at) { return dot_floats<LoadF32, 4>(at, x.values, columns); });
    case TensorType::f16:
      return for_each_row([&](auto* at) { return dot_floats<LoadF16, 2>(at, x.values, columns); });
    case TensorType::bf16:
      return for_each_row([&](auto* at) { return dot_floats<LoadBf16, 2>(at, x.values, columns); });
    case TensorType::q8_0:
      return for_each_row([&](auto* at) { return dot_q8_0(at, *x.quantized, columns); });
    case TensorType::q4_0:
      return for_each_row([&](auto* at) { return dot_q4_0(at, *x.quantized, columns); });
    default:
      return;
  }
}

float Dot(const float* a, const float* b, std::size_t n) {
  return dot_floats<LoadF32, 4>(reinterpret_cast<const std::byte*>(a), b, n);
}

void AddScaled(float factor, const float* in, float* out, std::size_t n) {
  const Floats d;
  const auto times = hn::Set(d, factor);
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    hn::StoreU(hn::MulAdd(times, hn::LoadU(d, in + i), hn::LoadU(d, out + i)), d, out + i);
  }
  for (; i < n; ++i) out[i] += factor * in[i];
}

void SiluTimes(float* gate, const float* up, std::size_t n) {
  const Floats d;
  const auto one = hn::Set(d, 1.0F);
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    const auto x = hn::LoadU(d, gate + i);
    const auto silu = hn::Div(x, hn::Add(one, hn::Exp(d, hn::Neg(x))));
    hn::StoreU(hn::Mul(silu, hn::LoadU(d, up + i)), d, gate + i);
  }
  for (; i < n; ++i) gate[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
}

// Replaces each value by exp(value - largest), and returns their sum: softmax without the division.
float Exponentials(float* values, std::size_t n) {
  const Floats d;
  const float largest = *std::max_element(values, values + n);
  const auto largest_in_lanes = hn::Set(d, largest);
  auto sums = hn::Zero(d);
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    const auto exponentials = hn::Exp(d, hn::Sub(hn::LoadU(d, values + i), largest_in_lanes));
    hn::StoreU(exponentials, d, values + i);
    sums = hn::Add(sums, exponentials);
  }
  float sum = hn::GetLane(hn::SumOfLanes(d, sums));
  for (; i < n; ++i) {
    values[i] = std::exp(values[i] - largest);
    sum += values[i];
  }
  return sum;
}

// Quantizes each block of 32 values to bytes, by a scale that maps the largest one to 127.
void Quantize(const float* x, std::size_t n, std::int8_t* out, float* scales) {
  const hn::CappedTag<float, 16> d;
  const hn::Rebind<std::int32_t, decltype(d)> d_int;
  const hn::Rebind<std::int8_t, decltype(d)> d_byte;
  for (std::size_t block = 0; block < n / 32; ++block, x += 32, out += 32) {
    auto largest = hn::Zero(d);
    for (std::size_t i = 0; i < 32; i += hn::Lanes(d)) {
      largest = hn::Max(largest, hn::Abs(hn::LoadU(d, x + i)));
    }
    const float scale = hn::GetLane(hn::MaxOfLanes(d, largest)) / 127;
    scales[block] = as_half(scale);  // as ggml keeps it: results differ less from llama.cpp's
    const auto inverse = hn::Set(d, scale > 0 ? 1 / scale : 0);
    for (std::size_t i = 0; i < 32; i += hn::Lanes(d)) {
      const auto whole = hn::NearestInt(hn::Mul(hn::LoadU(d, x + i), inverse));
      static_assert(std::is_same_v<hn::TFromD<decltype(d_int)>, std::int32_t>);
      hn::StoreU(hn::DemoteTo(d_byte, whole), d_byte, out + i);
    }
  }
}

}  // namespace weir::engine::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir::engine {

HWY_EXPORT(MultiplyRows);
HWY_EXPORT(Dot);
HWY_EXPORT(AddScaled);
HWY_EXPORT(SiluTimes);
HWY_EXPORT(Exponentials);
HWY_EXPORT(Quantize);

bool cpu_multiplies(model::TensorType type) {
  using model::TensorType;
  return type == TensorType::f32 || type == TensorType::f16 || type == TensorType::bf16 ||
         needs_quantized(type);
}

bool needs_quantized(model::TensorType type) {
  return type == model::TensorType::q8_0 || type == model::TensorType::q4_0;
}

void quantize(std::span<const float> values, Quantized& out) {
  out.values.resize(values.size());
  out.scales.resize(values.size() / 32);
  HWY_DYNAMIC_DISPATCH(Quantize)
  (values.data(), values.size(), out.values.data(), out.scales.data());
}

void multiply_rows(model::TensorType type, const std::byte* weights, std::size_t row_bytes,
                   std::size_t columns, std::size_t rows, const Operand& operand, bool add,
                   float* out) {
  HWY_DYNAMIC_DISPATCH(MultiplyRows)
  (type, weights, row_bytes, columns, rows, operand, add, out);
}

float dot(std::span<const float> a, std::span<const float> b) {
  return HWY_DYNAMIC_DISPATCH(Dot)(a.data(), b.data(), std::min(a.size(), b.size()));
}

void add_scaled(float factor, std::span<const float> in, std::span<float> out) {
  HWY_DYNAMIC_DISPATCH(AddScaled)(factor, in.data(), out.data(), std::min(in.size(), out.size()));
}

void silu_times(std::span<float> gate, std::span<const float> up) {
  HWY_DYNAMIC_DISPATCH(SiluTimes)(gate.data(), up.data(), std::min(gate.size(), up.size()));
}

float exponentials(std::span<float> values) {
  return HWY_DYNAMIC_DISPATCH(Exponentials)(values.data(), values.size());
}

std::string instruction_set() {
  // Dispatching chooses; until then the table has not looked at the processor.
  const float one = 1;
  (void)dot({&one, 1}, {&one, 1});
  const auto supported = static_cast<std::uint64_t>(hwy::SupportedTargets()) & HWY_TARGETS;
  return hwy::TargetName(static_cast<std::int64_t>(supported & (~supported + 1)));
}

void use_simplest_kernels() {
  hwy::DisableTargets(~HWY_STATIC_TARGET);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace weir::engine
#endif  // HWY_ONCE
