// Looks up facts of kernels in the table that weir wrote for the program.
#include "gate/probes/inject/streams/kernel_facts.h"

#include "gate/probes/inject/writer/file.h"
#include "gate/probes/inject/writer/system.h"
#include "gate/probes/table.h"

namespace weir_probe {
namespace {

const weir_runtime_kernels* g_kernels;
Once g_kernels_once;

// Maps the table of facts about kernels that the variable WEIR_RUNTIME_KERNELS_VARIABLE names.
// Complains if it is set and the table is not valid.
void load_kernels() {
  const char* path = getenv(WEIR_RUNTIME_KERNELS_VARIABLE);
  size_t bytes = 0;
  const auto* table =
      path == nullptr ? nullptr : static_cast<const weir_runtime_kernels*>(map_file(path, &bytes));
  if (table == nullptr || bytes < sizeof *table || table->magic != WEIR_RUNTIME_KERNELS_MAGIC ||
      table->bytes != sizeof(weir_runtime_kernel) ||
      table->count > (bytes - sizeof *table) / sizeof(weir_runtime_kernel)) {
    if (path != nullptr) {
      report_not_counting("device twin",
                          "no facts of kernels in " WEIR_RUNTIME_KERNELS_VARIABLE ":", path, 0);
    }
    return;
  }
  g_kernels = table;
}

// Order of a key and an entry, for bsearch.
int compare_keys(const void* key, const void* entry) {
  const uint64_t left = *static_cast<const uint64_t*>(key);
  const uint64_t right = static_cast<const weir_runtime_kernel*>(entry)->key;
  if (left == right) return 0;
  return left < right ? -1 : 1;
}

}  // namespace

const weir_runtime_kernel* kernel_facts(const char* symbol, uint64_t container) {
  g_kernels_once.run(load_kernels);
  if (g_kernels == nullptr) return nullptr;
  const uint64_t key = kernel_key(symbol, strlen(symbol), container);
  return static_cast<const weir_runtime_kernel*>(
      bsearch(&key, g_kernels + 1, g_kernels->count, sizeof(weir_runtime_kernel), compare_keys));
}

}  // namespace weir_probe
