// Looks up facts of kernels in the table that weir wrote for the program.
#include "gate/probes/inject/cuda/table.h"

#include "gate/probes/inject/writer/file.h"
#include "gate/probes/inject/writer/system.h"
#include "gate/probes/table.h"

namespace weir_probe::cuda {
namespace {

const weir_cuda_kernels* g_kernels;
Once g_kernels_once;

// Maps the table named by WEIR_CUDA_KERNELS_VARIABLE; complains if it is set and not valid.
void load_kernels() {
  const char* path = getenv(WEIR_CUDA_KERNELS_VARIABLE);
  size_t bytes = 0;
  const auto* table =
      path == nullptr ? nullptr : static_cast<const weir_cuda_kernels*>(map_file(path, &bytes));
  if (table == nullptr || bytes < sizeof *table || table->magic != WEIR_CUDA_KERNELS_MAGIC ||
      table->bytes != sizeof(weir_cuda_kernel) ||
      table->count > (bytes - sizeof *table) / sizeof(weir_cuda_kernel)) {
    if (path != nullptr) {
      report_not_counting("cuda", "no facts of kernels in " WEIR_CUDA_KERNELS_VARIABLE ":", path,
                          0);
    }
    return;
  }
  g_kernels = table;
}

// Order of a name's hash and an entry, for bsearch.
int compare_names(const void* key, const void* entry) {
  const uint64_t left = *static_cast<const uint64_t*>(key);
  const uint64_t right = static_cast<const weir_cuda_kernel*>(entry)->name;
  if (left == right) return 0;
  return left < right ? -1 : 1;
}

}  // namespace

const weir_cuda_kernel* kernel_facts(const char* symbol) {
  g_kernels_once.run(load_kernels);
  if (g_kernels == nullptr) return nullptr;
  const uint64_t name = hash_text(symbol);
  return static_cast<const weir_cuda_kernel*>(
      bsearch(&name, g_kernels + 1, g_kernels->count, sizeof(weir_cuda_kernel), compare_names));
}

}  // namespace weir_probe::cuda
