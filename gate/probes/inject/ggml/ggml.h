// What the probe knows of ggml: which exported functions it stands in front of and which it asks,
// by name and signature. Everything of ggml's is an opaque pointer: no header of ggml is needed,
// and programs built with ggml a year apart are served by one library.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace weir_probe {

struct Tensor;   // ggml_tensor
struct Graph;    // ggml_cgraph
struct Sched;    // ggml_backend_sched
struct Backend;  // ggml_backend
struct Buffer;   // ggml_backend_buffer
struct BufferType;
struct BackendDevice;
struct Event;
struct Registry;  // ggml_backend_reg

// X(name without "ggml_", result, parameters). The same signatures since these functions exist.
#define WEIR_GGML_INTERPOSED(X)                                                                  \
  X(backend_sched_graph_compute, int, (Sched*, Graph*))                                          \
  X(backend_sched_graph_compute_async, int, (Sched*, Graph*))                                    \
  X(backend_graph_compute, int, (Backend*, Graph*))                                              \
  X(backend_graph_compute_async, int, (Backend*, Graph*))                                        \
  X(backend_synchronize, void, (Backend*))                                                       \
  X(backend_event_synchronize, void, (Event*))                                                   \
  X(backend_tensor_copy, void, (Tensor*, Tensor*))                                               \
  X(backend_tensor_copy_async, void, (Backend*, Backend*, Tensor*, Tensor*))                     \
  X(backend_tensor_set, void, (Tensor*, const void*, size_t, size_t))                            \
  X(backend_tensor_set_async, void, (Backend*, Tensor*, const void*, size_t, size_t))            \
  X(backend_tensor_set_2d, void, (Tensor*, const void*, size_t, size_t, size_t, size_t, size_t)) \
  X(backend_tensor_set_2d_async, void,                                                           \
    (Backend*, Tensor*, const void*, size_t, size_t, size_t, size_t, size_t))                    \
  X(backend_tensor_get, void, (const Tensor*, void*, size_t, size_t))                            \
  X(backend_tensor_get_async, void, (Backend*, const Tensor*, void*, size_t, size_t))            \
  X(backend_tensor_get_2d, void, (const Tensor*, void*, size_t, size_t, size_t, size_t, size_t)) \
  X(backend_tensor_get_2d_async, void,                                                           \
    (Backend*, const Tensor*, void*, size_t, size_t, size_t, size_t, size_t))                    \
  X(backend_tensor_memset, void, (Tensor*, uint8_t, size_t, size_t))                             \
  X(backend_reg_get_proc_address, void*, (Registry*, const char*))

// Any of these may be missing in an older or a trimmed ggml.
#define WEIR_GGML_ASKED(X)                                         \
  X(graph_n_nodes, int, (Graph*))                                  \
  X(graph_node, Tensor*, (Graph*, int))                            \
  X(graph_get_tensor, Tensor*, (Graph*, const char*))              \
  X(op_desc, const char*, (const Tensor*))                         \
  X(op_name, const char*, (int))                                   \
  X(version, const char*, ())                                      \
  X(commit, const char*, ())                                       \
  X(type_name, const char*, (int))                                 \
  X(type_size, size_t, (int))                                      \
  X(element_size, size_t, (const Tensor*))                         \
  X(nelements, int64_t, (const Tensor*))                           \
  X(nbytes, size_t, (const Tensor*))                               \
  X(tensor_overhead, size_t, ())                                   \
  X(get_name, const char*, (const Tensor*))                        \
  X(get_data, void*, (const Tensor*))                              \
  X(backend_name, const char*, (Backend*))                         \
  X(backend_get_device, BackendDevice*, (Backend*))                \
  X(backend_dev_type, int, (BackendDevice*))                       \
  X(backend_dev_description, const char*, (BackendDevice*))        \
  X(backend_dev_buffer_type, BufferType*, (BackendDevice*))        \
  X(backend_buft_is_host, bool, (BufferType*))                     \
  X(backend_buft_name, const char*, (BufferType*))                 \
  X(backend_buffer_get_type, BufferType*, (Buffer*))               \
  X(backend_sched_get_tensor_backend, Backend*, (Sched*, Tensor*)) \
  X(backend_sched_get_n_splits, int, (Sched*))                     \
  X(backend_sched_synchronize, void, (Sched*))

// The functions of one copy of ggml.
struct Functions {
#define WEIR_DECLARE(name, result, parameters) result(*name) parameters;
  WEIR_GGML_INTERPOSED(WEIR_DECLARE)
  WEIR_GGML_ASKED(WEIR_DECLARE)
#undef WEIR_DECLARE
};

// Does `tensor` look as tensors have since November 2024? What lies at fixed places is compared
// with what ggml itself says of the tensor. Reads no more than ggml says a tensor has.
bool layout_fits(const Functions& ggml, const Tensor* tensor);

// What is read from a tensor itself, for layouts that fit.
struct TensorView {
  const char* at;

  explicit TensorView(const Tensor* tensor) : at(reinterpret_cast<const char*>(tensor)) {}
  [[nodiscard]] int type() const { return *reinterpret_cast<const int*>(at); }
  [[nodiscard]] const int64_t* ne() const { return reinterpret_cast<const int64_t*>(at + 16); }
  [[nodiscard]] const uint64_t* nb() const { return reinterpret_cast<const uint64_t*>(at + 48); }
  [[nodiscard]] int op() const { return *reinterpret_cast<const int*>(at + 80); }
  [[nodiscard]] const int32_t* params() const { return reinterpret_cast<const int32_t*>(at + 84); }
  [[nodiscard]] uint64_t offset_in_view() const {
    return *reinterpret_cast<const uint64_t*>(at + 240);
  }
  [[nodiscard]] int32_t flags() const { return *reinterpret_cast<const int32_t*>(at + 148); }
  [[nodiscard]] const Tensor* source(size_t i) const { return pointers(152)[i]; }
  [[nodiscard]] const Tensor* view_of() const { return pointers(232)[0]; }
  // Where its bytes lie; null before they are given a place.
  [[nodiscard]] Buffer* buffer() const {
    const Tensor* whole = view_of();
    return *reinterpret_cast<Buffer* const*>(
        (whole == nullptr ? at : reinterpret_cast<const char*>(whole)) + 8);
  }

 private:
  [[nodiscard]] const Tensor* const* pointers(size_t offset) const {
    return reinterpret_cast<const Tensor* const*>(at + offset);
  }
};

}  // namespace weir_probe
