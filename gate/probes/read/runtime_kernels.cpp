// Writes tables of kernels.
#include "gate/probes/read/runtime_kernels.hpp"

namespace weir::probes {

std::string kernel_table(const KernelEntries& entries) {
  const weir_runtime_kernels head{WEIR_RUNTIME_KERNELS_MAGIC,
                                  static_cast<std::uint32_t>(entries.size()),
                                  sizeof(weir_runtime_kernel)};
  std::string table(reinterpret_cast<const char*>(&head), sizeof head);
  for (const auto& [key, kernel] : entries) {
    table.append(reinterpret_cast<const char*>(&kernel), sizeof kernel);
  }
  return table;
}

}  // namespace weir::probes
