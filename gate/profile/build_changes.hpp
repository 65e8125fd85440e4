// Compares the GPU code of two builds, kernel by kernel. Pure.
#pragma once

#include "gate/profile/gpu_build.hpp"

namespace weir::profile {

enum class KernelState {
  changed,   // other code, or other figures
  added,     // in the new build alone
  removed,   // in the old build alone
  stub,      // code became a stub
  compiled,  // a stub became code
};

// One symbol for one GPU. Several pieces of code may have it: the worst of each figure counts.
struct KernelDifference {
  std::string symbol;
  KernelState state = KernelState::changed;
  bool has_other_code = true;
  bool is_stub = false;  // neither side has code for this GPU
  KernelFigures base, now;
};

// Sums over all pieces of code for one GPU.
struct CodeTotals {
  std::size_t kernels = 0, stubs = 0;
  std::size_t spilling = 0;                            // kernels that spill vector registers
  std::uint64_t spilled_vgprs = 0, spilled_sgprs = 0;  // of all of them
};

struct TargetChanges {
  std::string target;
  CodeTotals base, now;
  std::size_t unchanged = 0;                  // symbols
  std::vector<KernelDifference> differences;  // the worst first
};

// Sorted by target. Builds may be sorted in place.
[[nodiscard]] std::vector<TargetChanges> compare_builds(GpuBuild& base, GpuBuild& now);

// Returns how much worse a figure became: above 0 where it did. A kernel without a base is compared
// with one that neither spills nor uses scratch memory.
[[nodiscard]] std::int64_t worsening(const KernelDifference& difference, const FigureInfo& figure);

// A limit on one figure of kernels that both builds have.
struct FigureLimit {
  // "spilled_vgprs"; "spilled_registers" is the sum of both kinds.
  std::string figure;
  double amount = 0;
  bool is_relative = false;  // to the base
  bool on_decrease = false;  // else on an increase
};
// Returns true if a changed kernel breaks the limit. A figure that one side lacks breaks none.
[[nodiscard]] bool breaks(const KernelDifference& difference, const FigureLimit& limit);

}  // namespace weir::profile
