// Reads the machine code of HIP kernels from a program's files, for a table of their costs.
#include "gate/probes/read/amd_code.hpp"
#include "gate/probes/read/runtime_kernels.hpp"
#include "gate/profile/gpu_build.hpp"

namespace weir::probes {
namespace {

// Returns a kernel's entry in the table of kernels. What its code does not state is 0.
weir_runtime_kernel entry_of(const profile::GpuKernel& kernel) {
  const profile::KernelFigures& figures = kernel.figures;
  return {
      .key = weir_probe::kernel_key(kernel.symbol.data(), kernel.symbol.size(), kernel.container),
      .code = kernel.digest,
      .registers = figures.registers.value_or(0),
      .shared_bytes = figures.shared_memory_bytes.value_or(0),
      .local_bytes = figures.scratch_bytes.value_or(0),
      .max_threads = figures.group_threads.value_or(0),
      .flags = 0,
      .code_bytes = figures.code_bytes.value_or(0),
      .spilled_registers = figures.spilled_vgprs.value_or(0),
      .scalar_registers = figures.scalar_registers.value_or(0)};
}

}  // namespace

// Reads the kernels in `files` that run on the GPU `target` into one table. Of several with one
// name, the first counts.
Result<RuntimeKernels> read_hip_kernels(std::span<const PartialFile> files,
                                        const CodeTarget& target) {
  const std::string name = target.target.substr(0, target.target.find(':'));
  profile::GpuBuild build;
  for (const PartialFile& file : files) WEIR_CHECK(read_gpu_code(file, {&name, 1}, build));
  KernelEntries entries;
  for (const profile::GpuKernel& kernel : build.kernels) {
    if (!runs_on(kernel.target, target.target)) continue;
    const weir_runtime_kernel entry = entry_of(kernel);
    entries.try_emplace(entry.key, entry);
  }
  return RuntimeKernels{.table = kernel_table(entries),
                        .kernels = entries.size(),
                        .unread = build.unread,
                        .targets = std::move(build.bundled_targets)};
}

}  // namespace weir::probes
