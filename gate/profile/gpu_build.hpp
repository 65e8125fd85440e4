// The GPU code of one build: its kernels, and what each costs by its machine code. AMD and NVIDIA
// alike. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::profile {

// A figure that the code does not state is absent.
struct KernelFigures {
  using Figure = std::optional<std::uint32_t>;
  Figure registers{};  // of a thread; AMD: VGPRs, with AGPRs where both are one file
  Figure accumulation_registers{}, scalar_registers{};  // AGPRs, SGPRs
  Figure spilled_vgprs{}, spilled_sgprs{};
  Figure scratch_bytes{};  // of a thread
  // Waves that fit on a SIMD, or warps on a multiprocessor, by what the code states: at most.
  // Memory that a launch asks for lowers it.
  Figure occupancy{};
  Figure shared_memory_bytes{};  // of a group, without what a launch asks for
  Figure group_threads{};        // of the largest group
  Figure code_bytes{};
  friend bool operator==(const KernelFigures&, const KernelFigures&) = default;
};

struct FigureInfo {
  std::string_view name;   // "scratch_bytes"
  std::string_view label;  // a column's heading
  KernelFigures::Figure KernelFigures::*figure;
  bool more_is_better = false;
};
// All figures, the one whose change says most first.
[[nodiscard]] std::span<const FigureInfo> kernel_figures();

// One piece of code for one GPU.
struct GpuKernel {
  std::string target;  // "gfx942", "sm_90"
  std::string symbol;
  std::uint64_t digest = 0;  // of the code, wherever it lies
  KernelFigures figures;
  // The address of its bundle in the loaded file, by which a runtime tells kernels of one name
  // apart; 0: it lies in none.
  std::uint64_t container = 0;

  // Returns true for code that only says that there is none for this GPU.
  [[nodiscard]] bool is_stub() const;
};

struct GpuBuild {
  std::vector<GpuKernel> kernels;
  std::size_t files = 0;                    // with GPU code
  std::size_t unread = 0;                   // pieces whose compression this weir cannot read
  std::set<std::string> bundled_targets{};  // of all entries of AMD's bundles, wanted or not
};

// Returns true if there are no patterns, or one of them (a glob) matches the target
// ("gfx90a:xnack-") or its name without features.
[[nodiscard]] bool is_wanted_target(std::string_view target, std::span<const std::string> patterns);

}  // namespace weir::profile
