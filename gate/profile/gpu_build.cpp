// The table of figures of a kernel's machine code.
#include "gate/profile/gpu_build.hpp"

#include <algorithm>
#include <array>

#include "gate/base/text.hpp"

namespace weir::profile {
namespace {

constexpr std::uint32_t k_max_stub_bytes = 64;

constexpr std::array k_figures{
    FigureInfo{"spilled_vgprs", "spilled", &KernelFigures::spilled_vgprs},
    FigureInfo{"scratch_bytes", "scratch", &KernelFigures::scratch_bytes},
    FigureInfo{"occupancy", "waves", &KernelFigures::occupancy, true},
    FigureInfo{"spilled_sgprs", "spilled SGPRs", &KernelFigures::spilled_sgprs},
    FigureInfo{"registers", "regs", &KernelFigures::registers},
    FigureInfo{"accumulation_registers", "AGPRs", &KernelFigures::accumulation_registers},
    FigureInfo{"scalar_registers", "SGPRs", &KernelFigures::scalar_registers},
    FigureInfo{"shared_memory_bytes", "shared", &KernelFigures::shared_memory_bytes},
    FigureInfo{"group_threads", "group", &KernelFigures::group_threads, true},
    FigureInfo{"code_bytes", "code", &KernelFigures::code_bytes},
};

}  // namespace

std::span<const FigureInfo> kernel_figures() { return k_figures; }

bool GpuKernel::is_stub() const { return figures.code_bytes.value_or(0) <= k_max_stub_bytes; }

bool is_wanted_target(std::string_view target, std::span<const std::string> patterns) {
  const std::string_view name = target.substr(0, target.find(':'));
  return patterns.empty() || std::ranges::any_of(patterns, [&](const std::string& pattern) {
           return text::glob_match(pattern, target) || text::glob_match(pattern, name);
         });
}

}  // namespace weir::profile
