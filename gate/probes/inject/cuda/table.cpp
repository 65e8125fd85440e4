#include "gate/probes/inject/cuda/table.h"

#include "gate/probes/inject/writer/file.h"
#include "gate/probes/inject/writer/system.h"
#include "gate/probes/table.h"

namespace weir_probe::cuda {
namespace {

const weir_cuda_kernels* g_kernels;
Once g_kernels_once;

void load_kernels() {
  const char* path = getenv(WEIR_CUDA_KERNELS_VARIABLE);
  size_t bytes = 0;
  const auto* found =
      path == nullptr ? nullptr : static_cast<const weir_cuda_kernels*>(map_file(path, &bytes));
  if (found == nullptr || bytes < sizeof *found || found->magic != WEIR_CUDA_KERNELS_MAGIC ||
      found->bytes != sizeof(weir_cuda_kernel) ||
      found->count > (bytes - sizeof *found) / sizeof(weir_cuda_kernel)) {
    if (path != nullptr) {
      complain("cuda", "no facts of kernels in " WEIR_CUDA_KERNELS_VARIABLE ":", path, 0);
    }
    return;
  }
  g_kernels = found;
}

int by_name(const void* wanted, const void* entry) {
  const uint64_t left = *static_cast<const uint64_t*>(wanted);
  const uint64_t right = static_cast<const weir_cuda_kernel*>(entry)->name;
  return left < right ? -1 : left > right ? 1 : 0;
}

}  // namespace

const weir_cuda_kernel* kernel_facts(const char* symbol) {
  g_kernels_once.run(load_kernels);
  if (g_kernels == nullptr) return nullptr;
  const uint64_t wanted = hash_text(symbol);
  return static_cast<const weir_cuda_kernel*>(
      bsearch(&wanted, g_kernels + 1, g_kernels->count, sizeof(weir_cuda_kernel), by_name));
}

}  // namespace weir_probe::cuda
