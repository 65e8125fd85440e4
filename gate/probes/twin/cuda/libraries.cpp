// NVIDIA's libraries of ready kernels: cuBLAS's and cuBLASLt's products. The number of
// kernels that a real library launches for a call is unknown.
#include <stdlib.h>

#include "gate/probes/twin/runtime/runtime.h"

namespace weir_probe::runtime_twin {
namespace {

constexpr int k_cublas_failed = 13, k_cublas_out_of_memory = 3;

// A descriptor of a library, which nobody reads.
int create_descriptor(void** out, int error) {
  *out = calloc(1, 1);
  return *out == nullptr ? error : 0;
}
int free_descriptor(void* descriptor) {
  free(descriptor);
  return 0;
}

}  // namespace

WEIR_BLAS(SetMathMode, (void*, int)) { return k_ok; }
WEIR_BLAS(SetPointerMode_v2, (void*, int)) { return k_ok; }
WEIR_BLAS(SetSmCountTarget, (void*, int)) { return k_ok; }
WEIR_BLAS(SetWorkspace_v2, (void*, void*, size_t)) { return k_ok; }
WEIR_BLAS(GetMathMode, (void*, int* mode)) {
  *mode = 0;
  return k_ok;
}
WEIR_BLAS(GetPointerMode_v2, (void*, int* mode)) {
  *mode = 0;
  return k_ok;
}
WEIR_BLAS_OF(const char*, GetStatusString, (int status)) {
  return status == 0 ? "CUBLAS_STATUS_SUCCESS" : "CUBLAS_STATUS_EXECUTION_FAILED";
}

// --- cuBLASLt
WEIR_LT(MatmulDescCreate, (void** out, int, int)) {
  return create_descriptor(out, k_cublas_out_of_memory);
}
WEIR_LT(MatmulDescDestroy, (void* descriptor)) { return free_descriptor(descriptor); }
WEIR_LT(MatmulDescSetAttribute, (void*, int, const void*, size_t)) { return k_ok; }
WEIR_LT(MatrixLayoutCreate, (void** out, int, uint64_t, uint64_t, int64_t)) {
  return create_descriptor(out, k_cublas_out_of_memory);
}
WEIR_LT(MatrixLayoutDestroy, (void* descriptor)) { return free_descriptor(descriptor); }
WEIR_LT(MatrixLayoutSetAttribute, (void*, int, const void*, size_t)) { return k_ok; }
WEIR_LT(MatmulPreferenceCreate, (void** out)) {
  return create_descriptor(out, k_cublas_out_of_memory);
}
WEIR_LT(MatmulPreferenceDestroy, (void* descriptor)) { return free_descriptor(descriptor); }
WEIR_LT(MatmulPreferenceSetAttribute, (void*, int, const void*, size_t)) { return k_ok; }
WEIR_LT(Create, (void** out)) { return create_descriptor(out, k_cublas_out_of_memory); }
WEIR_LT(Destroy, (void* handle)) { return free_descriptor(handle); }
// Offers one algorithm, without workspace: cublasLtMatmulHeuristicResult_t.
struct Heuristic {
  uint64_t algorithm[8];
  size_t workspace;
  int status;
  float waves;
  int reserved[4];
};
WEIR_LT(MatmulAlgoGetHeuristic,
        (void*, void*, void*, void*, void*, void*, void*, int, Heuristic* out, int* count)) {
  *out = {};
  out->waves = 1;
  *count = 1;
  return k_ok;
}
WEIR_LT(Matmul, (void*, void*, const void*, const void*, void*, const void*, void*, const void*,
                 const void*, void*, void*, void*, const void*, void*, size_t, void* stream)) {
  return run_library_call(stream, "cublasLtMatmul", k_cublas_failed);
}
extern "C" __attribute__((visibility("default"))) size_t cublasLtGetVersion() { return 130000; }

}  // namespace weir_probe::runtime_twin
