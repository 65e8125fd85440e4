// Waves on a SIMD, by the sizes of its register files. Sources: LLVM's AMDGPUBaseInfo
// (getTotalNumVGPRs, getVGPRAllocGranule, getMaxWavesPerEU) and its test occupancy-levels.ll.
#include "gate/probes/read/amd_occupancy.hpp"

#include <algorithm>
#include <array>

#include "gate/base/find.hpp"

namespace weir::probes {
namespace {

struct Simd {
  std::uint32_t max_waves;
  std::uint32_t registers, unit;  // of waves of 64 threads; those of 32 have twice as many
  bool shares_scalars;            // waves share a file of scalar registers
  bool has_one_file;              // `registers` holds accumulation registers, too
  std::uint32_t shared_bytes;     // of a compute unit
  std::uint32_t count;            // of a compute unit
};

// Returns the sizes of the SIMD (one of a processor's units) of a GPU such as "gfx90a"; nothing
// for unknown GPUs.
std::optional<Simd> find_simd(std::string_view target) {
  constexpr std::uint32_t k_shared = 64 << 10, k_large_shared = 160 << 10,
                          k_largest_shared = 320 << 10;
  constexpr std::array<std::string_view, 7> k_with_more_registers = {
      "gfx1100", "gfx1101", "gfx1151", "gfx1200", "gfx1201", "gfx11-generic", "gfx12-generic"};
  constexpr std::array<std::string_view, 5> k_large = {"gfx90a", "gfx940", "gfx941", "gfx942",
                                                       "gfx9-4-generic"};
  const std::string_view name = target.substr(0, target.find(':'));
  if (name == "gfx950") return Simd{8, 512, 8, true, true, k_large_shared, 4};
  if (holds(k_large, name)) return Simd{8, 512, 8, true, true, k_shared, 4};
  if (name.starts_with("gfx9")) return Simd{10, 256, 4, true, false, k_shared, 4};
  if (name.starts_with("gfx103") || name == "gfx10-3-generic") {
    return Simd{16, 512, 8, false, false, k_shared, 2};
  }
  if (name.starts_with("gfx10")) return Simd{20, 512, 4, false, false, k_shared, 2};
  if (name.starts_with("gfx125") || name == "gfx12-5-generic") {
    return Simd{16, 512, 8, false, false, k_largest_shared, 4};
  }
  if (holds(k_with_more_registers, name)) return Simd{16, 768, 12, false, false, k_shared, 2};
  if (name.starts_with("gfx11") || name.starts_with("gfx12")) {
    return Simd{16, 512, 8, false, false, k_shared, 2};
  }
  return std::nullopt;
}

std::uint32_t round_up(std::uint32_t value, std::uint32_t unit) {
  return (value + unit - 1) / unit * unit;
}

// Returns the waves that a compute unit's 800 scalar registers allow.
std::uint32_t waves_by_scalars(std::uint32_t scalars) {
  if (scalars <= 80) return 10;
  if (scalars <= 88) return 9;
  return scalars <= 100 ? 8 : 7;
}

}  // namespace

// Returns how many waves one SIMD (a processor's unit) holds at once: the least of what registers
// and shared memory allow. As LLVM's AMDGPUBaseInfo computes it.
std::optional<std::uint32_t> amd_occupancy(std::string_view target,
                                           const profile::KernelFigures& figures,
                                           const AmdWave& wave) {
  constexpr std::uint32_t k_max_registers = 1024;
  const std::optional<Simd> simd = find_simd(target);
  if (!simd || !figures.registers || wave.threads == 0) return std::nullopt;
  const bool is_old = target.starts_with("gfx9");
  const std::uint32_t factor = wave.threads == 32 && !is_old ? 2 : 1;
  std::uint32_t registers = *figures.registers;
  if (!simd->has_one_file) {
    registers = std::max(registers, figures.accumulation_registers.value_or(0));
  }
  const std::uint32_t unit = simd->unit * factor;
  const std::uint32_t rounded = round_up(std::clamp(registers, 1U, k_max_registers), unit);
  std::uint32_t waves = std::min(simd->max_waves, simd->registers * factor / rounded);
  if (simd->shares_scalars) {
    waves = std::min(waves, waves_by_scalars(figures.scalar_registers.value_or(0)));
  }
  const std::uint32_t shared = figures.shared_memory_bytes.value_or(0);
  if (shared > 0) {
    const std::uint32_t units = simd->count == 2 && wave.has_processor_pair ? 2 : 1;
    const std::uint32_t simds = simd->count * units;
    const std::uint32_t groups = simd->shared_bytes * units / shared;
    const std::uint32_t threads = std::clamp(figures.group_threads.value_or(1024), 1U, 1024U);
    const std::uint32_t group_waves = round_up(threads, wave.threads) / wave.threads;
    waves = std::min(waves, round_up(std::max(groups, 1U) * group_waves, simds) / simds);
  }
  return std::max(waves, 1U);
}

}  // namespace weir::probes
