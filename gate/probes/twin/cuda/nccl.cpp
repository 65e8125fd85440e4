// NCCL: each rank's calls succeed at once and exchange nothing, so no rank waits for another.
#include <stdlib.h>
#include <string.h>

#include "gate/probes/twin/runtime/runtime.h"

namespace weir_probe::runtime_twin {
namespace {

// Engines demand at least the version that they were compiled against: newer than any.
constexpr int k_nccl_version = 29900;
enum NcclResult : int { k_nccl_ok = 0, k_nccl_failed = 1, k_nccl_invalid = 4 };

struct Communicator {
  int ranks;  // 0: unknown
  int rank;
  int device;
};

int create_communicator(void** out, int ranks, int rank, int index) {
  if (ranks < 1 || rank < 0 || rank >= ranks) return k_nccl_invalid;
  auto* communicator = static_cast<Communicator*>(calloc(1, sizeof(Communicator)));
  *out = communicator;
  if (communicator == nullptr) return k_nccl_failed;
  *communicator = {ranks, rank, index};
  return k_nccl_ok;
}

int run_collective(const char* name, void* stream) {
  return run_library_call(stream, name, k_nccl_failed);
}

}  // namespace

struct UniqueId {  // ncclUniqueId
  char bytes[128];
};

extern "C" int weir_twin_cudaMalloc(void** out, size_t bytes);
extern "C" int weir_twin_cudaFree(void* at);

WEIR_EXPORTED int ncclGetVersion(int* version) {
  *version = k_nccl_version;
  return k_nccl_ok;
}
WEIR_EXPORTED const char* ncclGetErrorString(int error) {
  return error == k_nccl_ok ? "no error" : "not supported";
}
WEIR_EXPORTED const char* ncclGetLastError(void*) { return ""; }

// --- communicators
WEIR_EXPORTED int ncclGetUniqueId(UniqueId* out) {
  *out = {};
  return k_nccl_ok;
}
WEIR_EXPORTED int ncclCommInitRank(void** out, int ranks, UniqueId, int rank) {
  return create_communicator(out, ranks, rank, device());
}
WEIR_EXPORTED int ncclCommInitRankConfig(void** out, int ranks, UniqueId, int rank, void*) {
  return create_communicator(out, ranks, rank, device());
}
WEIR_EXPORTED int ncclCommInitRankScalable(void** out, int ranks, int rank, int, UniqueId*, void*) {
  return create_communicator(out, ranks, rank, device());
}
WEIR_EXPORTED int ncclCommInitAll(void** out, int count, const int* devices) {
  for (int i = 0; i < count; ++i) {
    const int index = devices == nullptr ? i : devices[i];
    if (const int error = create_communicator(&out[i], count, i, index)) return error;
  }
  return k_nccl_ok;
}
// How many ranks have this color, only they know.
WEIR_EXPORTED int ncclCommSplit(void* from, int color, int key, void** out, void*) {
  constexpr int k_no_color = -1;
  *out = nullptr;
  if (color == k_no_color) return k_nccl_ok;
  auto* split = static_cast<Communicator*>(calloc(1, sizeof(Communicator)));
  if (split == nullptr) return k_nccl_failed;
  *split = {0, key, static_cast<Communicator*>(from)->device};
  *out = split;
  return k_nccl_ok;
}
WEIR_EXPORTED int ncclCommFinalize(void*) { return k_nccl_ok; }
WEIR_EXPORTED int ncclCommDestroy(void* communicator) {
  free(communicator);
  return k_nccl_ok;
}
WEIR_EXPORTED int ncclCommAbort(void* communicator) { return ncclCommDestroy(communicator); }
WEIR_EXPORTED int ncclCommSuspend(void*, int) { return k_nccl_ok; }
WEIR_EXPORTED int ncclCommResume(void*) { return k_nccl_ok; }
WEIR_EXPORTED int ncclCommGetAsyncError(void*, int* error) {
  *error = k_nccl_ok;
  return k_nccl_ok;
}
WEIR_EXPORTED int ncclCommCount(void* communicator, int* out) {
  *out = static_cast<Communicator*>(communicator)->ranks;
  return k_nccl_ok;
}
WEIR_EXPORTED int ncclCommUserRank(void* communicator, int* out) {
  *out = static_cast<Communicator*>(communicator)->rank;
  return k_nccl_ok;
}
WEIR_EXPORTED int ncclCommCuDevice(void* communicator, int* out) {
  *out = static_cast<Communicator*>(communicator)->device;
  return k_nccl_ok;
}
WEIR_EXPORTED int ncclGroupStart() { return k_nccl_ok; }
WEIR_EXPORTED int ncclGroupEnd() { return k_nccl_ok; }

// --- memory and operations
WEIR_EXPORTED int ncclMemAlloc(void** out, size_t bytes) {
  return weir_twin_cudaMalloc(out, bytes) == k_ok ? k_nccl_ok : k_nccl_failed;
}
WEIR_EXPORTED int ncclMemFree(void* at) {
  return weir_twin_cudaFree(at) == k_ok ? k_nccl_ok : k_nccl_failed;
}
WEIR_EXPORTED int ncclCommRegister(void*, void* at, size_t, void** handle) {
  *handle = at;
  return k_nccl_ok;
}
WEIR_EXPORTED int ncclCommDeregister(void*, void*) { return k_nccl_ok; }
WEIR_EXPORTED int ncclCommWindowRegister(void*, void* at, size_t, void** window, int) {
  *window = at;
  return k_nccl_ok;
}
WEIR_EXPORTED int ncclCommWindowDeregister(void*, void*) { return k_nccl_ok; }
WEIR_EXPORTED int ncclRedOpCreatePreMulSum(int* out, void*, int, int, void*) {
  constexpr int k_first_own = 5;  // ncclNumOps
  *out = k_first_own;
  return k_nccl_ok;
}
WEIR_EXPORTED int ncclRedOpDestroy(int, void*) { return k_nccl_ok; }

// --- collectives. vLLM calls them by their addresses, around the probe.
#define WEIR_COLLECTIVE(name, parameters, ...) \
  WEIR_EXPORTED int name parameters {          \
    WEIR_THROUGH_PROBE(name, __VA_ARGS__)      \
    return run_collective(#name, stream);      \
  }
WEIR_NCCL_COLLECTIVES(WEIR_COLLECTIVE)

}  // namespace weir_probe::runtime_twin
