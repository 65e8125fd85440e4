// Matrix products of cuBLAS or hipBLAS. The number of kernels that a real library launches for one
// is unknown: within a capture a call is one node.
#include <stdlib.h>

#include "gate/probes/twin/runtime/runtime.h"

namespace weir_probe::runtime_twin {
namespace {

struct Handle {
  void* stream;
};

// Runs a product: a node of the graph if the handle's stream is captured.
int run_product(const void* handle, const char* name) {
  return run_library_call(static_cast<const Handle*>(handle)->stream, name, k_product_failed);
}

}  // namespace

WEIR_BLAS(WEIR_BLAS_NAME(Create), (void** out)) {
  *out = calloc(1, sizeof(Handle));
  constexpr int k_not_initialized = 1;
  return *out != nullptr && twin() != nullptr ? int{k_ok} : k_not_initialized;
}
WEIR_BLAS(WEIR_BLAS_NAME(Destroy), (void* handle)) {
  free(handle);
  return k_ok;
}
WEIR_BLAS(WEIR_BLAS_NAME(SetStream), (void* handle, void* stream)) {
  static_cast<Handle*>(handle)->stream = stream;
  return k_ok;
}
// Only their handle matters.
#define WEIR_MULTIPLIES(name) \
  WEIR_BLAS_PRODUCT(name) { return run_product(handle, #name); }
WEIR_BLAS_PRODUCTS(WEIR_MULTIPLIES)

}  // namespace weir_probe::runtime_twin
