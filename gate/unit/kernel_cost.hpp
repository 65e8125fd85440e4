// Costs of a kernel that its machine code shows: figures that the device's compiler reports, or
// that are in the code as shipped. None of them is a time. Pure.
#pragma once

#include <span>
#include <string_view>

namespace weir::unit {

struct KernelCost {
  std::string_view name;   // "registers"; in a metric "registers:KERNEL"
  std::string_view label;  // "registers"
  std::string_view about;
  bool more_is_better = false;
};

// registers             of a thread (Radeon: VGPRs; NVIDIA: 32-bit registers)
// spilled_registers     that did not fit and went to memory (VGPRs and SGPRs together)
// waves                 of a group
// scratch_bytes         of memory that a thread or wave uses beside its registers
// occupancy             waves (warps) that fit on one SIMD (NVIDIA: multiprocessor) at once
// shared_memory_bytes   of a group
// code_bytes            of machine code
// kernel_instructions   in it
// latency_cycles        RADV's estimate: of one wave, alone
// throughput_cycles     RADV's estimate: of one wave, where many run (inverse throughput)
[[nodiscard]] std::span<const KernelCost> kernel_costs();
// Counts that sum one of them up over all waves of a token or prefill: the cost and the count's
// base.
struct SummedCost {
  std::string_view cost, base;
};
[[nodiscard]] std::span<const SummedCost> summed_costs();
[[nodiscard]] bool is_summed_cost(std::string_view base);
// By its name, or that of a metric: "registers", "registers:KERNEL".
[[nodiscard]] const KernelCost* find_kernel_cost(std::string_view name);

}  // namespace weir::unit
