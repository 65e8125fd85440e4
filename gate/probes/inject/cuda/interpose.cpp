// Intercepts CUDA's functions: those of the runtime, of cuBLAS and NCCL, and the driver's that
// allocate memory. Works alike on a CUDA twin and on a GPU, so that a count means the same on both.
#include "gate/probes/inject/cuda/cuda.h"
#include "gate/probes/inject/streams/device_memory.h"

using namespace weir_probe;
using namespace weir_probe::cuda;
using namespace weir_probe::streams;

namespace {

Table g_cublas_streams;  // handle -> stream

// Counts a call of a library (cuBLAS, NCCL) as one dispatch of that name, however many kernels it
// runs.
void count_library_call(const char* name, void* stream, bool is_cublas) {
  count_or_capture(
      stream,
      {k_kernel_node, {name, name, launch_sizes({1, 1, 1}, {1, 1, 1}, 0)}, false, is_cublas});
}

bool is_device_memory(const void* at) {
  constexpr int k_memory_type = 2, k_of_device = 2;
  unsigned type = 0;
  return succeeds(cuda_functions().cuPointerGetAttribute, static_cast<void*>(&type), k_memory_type,
                  key_of(at)) &&
         type == k_of_device;
}

// Returns the Direction of a copy whose call leaves it to the addresses.
int find_direction(const void* from, const void* to) {
  const bool to_device = is_device_memory(to);
  if (is_device_memory(from)) return to_device ? k_within : k_to_host;
  return to_device ? k_to_device : k_to_host_from_host;
}

namespace api {

using cuda::add_executable, cuda::count_executable_launch, cuda::forget_executable;
using CooperativeShared = size_t;

void count_launch(void* stream, const void* function, Size3 grid, Size3 block, size_t shared,
                  const LaunchAttributes& attributes = {}) {
  count_or_capture(stream,
                   {k_kernel_node,
                    {function, nullptr, launch_sizes(grid, block, shared), attributes.hash()},
                    attributes.uses_dependent_launch != 0});
}
void count_launch(void* stream, const void* function, const LaunchConfig& config) {
  count_launch(stream, function, config.grid, config.block, config.shared, read_attributes(config));
}
void note_capture(void* stream) { cuda::note_capture(stream, nullptr); }
void note_instantiation(void* exec, void* graph) {
  add_executable(exec, graph);
  count(k_graph_instantiations);
}
bool is_answered(int result) { return result == k_ok || result == k_not_ready; }
void note_event_record(void* event, void* stream) {
  if (find_capture(stream) == 0) streams::note_event_record(event, stream);
}
// Counts a wait of a stream for an event, except when it only joins a capture by it.
void count_barrier(void* stream) {
  if (find_capture(stream) == 0) streams::count_barrier(stream);
}
void count_copy(void* stream, const void* to, const void* from, int direction, uint64_t bytes,
                bool waits) {
  if (!count_or_capture(stream, {k_copy_node, {}})) return;
  if (direction == k_by_address) direction = find_direction(from, to);
  streams::count_copy(stream, direction, bytes, waits);
}
void count_fill(void* stream, uint64_t bytes) {
  if (count_or_capture(stream, {k_fill_node, {}})) streams::count_fill(stream, bytes);
}
void record_allocation(int result, uint64_t at, uint64_t bytes, int device) {
  if (result == k_out_of_memory) count(k_memory_refused);
  if (result == k_ok) count(k_device_memory_bytes, add_memory(at, bytes, device));
}
void count_allocation(int result, void* const* at, uint64_t bytes) {
  record_allocation(result, result == k_ok ? key_of(*at) : 0,
                    round_up_to(bytes, k_allocation_granularity), current_device());
}
void count_created_memory(int result, const uint64_t* handle, uint64_t bytes,
                          const void* properties) {
  const auto* allocation = static_cast<const AllocationProperties*>(properties);
  if (allocation->location_type != k_on_device) return;
  record_allocation(result, result == k_ok ? *handle : 0,
                    round_up_to(bytes, k_reservation_granularity), allocation->location);
}

}  // namespace api
}  // namespace

#define WEIR_ALONE(name, ...) WEIR_INTERCEPT(cuda##name, false, __VA_ARGS__)
#define WEIR_DRIVER(name, ...) WEIR_INTERCEPT(cu##name, false, __VA_ARGS__)
#define WEIR_PTSZ(name, ...) \
  WEIR_ALONE(name, __VA_ARGS__) WEIR_INTERCEPT(cuda##name##_ptsz, true, __VA_ARGS__)
#define WEIR_PTDS(name, ...) \
  WEIR_ALONE(name, __VA_ARGS__) WEIR_INTERCEPT(cuda##name##_ptds, true, __VA_ARGS__)
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
  cuda::name_function(host, name);
}
WEIR_COUNTED(WEIR_INTERCEPT_NAMED, __cudaGetKernel, (void** kernel, const void* host),
             (kernel, host), copy_function_name(*kernel, host))

// The launch functions that nvcc uses on request.
#define WEIR_INNER_PTSZ(name, ...)                 \
  WEIR_INTERCEPT(__cuda##name, false, __VA_ARGS__) \
  WEIR_INTERCEPT(__cuda##name##_ptsz, true, __VA_ARGS__)
WEIR_COUNTED(WEIR_INNER_PTSZ, LaunchKernel,
             (const void* f, Size3 grid, Size3 block, void** args, size_t shared, void* stream),
             (f, grid, block, args, shared, stream),
             api::count_launch(actual_stream(stream), f, grid, block, shared))

// --- cuBLAS and NCCL
WEIR_COUNTED(WEIR_INTERCEPT_NAMED, cublasSetStream_v2, (void* handle, void* stream),
             (handle, stream), g_cublas_streams.insert(key_of(handle), stream))
WEIR_ENDED(WEIR_INTERCEPT_NAMED, cublasDestroy_v2, (void* handle), (handle),
           g_cublas_streams.remove(key_of(handle)))
// These functions have at most 24 arguments, numbers and pointers. Only the handle is read; 24
// words are passed on as they came, and a function ignores those beyond its own.
#define WEIR_WORDS(X)                                                                             \
  X(1), X(2), X(3), X(4), X(5), X(6), X(7), X(8), X(9), X(10), X(11), X(12), X(13), X(14), X(15), \
      X(16), X(17), X(18), X(19), X(20), X(21), X(22), X(23)
#define WEIR_WORD(i) size_t w##i
#define WEIR_SAME_WORD(i) w##i
#define WEIR_MULTIPLIES(name)                                            \
  WEIR_COUNTED(                                                          \
      WEIR_INTERCEPT_NAMED, name, (void* handle, WEIR_WORDS(WEIR_WORD)), \
      (handle, WEIR_WORDS(WEIR_SAME_WORD)),                              \
      count_library_call(#name, g_cublas_streams.find(key_of(handle)), /*is_cublas=*/true))
WEIR_CUBLAS_PRODUCTS(WEIR_MULTIPLIES)
WEIR_COUNTED(WEIR_INTERCEPT_NAMED, ncclAllReduce,
             (const void* from, void* to, size_t count, int type, int op, void* communicator,
              void* stream),
             (from, to, count, type, op, communicator, stream),
             count_library_call("ncclAllReduce", stream, /*is_cublas=*/false))

// --- captures, graphs and copies that only CUDA has
WEIR_COUNTED(WEIR_PTSZ, StreamBeginCaptureToGraph,
             (void* stream, void* graph, const void* nodes, const void* edges, size_t count,
              int mode),
             (stream, graph, nodes, edges, count, mode),
             cuda::note_capture(actual_stream(stream), graph))
#define WEIR_END_CAPTURE(name, none)                                                    \
  WEIR_EXPORTED int name(void* stream, void** graph) {                                  \
    static void* slot;                                                                  \
    const auto next = reinterpret_cast<decltype(&name)>(next_function(&slot, #name));   \
    if (next == nullptr) return streams::k_not_found;                                   \
    const uint64_t capture =                                                            \
        take_begun_capture(stream == nullptr ? reinterpret_cast<void*>(none) : stream); \
    const int result = next(stream, graph);                                             \
    if (capture != 0) end_capture(capture, result == k_ok ? *graph : nullptr);          \
    return result;                                                                      \
  }
WEIR_END_CAPTURE(cudaStreamEndCapture, k_null_stream)
WEIR_END_CAPTURE(cudaStreamEndCapture_ptsz, k_thread_stream)
WEIR_ENDED(WEIR_ALONE, GraphDestroy, (void* graph), (graph), cuda::forget_graph(graph))
WEIR_COUNTED(WEIR_PTSZ, Memcpy3DPeerAsync, (const PeerCopy* of, void* stream), (of, stream),
             api::count_copy(actual_stream(stream), of->to.at, of->from.at, k_within,
                             of->width * of->height * of->depth, /*waits=*/false))
