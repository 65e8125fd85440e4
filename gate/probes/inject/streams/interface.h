// Numbers and types on which CUDA's public interface (driver_types.h, cuda.h; majors 12 and 13) and
// HIP's (hip_runtime_api.h) agree. Neither's headers are needed.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "gate/probes/inject/streams/streams.h"

namespace weir_probe::streams {

enum Error : int {
  k_ok = 0,
  k_invalid_value = 1,
  k_out_of_memory = 2,
  k_invalid_configuration = 9,
  k_invalid_function = 98,
  k_no_device = 100,
  k_invalid_device = 101,
  k_no_image = 209,
  k_new_ptx = 222,  // CUDA
  k_invalid_handle = 400,
  k_symbol_not_found = 500,
  k_not_ready = 600,
  k_out_of_resources = 701,
  k_peer_enabled = 704,
  k_host_registered = 712,
  k_host_not_registered = 713,
  k_not_supported = 801,
  k_capture_unsupported = 900,
  k_capture_broken = 901,
  k_update_failed = 910,
};

// Returns true for a stream that the program created, false for a default stream.
inline bool is_handle(const void* stream) { return address_key(stream) > k_thread_stream; }

enum CaptureStatus : int { k_not_captured = 0, k_captured = 1, k_capture_is_broken = 2 };
constexpr int k_by_address = 4;  // cudaMemcpyDefault, beside Direction

// CUpointer_attribute and hipPointer_attribute.
enum PointerAttribute : int {
  k_pointer_type = 2,
  k_pointer_on_device = 3,
  k_pointer_on_host = 4,
  k_pointer_device = 9,
  k_pointer_block_begin = 11,
  k_pointer_block_bytes = 12,
};
enum MemoryType : int { k_unregistered = 0, k_host_memory = 1, k_device_memory = 2 };

constexpr int k_on_device = 1;  // CUmemLocationType
struct AllocationProperties {   // the beginning of CUmemAllocationProp
  int type, handle_types;
  int location_type, location;
};

}  // namespace weir_probe::streams

// Collectives of NCCL and RCCL: X(name, parameters, arguments…). `number` and
// `type` are those of what one rank sends.
#define WEIR_NCCL_COLLECTIVES(X)                                                                   \
  X(ncclAllReduce,                                                                                 \
    (const void* from, void* to, size_t number, int type, int op, void* communicator,              \
     void* stream),                                                                                \
    from, to, number, type, op, communicator, stream)                                              \
  X(ncclReduce,                                                                                    \
    (const void* from, void* to, size_t number, int type, int op, int root, void* communicator,    \
     void* stream),                                                                                \
    from, to, number, type, op, root, communicator, stream)                                        \
  X(ncclReduceScatter,                                                                             \
    (const void* from, void* to, size_t number, int type, int op, void* communicator,              \
     void* stream),                                                                                \
    from, to, number, type, op, communicator, stream)                                              \
  X(ncclAllGather,                                                                                 \
    (const void* from, void* to, size_t number, int type, void* communicator, void* stream), from, \
    to, number, type, communicator, stream)                                                        \
  X(ncclAlltoAll,                                                                                  \
    (const void* from, void* to, size_t number, int type, void* communicator, void* stream), from, \
    to, number, type, communicator, stream)                                                        \
  X(ncclBroadcast,                                                                                 \
    (const void* from, void* to, size_t number, int type, int root, void* communicator,            \
     void* stream),                                                                                \
    from, to, number, type, root, communicator, stream)                                            \
  X(ncclGather,                                                                                    \
    (const void* from, void* to, size_t number, int type, int root, void* communicator,            \
     void* stream),                                                                                \
    from, to, number, type, root, communicator, stream)                                            \
  X(ncclBcast, (void* at, size_t number, int type, int root, void* communicator, void* stream),    \
    at, number, type, root, communicator, stream)                                                  \
  X(ncclSend,                                                                                      \
    (const void* from, size_t number, int type, int peer, void* communicator, void* stream), from, \
    number, type, peer, communicator, stream)                                                      \
  X(ncclRecv, (void* to, size_t number, int type, int peer, void* communicator, void* stream), to, \
    number, type, peer, communicator, stream)
