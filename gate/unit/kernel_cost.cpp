// The table of costs of a kernel's code.
#include "gate/unit/kernel_cost.hpp"

#include <array>

#include "gate/base/find.hpp"

namespace weir::unit {
namespace {

// In order of importance.
constexpr std::array k_costs{
    KernelCost{"spilled_registers", "spilled registers",
               "registers that did not fit, and went to memory or to other registers"},
    KernelCost{"scratch_bytes", "scratch memory", "memory that a thread uses beside its registers"},
    KernelCost{"occupancy", "occupancy", "waves or warps that fit on a processor at once", true},
    KernelCost{"registers", "registers", "registers of a thread"},
    KernelCost{"throughput_cycles", "inverse throughput",
               "cycles of one wave among many, as RADV estimates them"},
    KernelCost{"shared_memory_bytes", "shared memory", "shared memory of a group"},
    KernelCost{"waves", "waves", "waves or warps of a group"},
    KernelCost{"latency_cycles", "latency", "cycles of one wave, as RADV estimates them"},
    KernelCost{"kernel_instructions", "instructions", "instructions in the machine code"},
    KernelCost{"code_bytes", "code size", "machine code"},
};

constexpr std::array k_summed{SummedCost{"throughput_cycles", "estimated_cycles"},
                              SummedCost{"spilled_registers", "spilled_registers"},
                              SummedCost{"kernel_instructions", "kernel_instructions"}};

}  // namespace

std::span<const KernelCost> kernel_costs() { return k_costs; }
std::span<const SummedCost> summed_costs() { return k_summed; }
bool is_summed_cost(std::string_view base) {
  return std::ranges::count(k_summed, base, &SummedCost::base) != 0;
}
const KernelCost* find_kernel_cost(std::string_view name) {
  return find_named(k_costs, name.substr(0, name.find(':')));
}

}  // namespace weir::unit
