// cuDNN's graphs of operations: attention and convolutions are described by descriptors, and a plan
// for them is executed as one call. Every graph has one plan here, without workspace.
#include <stdlib.h>
#include <string.h>

#include "gate/probes/twin/runtime/runtime.h"

namespace weir_probe::runtime_twin {
namespace {

// Statuses of the library. Engines demand at least the version that they were compiled against:
// this one is newer than any.
constexpr int k_dnn_failed = 5000, k_dnn_no_memory = 2002;
constexpr int k_dnn_major = 9, k_dnn_minor = 99;

struct DnnHandle {
  void* stream;
};

}  // namespace

WEIR_EXPORTED size_t cudnnGetVersion() { return 10000 * k_dnn_major + 100 * k_dnn_minor; }
WEIR_EXPORTED size_t cudnnGetCudartVersion() { return 13000; }
WEIR_EXPORTED int cudnnGetProperty(int part, int* out) {
  constexpr int k_parts[] = {k_dnn_major, k_dnn_minor, 0};
  *out = part >= 0 && part < 3 ? k_parts[part] : 0;
  return k_ok;
}
WEIR_EXPORTED const char* cudnnGetErrorString(int status) {
  return status == 0 ? "CUDNN_STATUS_SUCCESS" : "CUDNN_STATUS_NOT_SUPPORTED";
}
WEIR_EXPORTED void cudnnGetLastErrorString(char* out, size_t size) { copy_text(out, size, ""); }
WEIR_EXPORTED int cudnnCreate(void** out) {
  *out = calloc(1, sizeof(DnnHandle));
  return *out == nullptr ? k_dnn_no_memory : int{k_ok};
}
WEIR_EXPORTED int cudnnDestroy(void* handle) {
  free(handle);
  return k_ok;
}
WEIR_EXPORTED int cudnnSetStream(void* handle, void* stream) {
  static_cast<DnnHandle*>(handle)->stream = stream;
  return k_ok;
}
WEIR_EXPORTED int cudnnGetStream(void* handle, void** stream) {
  *stream = static_cast<const DnnHandle*>(handle)->stream;
  return k_ok;
}

WEIR_EXPORTED int cudnnBackendCreateDescriptor(int, void** out) {
  *out = calloc(1, 1);
  return *out == nullptr ? k_dnn_no_memory : int{k_ok};
}
WEIR_EXPORTED int cudnnBackendDestroyDescriptor(void* descriptor) {
  free(descriptor);
  return k_ok;
}
WEIR_EXPORTED int cudnnBackendSetAttribute(void*, int, int, int64_t, const void*) { return k_ok; }
WEIR_EXPORTED int cudnnBackendFinalize(void*) { return k_ok; }
// Answers with one descriptor, which the caller made, or one number, 0; there are no notes.
WEIR_EXPORTED int cudnnBackendGetAttribute(void*, int, int type, int64_t room, int64_t* count,
                                           void* out) {
  constexpr int k_int64 = 3, k_descriptor = 15, k_int32 = 23;
  const bool is_number = type == k_int64 || type == k_int32;
  if (count != nullptr) *count = is_number || type == k_descriptor ? 1 : 0;
  if (is_number && room > 0 && out != nullptr) {
    memset(out, 0, type == k_int64 ? sizeof(int64_t) : sizeof(int32_t));
  }
  return k_ok;
}
WEIR_EXPORTED int cudnnBackendExecute(void* handle, void*, void*) {
  return run_library_call(static_cast<const DnnHandle*>(handle)->stream, "cudnnBackendExecute",
                          k_dnn_failed);
}

}  // namespace weir_probe::runtime_twin
