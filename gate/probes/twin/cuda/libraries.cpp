// cuBLAS's products, and NCCL.
#include <stdlib.h>

#include "gate/probes/twin/runtime/runtime.h"

namespace weir_probe::runtime_twin {

WEIR_BLAS(SetMathMode, (void*, int)) { return k_ok; }
WEIR_BLAS(SetWorkspace_v2, (void*, void*, size_t)) { return k_ok; }
WEIR_BLAS_OF(const char*, GetStatusString, (int status)) {
  return status == 0 ? "CUBLAS_STATUS_SUCCESS" : "CUBLAS_STATUS_EXECUTION_FAILED";
}

// With one GPU there is nothing for NCCL to reduce.
WEIR_EXPORTED int ncclCommInitAll(void** out, int count, const int*) {
  for (int i = 0; i < count; ++i) out[i] = calloc(1, 1);
  return k_ok;
}
WEIR_EXPORTED int ncclCommDestroy(void* communicator) {
  free(communicator);
  return k_ok;
}
WEIR_EXPORTED int ncclGroupStart() { return k_ok; }
WEIR_EXPORTED int ncclGroupEnd() { return k_ok; }
WEIR_EXPORTED int ncclAllReduce(const void*, void*, size_t, int, int, void*, void* stream) {
  int error = k_ok;
  runs_now(stream, k_kernel_node, &error);
  return error == k_ok ? 0 : 1;
}
WEIR_EXPORTED const char* ncclGetErrorString(int) { return "no error"; }

}  // namespace weir_probe::runtime_twin
