// The part of ggml that weir-replay-ggml uses: functions by name and signature, and the layout of
// tensors, which is checked against ggml's own functions before anything is computed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gate/base/result.hpp"

#include "tools/replay/program/program.hpp"

namespace weir::replay {

struct Context;
struct Graph;
struct Backend;
struct Device;
struct Registry;
struct Buffer;
struct BufferType;

// ggml_tensor since November 2024; layout_fits() checks that.
struct Tensor {
  std::int32_t type;
  Buffer* buffer;
  std::int64_t ne[4];
  std::uint64_t nb[4];
  std::int32_t op;
  std::int32_t params[16];
  std::int32_t flags;
  Tensor* source[10];
  Tensor* view_of;
  std::uint64_t offset_in_view;
  void* data;
  char name[64];
  void* extra;
  char padding[8];
};
static_assert(sizeof(Tensor) == 336 && offsetof(Tensor, op) == 80 &&
              offsetof(Tensor, source) == 152 && offsetof(Tensor, data) == 248);

inline constexpr int k_bytes_type = 24;  // GGML_TYPE_I8

// ggml_init_params
struct ContextWish {
  std::size_t bytes;
  void* memory;
  bool no_data;
};

// X(name without "ggml_", result, parameters)
#define WEIR_REPLAY_GGML(X)                                                                  \
  X(op_name, const char*, (int))                                                             \
  X(type_name, const char*, (int))                                                           \
  X(type_size, std::size_t, (int))                                                           \
  X(blck_size, std::int64_t, (int))                                                          \
  X(init, Context*, (ContextWish))                                                           \
  X(free, void, (Context*))                                                                  \
  X(new_tensor, Tensor*, (Context*, int, int, const std::int64_t*))                          \
  X(view_4d, Tensor*,                                                                        \
    (Context*, Tensor*, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::size_t, \
     std::size_t, std::size_t, std::size_t))                                                 \
  X(mul_mat, Tensor*, (Context*, Tensor*, Tensor*))                                          \
  X(rms_norm, Tensor*, (Context*, Tensor*, float))                                           \
  X(set_input, void, (Tensor*))                                                              \
  X(get_name, const char*, (const Tensor*))                                                  \
  X(nbytes, std::size_t, (const Tensor*))                                                    \
  X(tensor_overhead, std::size_t, ())                                                        \
  X(graph_overhead_custom, std::size_t, (std::size_t, bool))                                 \
  X(new_graph_custom, Graph*, (Context*, std::size_t, bool))                                 \
  X(build_forward_expand, void, (Graph*, Tensor*))                                           \
  X(graph_n_nodes, int, (Graph*))                                                            \
  X(quantize_chunk, std::size_t,                                                             \
    (int, const float*, void*, std::int64_t, std::int64_t, std::int64_t, const float*))      \
  X(backend_reg_dev_count, std::size_t, (Registry*))                                         \
  X(backend_reg_dev_get, Device*, (Registry*, std::size_t))                                  \
  X(backend_reg_get_proc_address, void*, (Registry*, const char*))                           \
  X(backend_dev_name, const char*, (Device*))                                                \
  X(backend_dev_description, const char*, (Device*))                                         \
  X(backend_dev_buffer_type, BufferType*, (Device*))                                         \
  X(backend_dev_init, Backend*, (Device*, const char*))                                      \
  X(backend_free, void, (Backend*))                                                          \
  X(backend_dev_supports_op, bool, (Device*, const Tensor*))                                 \
  X(backend_graph_compute, int, (Backend*, Graph*))                                          \
  X(backend_buft_name, const char*, (BufferType*))                                           \
  X(backend_buft_alloc_buffer, Buffer*, (BufferType*, std::size_t))                          \
  X(backend_buft_get_alloc_size, std::size_t, (BufferType*, const Tensor*))                  \
  X(backend_buffer_get_base, void*, (Buffer*))                                               \
  X(backend_buffer_set_usage, void, (Buffer*, int))                                          \
  X(backend_buffer_free, void, (Buffer*))                                                    \
  X(backend_tensor_alloc, int, (Buffer*, Tensor*, void*))                                    \
  X(backend_tensor_set, void, (Tensor*, const void*, std::size_t, std::size_t))

struct Engine {
#define WEIR_REPLAY_DECLARE(name, result, parameters) result(*name) parameters = nullptr;
  WEIR_REPLAY_GGML(WEIR_REPLAY_DECLARE)
#undef WEIR_REPLAY_DECLARE
  std::string version, commit;  // "": not reported
  std::string library;          // file of the kernels: "libggml-cpu-haswell.so"
  std::string device_name;      // "llvmpipe (LLVM 15.0.6, 256 bits)"; "" of the CPU
  Device* device = nullptr;
  Backend* backend = nullptr;      // the CPU's; an op on a device has one of its own
  BufferType* memory = nullptr;    // the device's; null if tensors lie in this process's memory
  std::vector<BufferType*> extra;  // kinds of memory in which weights lie re-arranged
};

// Builds a graph of copies_needed() copies of the node. Copies have weights of their own and share
// all else, which a step has written just before. Code::unavailable with the reason if it cannot be
// computed. `engine` outlives the result.
[[nodiscard]] Result<std::unique_ptr<Work>> rebuild_node(const Engine& engine,
                                                         const profile::ReplayNode& node,
                                                         const ReplayLimits& limits);

}  // namespace weir::replay
