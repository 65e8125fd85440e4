// cuBLAS and NCCL. The number of kernels that a real library launches for a call is unknown: within
// a capture a call is one node.
#include <stdlib.h>

#include "gate/probes/twin/cuda/cuda.h"

#define WEIR_CUBLAS(name, ...) WEIR_TWICE("libcublas", int, name, __VA_ARGS__)

namespace weir_probe::cuda_twin {
namespace {

struct Handle {
  void* stream;
};

// Runs a call of cuBLAS: a node of the graph if the handle's stream is captured.
int run_call(void* handle) {
  int error = k_ok;
  runs_now(static_cast<Handle*>(handle)->stream, streams::k_kernel_node, &error);
  constexpr int k_execution_failed = 13;
  return error == k_ok ? int{k_ok} : k_execution_failed;
}

}  // namespace

WEIR_CUBLAS(cublasCreate_v2, (void** out)) {
  *out = calloc(1, sizeof(Handle));
  constexpr int k_not_initialized = 1;
  return *out != nullptr && twin() != nullptr ? int{k_ok} : k_not_initialized;
}
WEIR_CUBLAS(cublasDestroy_v2, (void* handle)) {
  free(handle);
  return k_ok;
}
WEIR_CUBLAS(cublasSetStream_v2, (void* handle, void* stream)) {
  static_cast<Handle*>(handle)->stream = stream;
  return k_ok;
}
WEIR_CUBLAS(cublasSetMathMode, (void*, int)) { return k_ok; }
WEIR_CUBLAS(cublasSetWorkspace_v2, (void*, void*, size_t)) { return k_ok; }
// Matrix multiplications; only their handle matters.
#define WEIR_MULTIPLIES(name) \
  WEIR_CUBLAS(name, (void* handle)) { return run_call(handle); }
WEIR_CUBLAS_PRODUCTS(WEIR_MULTIPLIES)

WEIR_TWICE("libcublas", const char*, cublasGetStatusString, (int status)) {
  return status == 0 ? "CUBLAS_STATUS_SUCCESS" : "CUBLAS_STATUS_EXECUTION_FAILED";
}

// With one GPU there is nothing for NCCL to reduce.
WEIR_EXPORTED int ncclCommInitAll(void** out, int count, const int*) {
  for (int i = 0; i < count; ++i) out[i] = calloc(1, sizeof(Handle));
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
  runs_now(stream, streams::k_kernel_node, &error);
  return error == k_ok ? 0 : 1;
}
WEIR_EXPORTED const char* ncclGetErrorString(int) { return "no error"; }

}  // namespace weir_probe::cuda_twin
