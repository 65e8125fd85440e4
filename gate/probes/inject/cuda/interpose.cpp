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

void launched(void* stream, const void* function, Size3 grid, Size3 block, size_t shared,
              const LaunchAttributes& attributes = {}) {
  happens_now(stream, {k_kernel_node,
                       {function, nullptr, sizes_of(grid, block, shared), attributes.hash()},
                       attributes.programmatic != 0});
}

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
                  reinterpret_cast<uint64_t>(at)) &&
         type == k_of_device;
}

void copied(void* stream, const void* to, const void* from, int direction, uint64_t bytes,
            bool waits) {
  if (!happens_now(stream, {k_copy_node, {}})) return;
  if (direction == k_by_address)
    direction = (is_of_device(from) ? 2 : 0) + (is_of_device(to) ? 1 : 0);
  streams::copied(stream, direction, bytes, waits);
}
void fill_asked(void* stream, uint64_t bytes) {
  if (happens_now(stream, {k_fill_node, {}})) streams::filled(stream, bytes);
}

void event_recorded(void* event, void* stream) {
  if (capture_of(stream) == 0) recorded(event, stream);
}

bool is_answered(int result) { return result == k_ok || result == k_not_ready; }

void memory_asked(int result, uint64_t at, uint64_t bytes, int device) {
  if (result == k_out_of_memory) count(k_memory_refused);
  if (result == k_ok) count(k_device_memory_bytes, memory_taken(at, bytes, device));
}
void taken(int result, void* const* at, uint64_t bytes) {
  memory_asked(result, result == k_ok ? reinterpret_cast<uint64_t>(*at) : 0,
               up_to_unit(bytes, k_small_memory_unit), current_device());
}

}  // namespace

// --- functions by name
WEIR_EXPORTED void __cudaRegisterFunction(void** handle, const char* host, char* device,
                                          const char* name, int limit, void* a, void* b, void* c,
                                          void* d, int* e) {
  static void* slot;
  const auto next =
      reinterpret_cast<decltype(&__cudaRegisterFunction)>(next_function(&slot, __func__));
  if (next == nullptr) return;
  next(handle, host, device, name, limit, a, b, c, d, e);
  function_is(host, name);
}
WEIR_IN_FRONT(__cudaGetKernel, (void** kernel, const void* host), (kernel, host),
              function_is_also(*kernel, host))

// --- launches
WEIR_IN_FRONT_OF_BOTH(cudaLaunchKernel, _ptsz,
                      (const void* f, Size3 grid, Size3 block, void** args, size_t shared,
                       void* stream),
                      (f, grid, block, args, shared, stream),
                      launched(meant(stream), f, grid, block, shared))
WEIR_IN_FRONT_OF_BOTH(__cudaLaunchKernel, _ptsz,
                      (const void* f, Size3 grid, Size3 block, void** args, size_t shared,
                       void* stream),
                      (f, grid, block, args, shared, stream),
                      launched(meant(stream), f, grid, block, shared))
WEIR_IN_FRONT_OF_BOTH(cudaLaunchCooperativeKernel, _ptsz,
                      (const void* f, Size3 grid, Size3 block, void** args, size_t shared,
                       void* stream),
                      (f, grid, block, args, shared, stream),
                      launched(meant(stream), f, grid, block, shared))
WEIR_IN_FRONT_OF_BOTH(cudaLaunchKernelExC, _ptsz,
                      (const LaunchConfig* config, const void* f, void** args), (config, f, args),
                      launched(meant(config->stream), f, config->grid, config->block,
                               config->shared, attributes_of(*config)))

// --- cuBLAS and NCCL
WEIR_IN_FRONT(cublasSetStream_v2, (void* handle, void* stream), (handle, stream),
              g_cublas_streams.insert(reinterpret_cast<uint64_t>(handle), stream))
WEIR_ENDS(cublasDestroy_v2, (void* handle), (handle),
          g_cublas_streams.remove(reinterpret_cast<uint64_t>(handle)))
// Only the handle is looked at. Each has at most 24 arguments, numbers and pointers: as many words
// are handed on as they came, and what is beyond a function's own it does not read.
#define WEIR_WORDS(X)                                                                             \
  X(1), X(2), X(3), X(4), X(5), X(6), X(7), X(8), X(9), X(10), X(11), X(12), X(13), X(14), X(15), \
      X(16), X(17), X(18), X(19), X(20), X(21), X(22), X(23)
#define WEIR_WORD(i) size_t w##i
#define WEIR_SAME_WORD(i) w##i
#define WEIR_MULTIPLIES(name)                                                            \
  WEIR_IN_FRONT(                                                                         \
      name, (void* handle, WEIR_WORDS(WEIR_WORD)), (handle, WEIR_WORDS(WEIR_SAME_WORD)), \
      library_ran(#name, g_cublas_streams.find(reinterpret_cast<uint64_t>(handle)), true))
WEIR_CUBLAS_PRODUCTS(WEIR_MULTIPLIES)
WEIR_IN_FRONT(ncclAllReduce,
              (const void* from, void* to, size_t count, int type, int op, void* communicator,
               void* stream),
              (from, to, count, type, op, communicator, stream),
              library_ran("ncclAllReduce", stream, false))

// --- graphs
WEIR_IN_FRONT_OF_BOTH(cudaStreamBeginCapture, _ptsz, (void* stream, int mode), (stream, mode),
                      cuda::capture_began(meant(stream), nullptr))
WEIR_IN_FRONT_OF_BOTH(cudaStreamBeginCaptureToGraph, _ptsz,
                      (void* stream, void* graph, const void* nodes, const void* edges,
                       size_t count, int mode),
                      (stream, graph, nodes, edges, count, mode),
                      cuda::capture_began(meant(stream), graph))
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
// Five words and four: as many as CUDA 11's have, which came in other versions of the libraries.
WEIR_IN_FRONT(cudaGraphInstantiate, (void** exec, void* graph, size_t a, size_t b, size_t c),
              (exec, graph, a, b, c), cuda::graph_was_made(*exec, graph),
              count(k_graph_instantiations))
WEIR_IN_FRONT(cudaGraphInstantiateWithFlags, (void** exec, void* graph, unsigned long long flags),
              (exec, graph, flags), cuda::graph_was_made(*exec, graph),
              count(k_graph_instantiations))
WEIR_IN_FRONT_OF_BOTH(cudaGraphInstantiateWithParams, _ptsz,
                      (void** exec, void* graph, void* params), (exec, graph, params),
                      cuda::graph_was_made(*exec, graph), count(k_graph_instantiations))
WEIR_IN_FRONT(cudaGraphExecUpdate, (void* exec, void* graph, size_t a, size_t b),
              (exec, graph, a, b), cuda::graph_was_made(exec, graph))
WEIR_IN_FRONT_OF_BOTH(cudaGraphLaunch, _ptsz, (void* exec, void* stream), (exec, stream),
                      graph_was_launched(meant(stream), exec))
WEIR_ENDS(cudaGraphDestroy, (void* graph), (graph), cuda::graph_ended(graph))
WEIR_ENDS(cudaGraphExecDestroy, (void* exec), (exec), executable_ended(exec))

// --- waits
WEIR_IN_FRONT_OF_BOTH(cudaStreamSynchronize, _ptsz, (void* stream), (stream),
                      waited(stream_of(meant(stream))))
WEIR_IN_FRONT(cudaEventSynchronize, (void* event), (event), waited(stream_of_event(event)))
WEIR_IN_FRONT(cudaDeviceSynchronize, (), (), waited_for_device())
WEIR_ENDS(cudaStreamDestroy, (void* stream), (stream), stream_ended(stream))
WEIR_ENDS(cudaEventDestroy, (void* event), (event),
          g.events.remove(reinterpret_cast<uint64_t>(event)))
WEIR_IN_FRONT_OF_BOTH(cudaEventRecord, _ptsz, (void* event, void* stream), (event, stream),
                      event_recorded(event, meant(stream)))
WEIR_IN_FRONT_OF_BOTH(cudaEventRecordWithFlags, _ptsz, (void* event, void* stream, unsigned flags),
                      (event, stream, flags), event_recorded(event, meant(stream)))
// The nearest that CUDA has to a barrier. A stream that joins a capture by it waits for nothing.
WEIR_IN_FRONT_OF_BOTH(cudaStreamWaitEvent, _ptsz, (void* stream, void* event, unsigned flags),
                      (stream, event, flags),
                      if (capture_of(meant(stream)) == 0) waits_for_event(meant(stream)))
WEIR_AROUND(cudaStreamQuery, false, (void* stream), (stream), is_answered(result),
            polled(stream_of(stream), result))
WEIR_AROUND(cudaStreamQuery_ptsz, true, (void* stream), (stream), is_answered(result),
            polled(stream_of(meant(stream)), result))
WEIR_AROUND(cudaEventQuery, false, (void* event), (event), is_answered(result),
            polled(stream_of_event(event), result))

// --- copies and fills
WEIR_IN_FRONT_OF_BOTH(cudaMemcpy, _ptds, (void* to, const void* from, size_t bytes, int direction),
                      (to, from, bytes, direction),
                      copied(meant(nullptr), to, from, direction, bytes, true))
WEIR_IN_FRONT_OF_BOTH(cudaMemcpyAsync, _ptsz,
                      (void* to, const void* from, size_t bytes, int direction, void* stream),
                      (to, from, bytes, direction, stream),
                      copied(meant(stream), to, from, direction, bytes, false))
WEIR_IN_FRONT(cudaMemcpyPeerAsync,
              (void* to, int there, const void* from, int here, size_t bytes, void* stream),
              (to, there, from, here, bytes, stream),
              copied(stream, to, from, k_within, bytes, false))
WEIR_IN_FRONT_OF_BOTH(cudaMemcpy3DPeerAsync, _ptsz, (const PeerCopy* of, void* stream),
                      (of, stream),
                      copied(meant(stream), of->to.at, of->from.at, k_within,
                             of->width * of->height * of->depth, false))
WEIR_IN_FRONT_OF_BOTH(cudaMemcpy2D, _ptds,
                      (void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                       size_t height, int direction),
                      (to, to_pitch, from, from_pitch, width, height, direction),
                      copied(meant(nullptr), to, from, direction, width* height, true))
WEIR_IN_FRONT_OF_BOTH(cudaMemcpy2DAsync, _ptsz,
                      (void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                       size_t height, int direction, void* stream),
                      (to, to_pitch, from, from_pitch, width, height, direction, stream),
                      copied(meant(stream), to, from, direction, width* height, false))
WEIR_IN_FRONT_OF_BOTH(cudaMemset, _ptds, (void* to, int value, size_t bytes), (to, value, bytes),
                      fill_asked(meant(nullptr), bytes))
WEIR_IN_FRONT_OF_BOTH(cudaMemsetAsync, _ptsz, (void* to, int value, size_t bytes, void* stream),
                      (to, value, bytes, stream), fill_asked(meant(stream), bytes))

// --- memory
WEIR_AROUND(cudaMalloc, false, (void** out, size_t bytes), (out, bytes), true,
            taken(result, out, bytes))
WEIR_AROUND(cudaMallocAsync, false, (void** out, size_t bytes, void* stream), (out, bytes, stream),
            true, taken(result, out, bytes))
WEIR_AROUND(cudaMallocAsync_ptsz, true, (void** out, size_t bytes, void* stream),
            (out, bytes, stream), true, taken(result, out, bytes))
WEIR_ENDS(cudaFree, (void* at), (at), memory_given_back(at))
WEIR_ENDS(cudaFreeAsync, (void* at, void* stream), (at, stream), memory_given_back(at))
WEIR_ENDS(cudaFreeAsync_ptsz, (void* at, void* stream), (at, stream), memory_given_back(at))
WEIR_ENDS(cudaDeviceReset, (), (), memory_reset(current_device()))
WEIR_AROUND(cuMemCreate, false,
            (uint64_t * out, size_t bytes, const AllocationProperties* properties,
             unsigned long long flags),
            (out, bytes, properties, flags), properties->location_type == k_on_device,
            memory_asked(result, result == k_ok ? *out : 0, up_to_unit(bytes, k_memory_unit),
                         properties->location))
WEIR_ENDS(cuMemRelease, (uint64_t handle), (handle), memory_released(handle))
WEIR_IN_FRONT(cuMemMap,
              (uint64_t at, size_t bytes, size_t offset, uint64_t handle, unsigned long long flags),
              (at, bytes, offset, handle, flags), memory_mapped(handle, at))
WEIR_ENDS(cuMemUnmap, (uint64_t at, size_t bytes), (at, bytes), memory_unmapped(at, bytes))
