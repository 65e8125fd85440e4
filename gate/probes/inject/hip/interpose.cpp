// The functions that stand in front of the HIP runtime's.
//
// A call on a stream that is being captured builds a graph: it counts when that is
// launched.
#include "gate/probes/inject/hip/hip.h"

using namespace weir_probe;
using namespace weir_probe::hip;
using namespace weir_probe::streams;

namespace {

void launched(void* stream, const void* function, const weir_probe_launch& sizes) {
  streams::launched(stream, {function, nullptr, sizes});
}

void taken(void* const* at, size_t bytes) {
  memory_taken(reinterpret_cast<uint64_t>(*at), bytes, current_device());
}

}  // namespace

// --- memory: sizes as they were asked for ---
WEIR_IN_FRONT(hipMalloc, (void** at, size_t bytes), (at, bytes), taken(at, bytes))
WEIR_IN_FRONT(hipExtMallocWithFlags, (void** at, size_t bytes, unsigned flags), (at, bytes, flags),
              taken(at, bytes))
WEIR_IN_FRONT(hipMallocManaged, (void** at, size_t bytes, unsigned flags), (at, bytes, flags),
              taken(at, bytes))
WEIR_IN_FRONT(hipMallocAsync, (void** at, size_t bytes, void* stream), (at, bytes, stream),
              taken(at, bytes))
WEIR_IN_FRONT(hipMallocFromPoolAsync, (void** at, size_t bytes, void* pool, void* stream),
              (at, bytes, pool, stream), taken(at, bytes))
WEIR_ENDS(hipFree, (void* at), (at), memory_given_back(at))
WEIR_ENDS(hipFreeAsync, (void* at, void* stream), (at, stream), memory_given_back(at))
WEIR_ENDS(hipDeviceReset, (), (), memory_reset(current_device()))
WEIR_IN_FRONT(hipMemCreate,
              (void** handle, size_t bytes, const void* properties, unsigned long long flags),
              (handle, bytes, properties, flags), taken(handle, bytes))
WEIR_ENDS(hipMemRelease, (void* handle), (handle),
          memory_released(reinterpret_cast<uint64_t>(handle)))
WEIR_IN_FRONT(hipMemMap,
              (void* at, size_t bytes, size_t offset, void* handle, unsigned long long flags),
              (at, bytes, offset, handle, flags),
              memory_mapped(reinterpret_cast<uint64_t>(handle), reinterpret_cast<uint64_t>(at)))
WEIR_ENDS(hipMemUnmap, (void* at, size_t bytes), (at, bytes),
          memory_unmapped(reinterpret_cast<uint64_t>(at), bytes))

// --- launches ---
WEIR_IN_FRONT_OF_BOTH(hipLaunchKernel, _spt,
                      (const void* f, Dim3 grid, Dim3 block, void** args, size_t shared,
                       void* stream),
                      (f, grid, block, args, shared, stream),
                      launched(meant(stream), f, sizes_of(grid, block, shared)))
WEIR_IN_FRONT(hipExtLaunchKernel,
              (const void* f, Dim3 grid, Dim3 block, void** args, size_t shared, void* stream,
               void* start, void* stop, int flags),
              (f, grid, block, args, shared, stream, start, stop, flags),
              launched(stream, f, sizes_of(grid, block, shared)))
WEIR_IN_FRONT(hipLaunchCooperativeKernel,
              (const void* f, Dim3 grid, Dim3 block, void** args, unsigned shared, void* stream),
              (f, grid, block, args, shared, stream),
              launched(stream, f, sizes_of(grid, block, shared)))
WEIR_IN_FRONT(hipLaunchKernelExC, (const LaunchConfig* config, const void* f, void** args),
              (config, f, args),
              launched(config->stream, f, sizes_of(config->grid, config->block, config->shared)))
WEIR_IN_FRONT(hipModuleLaunchKernel,
              (void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
               unsigned bz, unsigned shared, void* stream, void** args, void** extra),
              (f, gx, gy, gz, bx, by, bz, shared, stream, args, extra),
              launched(stream, f, sizes_of({gx, gy, gz}, {bx, by, bz}, shared)))
WEIR_IN_FRONT(hipModuleLaunchCooperativeKernel,
              (void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
               unsigned bz, unsigned shared, void* stream, void** args),
              (f, gx, gy, gz, bx, by, bz, shared, stream, args),
              launched(stream, f, sizes_of({gx, gy, gz}, {bx, by, bz}, shared)))
// Told in threads, not in blocks.
WEIR_IN_FRONT(hipExtModuleLaunchKernel,
              (void* f, uint32_t wx, uint32_t wy, uint32_t wz, uint32_t bx, uint32_t by,
               uint32_t bz, size_t shared, void* stream, void** args, void** extra, void* start,
               void* stop, uint32_t flags),
              (f, wx, wy, wz, bx, by, bz, shared, stream, args, extra, start, stop, flags),
              launched(stream, f,
                       sizes_of({bx == 0 ? 0 : wx / bx, by == 0 ? 0 : wy / by,
                                 bz == 0 ? 0 : wz / bz},
                                {bx, by, bz}, shared)))

WEIR_IN_FRONT(hipModuleGetFunction, (void** f, void* module, const char* name), (f, module, name),
              function_was_found(*f, name))

// --- graphs ---
WEIR_IN_FRONT(hipStreamBeginCapture, (void* stream, int mode), (stream, mode), capture_began())
WEIR_IN_FRONT(hipGraphInstantiate, (void** exec, void* graph, void** node, char* log, size_t size),
              (exec, graph, node, log, size), graph_was_made(*exec, graph))
WEIR_IN_FRONT(hipGraphInstantiateWithFlags, (void** exec, void* graph, unsigned long long flags),
              (exec, graph, flags), graph_was_made(*exec, graph))
WEIR_IN_FRONT(hipGraphInstantiateWithParams, (void** exec, void* graph, void* params),
              (exec, graph, params), graph_was_made(*exec, graph))
WEIR_IN_FRONT(hipGraphExecUpdate, (void* exec, void* graph, void** node, int* how),
              (exec, graph, node, how), graph_was_made(exec, graph))
WEIR_ENDS(hipGraphExecDestroy, (void* exec), (exec), graph_ended(exec))
WEIR_IN_FRONT_OF_BOTH(hipGraphLaunch, _spt, (void* exec, void* stream), (exec, stream),
                      launched_graph(meant(stream), exec))

// --- waits ---
WEIR_IN_FRONT_OF_BOTH(hipStreamSynchronize, _spt, (void* stream), (stream),
                      waited(stream_of(meant(stream))))
WEIR_IN_FRONT(hipEventSynchronize, (void* event), (event), waited(stream_of_event(event)))
WEIR_ENDS(hipStreamDestroy, (void* stream), (stream), stream_ended(stream))
WEIR_ENDS(hipEventDestroy, (void* event), (event),
          g.events.remove(reinterpret_cast<uint64_t>(event)))
WEIR_IN_FRONT_OF_BOTH(hipEventRecord, _spt, (void* event, void* stream), (event, stream),
                      recorded(event, meant(stream)))
WEIR_IN_FRONT(hipEventRecordWithFlags, (void* event, void* stream, unsigned flags),
              (event, stream, flags), recorded(event, stream))

WEIR_IN_FRONT(hipDeviceSynchronize, (), (), waited_for_device())

// A dependency between streams: the nearest that HIP has to a barrier.
WEIR_IN_FRONT(hipStreamWaitEvent, (void* stream, void* event, unsigned flags),
              (stream, event, flags), waits_for_event(stream))

// Polls answer with something other than success when it is not done.
#define WEIR_POLL(name, per_thread, stream) \
  WEIR_AROUND(name, per_thread, (void* handle), (handle), true, polled(stream, result))
WEIR_POLL(hipStreamQuery, false, stream_of(handle))
WEIR_POLL(hipStreamQuery_spt, true, stream_of(meant(handle)))
WEIR_POLL(hipEventQuery, false, stream_of_event(handle))

// --- copies and fills ---
WEIR_IN_FRONT_OF_BOTH(hipMemcpy, _spt, (void* to, const void* from, size_t bytes, int direction),
                      (to, from, bytes, direction), copied(meant(nullptr), direction, bytes, true))
WEIR_IN_FRONT(hipMemcpyWithStream,
              (void* to, const void* from, size_t bytes, int direction, void* stream),
              (to, from, bytes, direction, stream), copied(stream, direction, bytes, true))
WEIR_IN_FRONT_OF_BOTH(hipMemcpyAsync, _spt,
                      (void* to, const void* from, size_t bytes, int direction, void* stream),
                      (to, from, bytes, direction, stream),
                      copied(meant(stream), direction, bytes, false))
WEIR_IN_FRONT(hipMemcpyHtoD, (void* to, void* from, size_t bytes), (to, from, bytes),
              copied(nullptr, k_to_device, bytes, true))
WEIR_IN_FRONT(hipMemcpyDtoH, (void* to, void* from, size_t bytes), (to, from, bytes),
              copied(nullptr, k_to_host, bytes, true))
WEIR_IN_FRONT(hipMemcpyDtoD, (void* to, void* from, size_t bytes), (to, from, bytes),
              copied(nullptr, k_within, bytes, false))
WEIR_IN_FRONT(hipMemcpyHtoDAsync, (void* to, const void* from, size_t bytes, void* stream),
              (to, from, bytes, stream), copied(stream, k_to_device, bytes, false))
WEIR_IN_FRONT(hipMemcpyDtoHAsync, (void* to, void* from, size_t bytes, void* stream),
              (to, from, bytes, stream), copied(stream, k_to_host, bytes, false))
WEIR_IN_FRONT(hipMemcpyDtoDAsync, (void* to, void* from, size_t bytes, void* stream),
              (to, from, bytes, stream), copied(stream, k_within, bytes, false))
WEIR_IN_FRONT(hipMemcpyPeer, (void* to, int there, const void* from, int here, size_t bytes),
              (to, there, from, here, bytes), copied(nullptr, k_within, bytes, false))
WEIR_IN_FRONT(hipMemcpyPeerAsync,
              (void* to, int there, const void* from, int here, size_t bytes, void* stream),
              (to, there, from, here, bytes, stream), copied(stream, k_within, bytes, false))
WEIR_IN_FRONT(hipMemcpy2D,
              (void* to, size_t pitch, const void* from, size_t from_pitch, size_t width,
               size_t height, int direction),
              (to, pitch, from, from_pitch, width, height, direction),
              copied(nullptr, direction, width* height, true))
WEIR_IN_FRONT(hipMemcpy2DAsync,
              (void* to, size_t pitch, const void* from, size_t from_pitch, size_t width,
               size_t height, int direction, void* stream),
              (to, pitch, from, from_pitch, width, height, direction, stream),
              copied(stream, direction, width* height, false))
WEIR_IN_FRONT(hipMemset, (void* to, int value, size_t bytes), (to, value, bytes),
              filled(nullptr, bytes))
WEIR_IN_FRONT(hipMemsetAsync, (void* to, int value, size_t bytes, void* stream),
              (to, value, bytes, stream), filled(stream, bytes))
WEIR_IN_FRONT(hipMemsetD8Async, (void* to, unsigned char value, size_t count, void* stream),
              (to, value, count, stream), filled(stream, count))
WEIR_IN_FRONT(hipMemsetD32Async, (void* to, int value, size_t count, void* stream),
              (to, value, count, stream), filled(stream, count * sizeof value))
