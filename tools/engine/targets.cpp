// The functions of Highway's library that kernels call, so that its headers are enough: the
// engine then starts where no libhwy is.
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include <hwy/targets.h>

namespace hwy {
namespace {

std::int64_t of_this_processor() {
  std::int64_t found = HWY_STATIC_TARGET | HWY_SCALAR | HWY_EMU128;
#if HWY_ARCH_X86
  // Each as Highway compiles for it. No processor has AVX2 and FMA without F16C and LZCNT.
  const auto has = [](auto... each) { return (... && each); };
#define WEIR_HAS(feature) (__builtin_cpu_supports(feature) != 0)
  __builtin_cpu_init();
  if (has(WEIR_HAS("ssse3"))) found |= HWY_SSSE3;
  if (has(WEIR_HAS("sse4.2"), WEIR_HAS("pclmul"), WEIR_HAS("aes"))) found |= HWY_SSE4;
  if ((found & HWY_SSE4) != 0 &&
      has(WEIR_HAS("avx2"), WEIR_HAS("bmi"), WEIR_HAS("bmi2"), WEIR_HAS("fma"))) {
    found |= HWY_AVX2;
  }
  if ((found & HWY_AVX2) != 0 &&
      has(WEIR_HAS("avx512f"), WEIR_HAS("avx512vl"), WEIR_HAS("avx512dq"), WEIR_HAS("avx512bw"),
          WEIR_HAS("avx512cd"))) {
    found |= HWY_AVX3;
  }
#undef WEIR_HAS
#endif
  return found;
}

std::atomic<std::int64_t> g_disabled{0};

}  // namespace

std::int64_t SupportedTargets() {
  static const std::int64_t k_found = of_this_processor();
  const std::int64_t left = k_found & ~g_disabled;
  return left != 0 ? left : HWY_STATIC_TARGET;
}

void DisableTargets(std::int64_t disabled) { g_disabled = disabled; }

ChosenTarget& GetChosenTarget() {
  static ChosenTarget k_chosen;
  return k_chosen;
}

// Of its assertions, which a build without NDEBUG has.
void Abort(const char* file, int line, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::fprintf(stderr, "weir-engine: %s:%d: ", file, line);
  std::vfprintf(stderr, format, arguments);
  va_end(arguments);
  std::abort();
}

}  // namespace hwy
