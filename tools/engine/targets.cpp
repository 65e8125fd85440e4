// The functions of Highway's library that kernels call, so that its headers are enough: the
// engine then starts where no libhwy is.
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include <hwy/targets.h>

namespace hwy {
namespace {

// Returns the instruction sets that this processor has, as bits of Highway's targets.
std::int64_t detect_targets() {
  std::int64_t targets = HWY_STATIC_TARGET | HWY_SCALAR | HWY_EMU128;
#if HWY_ARCH_X86
  // The features that Highway compiles each target for. No processor has AVX2 and FMA without F16C
  // and LZCNT.
  const auto has = [](auto... each) { return (... && each); };
#define WEIR_HAS(feature) (__builtin_cpu_supports(feature) != 0)
  __builtin_cpu_init();
  if (has(WEIR_HAS("ssse3"))) targets |= HWY_SSSE3;
  if (has(WEIR_HAS("sse4.2"), WEIR_HAS("pclmul"), WEIR_HAS("aes"))) targets |= HWY_SSE4;
  if ((targets & HWY_SSE4) != 0 &&
      has(WEIR_HAS("avx2"), WEIR_HAS("bmi"), WEIR_HAS("bmi2"), WEIR_HAS("fma"))) {
    targets |= HWY_AVX2;
  }
  if ((targets & HWY_AVX2) != 0 &&
      has(WEIR_HAS("avx512f"), WEIR_HAS("avx512vl"), WEIR_HAS("avx512dq"), WEIR_HAS("avx512bw"),
          WEIR_HAS("avx512cd"))) {
    targets |= HWY_AVX3;
  }
#undef WEIR_HAS
#endif
  return targets;
}

std::atomic<std::int64_t> g_disabled{0};

}  // namespace

std::int64_t SupportedTargets() {
  static const std::int64_t k_detected = detect_targets();
  const std::int64_t enabled = k_detected & ~g_disabled;
  return enabled != 0 ? enabled : HWY_STATIC_TARGET;
}

void DisableTargets(std::int64_t disabled) { g_disabled = disabled; }

ChosenTarget& GetChosenTarget() {
  static ChosenTarget k_chosen;
  return k_chosen;
}

// Ends the program for a failed assertion of Highway's, in a build without NDEBUG.
void Abort(const char* file, int line, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::fprintf(stderr, "weir-engine: %s:%d: ", file, line);
  std::vfprintf(stderr, format, arguments);
  va_end(arguments);
  std::abort();
}

}  // namespace hwy
