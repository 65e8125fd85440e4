// The functions that stand in front of CUDA's: those of the runtime, of cuBLAS and NCCL, and the
// driver's that hand out memory. On a CUDA twin and on a GPU alike, so that a count is the same
// thing on both.
#include "gate/probes/inject/cuda/cuda.h"
#include "gate/probes/inject/streams/device_memory.h"

using namespace weir_probe;
using namespace weir_probe::cuda;
using namespace weir_probe::streams;

namespace {

Table g_cublas_streams;  // handle -> stream

// A kernel that the library is trusted to run: how many there are behind the call is its own
// affair, so it counts as one of that name.
void library_ran(const char* name, void* stream, bool of_cublas) {
  happens_now(stream,
              {k_kernel_node, {name, name, sizes_of({1, 1, 1}, {1, 1, 1}, 0)}, false, of_cublas});
}

bool is_of_device(const void* at) {
  constexpr int k_memory_type = 2, k_of_device = 2;
  unsigned type = 0;
  return succeeds(asked().cuPointerGetAttribute, static_cast<void*>(&type), k_memory_type,
                  key_of(at)) &&
         type == k_of_device;
}

namespace api {

using cuda::graph_was_made, cuda::graph_was_launched, cuda::executable_ended;
using CooperativeShared = size_t;

void launched(void* stream, const void* function, Size3 grid, Size3 block, size_t shared,
              const LaunchAttributes& attributes = {}) {
  happens_now(stream, {k_kernel_node,
                       {function, nullptr, sizes_of(grid, block, shared), attributes.hash()},
                       attributes.programmatic != 0});
}
void launched(void* stream, const void* function, const LaunchConfig& config) {
  launched(stream, function, config.grid, config.block, config.shared, attributes_of(config));
}
void capture_began(void* stream) { cuda::capture_began(stream, nullptr); }
void instantiated(void* exec, void* graph) {
  graph_was_made(exec, graph);
  count(k_graph_instantiations);
}
bool is_answered(int result) { return result == k_ok || result == k_not_ready; }
void recorded(void* event, void* stream) {
  if (capture_of(stream) == 0) streams::recorded(event, stream);
}
// A stream that joins a capture by it waits for nothing.
void waits_for_event(void* stream) {
  if (capture_of(stream) == 0) streams::waits_for_event(stream);
}
void copied(void* stream, const void* to, const void* from, int direction, uint64_t bytes,
            bool waits) {
  if (!happens_now(stream, {k_copy_node, {}})) return;
  if (direction == k_by_address)
    direction = (is_of_device(from) ? 2 : 0) + (is_of_device(to) ? 1 : 0);
  streams::copied(stream, direction, bytes, waits);
}
void filled(void* stream, uint64_t bytes) {
  if (happens_now(stream, {k_fill_node, {}})) streams::filled(stream, bytes);
}
void memory_asked(int result, uint64_t at, uint64_t bytes, int device) {
  if (result == k_out_of_memory) count(k_memory_refused);
  if (result == k_ok) count(k_device_memory_bytes, memory_taken(at, bytes, device));
}
void taken(int result, void* const* at, uint64_t bytes) {
  memory_asked(result, result == k_ok ? key_of(*at) : 0, up_to_unit(bytes, k_small_memory_unit),
               current_device());
}
void created(int result, const uint64_t* handle, uint64_t bytes, const void* properties) {
  const auto* of = static_cast<const AllocationProperties*>(properties);
  if (of->location_type != k_on_device) return;
  memory_asked(result, result == k_ok ? *handle : 0, up_to_unit(bytes, k_memory_unit),
               of->location);
}

}  // namespace api
}  // namespace

#define WEIR_ALONE(name, ...) WEIR_ROUND(cuda##name, false, __VA_ARGS__)
#define WEIR_DRIVER(name, ...) WEIR_ROUND(cu##name, false, __VA_ARGS__)
#define WEIR_PTSZ(name, ...) \
  WEIR_ALONE(name, __VA_ARGS__) WEIR_ROUND(cuda##name##_ptsz, true, __VA_ARGS__)
#define WEIR_PTDS(name, ...) \
  WEIR_ALONE(name, __VA_ARGS__) WEIR_ROUND(cuda##name##_ptds, true, __VA_ARGS__)
#define WEIR_PTSZ_SPT WEIR_PTSZ
#define WEIR_PTDS_SPT WEIR_PTDS
#include "gate/probes/inject/streams/runtime_calls.h"

// --- functions by name
WEIR_EXPORTED void __cudaRegisterFunction(void** handle, const char* host, char* device,
                                          const char* name, int limit, void* a, void* b, void* c,
                                          void* d, int* e) {
  static void* slot;
  const auto next =
      reinterpret_cast<decltype(&__cudaRegisterFunction)>(next_function(&slot, __func__));
  if (next == nullptr) return;
  next(handle, host, device, name, limit, a, b, c, d, e);
  cuda::function_is(host, name);
}
WEIR_COUNTED(WEIR_NAMED, __cudaGetKernel, (void** kernel, const void* host), (kernel, host),
             function_is_also(*kernel, host))

// What nvcc has kernels launched by, where it is asked to.
#define WEIR_INNER_PTSZ(name, ...) \
  WEIR_ROUND(__cuda##name, false, __VA_ARGS__) WEIR_ROUND(__cuda##name##_ptsz, true, __VA_ARGS__)
WEIR_COUNTED(WEIR_INNER_PTSZ, LaunchKernel,
             (const void* f, Size3 grid, Size3 block, void** args, size_t shared, void* stream),
             (f, grid, block, args, shared, stream),
             api::launched(meant(stream), f, grid, block, shared))

// --- cuBLAS and NCCL
WEIR_COUNTED(WEIR_NAMED, cublasSetStream_v2, (void* handle, void* stream), (handle, stream),
             g_cublas_streams.insert(key_of(handle), stream))
WEIR_ENDED(WEIR_NAMED, cublasDestroy_v2, (void* handle), (handle),
           g_cublas_streams.remove(key_of(handle)))
// Only the handle is looked at. Each has at most 24 arguments, numbers and pointers: as many words
// are handed on as they came, and what is beyond a function's own it does not read.
#define WEIR_WORDS(X)                                                                             \
  X(1), X(2), X(3), X(4), X(5), X(6), X(7), X(8), X(9), X(10), X(11), X(12), X(13), X(14), X(15), \
      X(16), X(17), X(18), X(19), X(20), X(21), X(22), X(23)
#define WEIR_WORD(i) size_t w##i
#define WEIR_SAME_WORD(i) w##i
#define WEIR_MULTIPLIES(name)                                           \
  WEIR_COUNTED(WEIR_NAMED, name, (void* handle, WEIR_WORDS(WEIR_WORD)), \
               (handle, WEIR_WORDS(WEIR_SAME_WORD)),                    \
               library_ran(#name, g_cublas_streams.find(key_of(handle)), true))
WEIR_CUBLAS_PRODUCTS(WEIR_MULTIPLIES)
WEIR_COUNTED(WEIR_NAMED, ncclAllReduce,
             (const void* from, void* to, size_t count, int type, int op, void* communicator,
              void* stream),
             (from, to, count, type, op, communicator, stream),
             library_ran("ncclAllReduce", stream, false))

// --- captures, graphs and copies of CUDA's alone
WEIR_COUNTED(WEIR_PTSZ, StreamBeginCaptureToGraph,
             (void* stream, void* graph, const void* nodes, const void* edges, size_t count,
              int mode),
             (stream, graph, nodes, edges, count, mode), cuda::capture_began(meant(stream), graph))
#define WEIR_END_CAPTURE(name, none)                                                  \
  WEIR_EXPORTED int name(void* stream, void** graph) {                                \
    static void* slot;                                                                \
    const auto next = reinterpret_cast<decltype(&name)>(next_function(&slot, #name)); \
    if (next == nullptr) return streams::k_not_found;                                 \
    const uint64_t capture =                                                          \
        capture_begun_on(stream == nullptr ? reinterpret_cast<void*>(none) : stream); \
    const int result = next(stream, graph);                                           \
    if (capture != 0) capture_ended(capture, result == k_ok ? *graph : nullptr);      \
    return result;                                                                    \
  }
WEIR_END_CAPTURE(cudaStreamEndCapture, k_null_stream)
WEIR_END_CAPTURE(cudaStreamEndCapture_ptsz, k_thread_stream)
WEIR_ENDED(WEIR_ALONE, GraphDestroy, (void* graph), (graph), cuda::graph_ended(graph))
WEIR_COUNTED(WEIR_PTSZ, Memcpy3DPeerAsync, (const PeerCopy* of, void* stream), (of, stream),
             api::copied(meant(stream), of->to.at, of->from.at, k_within,
                         of->width * of->height * of->depth, false))
