// Intercepts the HIP runtime's functions and counts their calls.
//
// A call on a stream that is being captured builds a graph: it counts when that is launched.
#include "gate/probes/inject/hip/hip.h"

using namespace weir_probe;
using namespace weir_probe::hip;
using namespace weir_probe::streams;

namespace {
namespace api {

using streams::count_barrier, streams::count_fill, streams::note_event_record;
using CooperativeShared = unsigned;

void count_launch(void* stream, const void* function, const weir_probe_launch& sizes) {
  streams::count_launch(stream, {function, nullptr, sizes});
}
void count_launch(void* stream, const void* function, Dim3 grid, Dim3 block, size_t shared) {
  count_launch(stream, function, launch_sizes(grid, block, shared));
}
void count_launch(void* stream, const void* function, const LaunchConfig& config) {
  count_launch(stream, function, config.grid, config.block, config.shared);
}
void note_capture(void*) { streams::note_capture(); }
void add_executable(void* exec, void* graph) { add_graph(exec, graph); }
void note_instantiation(void* exec, void* graph) { add_executable(exec, graph); }
void count_executable_launch(void* stream, void* exec) { count_graph_launch(stream, exec); }
void forget_executable(void* exec) { forget_graph(exec); }
// Polls answer with something other than success when it is not done.
bool is_answered(int) { return true; }
void count_copy(void* stream, const void*, const void*, int direction, uint64_t bytes, bool waits) {
  streams::count_copy(stream, direction, bytes, waits);
}
// Sizes are those requested.
void count_created_memory(int result, const uint64_t* at, size_t bytes, const void*) {
  if (result == k_done) add_memory(*at, bytes, current_device());
}
void count_allocation(int result, void* const* at, size_t bytes) {
  if (result != k_done) return;
  add_memory(key_of(*at), bytes, current_device());
}

}  // namespace api
}  // namespace

#define WEIR_ALONE(name, ...) WEIR_INTERCEPT(hip##name, false, __VA_ARGS__)
#define WEIR_PTSZ_SPT(name, ...) \
  WEIR_ALONE(name, __VA_ARGS__)  \
  WEIR_INTERCEPT(hip##name##_spt, true, __VA_ARGS__)
#define WEIR_PTDS_SPT WEIR_PTSZ_SPT
#define WEIR_PTSZ WEIR_ALONE
#define WEIR_PTDS WEIR_ALONE
#define WEIR_DRIVER WEIR_ALONE
#include "gate/probes/inject/streams/runtime_calls.h"

// --- calls of HIP's alone
WEIR_ANSWERED(WEIR_ALONE, ExtMallocWithFlags, (void** at, size_t bytes, unsigned flags),
              (at, bytes, flags), api::count_allocation(result, at, bytes))
WEIR_ANSWERED(WEIR_ALONE, MallocManaged, (void** at, size_t bytes, unsigned flags),
              (at, bytes, flags), api::count_allocation(result, at, bytes))
WEIR_ANSWERED(WEIR_ALONE, MallocFromPoolAsync, (void** at, size_t bytes, void* pool, void* stream),
              (at, bytes, pool, stream), api::count_allocation(result, at, bytes))
WEIR_COUNTED(WEIR_ALONE, ExtLaunchKernel,
             (const void* f, Dim3 grid, Dim3 block, void** args, size_t shared, void* stream,
              void* start, void* stop, int flags),
             (f, grid, block, args, shared, stream, start, stop, flags),
             api::count_launch(stream, f, launch_sizes(grid, block, shared)))
WEIR_COUNTED(WEIR_ALONE, ModuleLaunchKernel,
             (void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
              unsigned shared, void* stream, void** args, void** extra),
             (f, gx, gy, gz, bx, by, bz, shared, stream, args, extra),
             api::count_launch(stream, f, launch_sizes({gx, gy, gz}, {bx, by, bz}, shared)))
WEIR_COUNTED(WEIR_ALONE, ModuleLaunchCooperativeKernel,
             (void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
              unsigned shared, void* stream, void** args),
             (f, gx, gy, gz, bx, by, bz, shared, stream, args),
             api::count_launch(stream, f, launch_sizes({gx, gy, gz}, {bx, by, bz}, shared)))
// This call gives the grid in threads, not in blocks.
WEIR_COUNTED(WEIR_ALONE, ExtModuleLaunchKernel,
             (void* f, uint32_t wx, uint32_t wy, uint32_t wz, uint32_t bx, uint32_t by, uint32_t bz,
              size_t shared, void* stream, void** args, void** extra, void* start, void* stop,
              uint32_t flags),
             (f, wx, wy, wz, bx, by, bz, shared, stream, args, extra, start, stop, flags),
             api::count_launch(stream, f,
                               launch_sizes({bx == 0 ? 0 : wx / bx, by == 0 ? 0 : wy / by,
                                             bz == 0 ? 0 : wz / bz},
                                            {bx, by, bz}, shared)))

// A module's functions have no host function to be named by.
WEIR_COUNTED(WEIR_ALONE, ModuleGetFunction, (void** f, void* module, const char* name),
             (f, module, name), name_function(*f, name))

WEIR_COUNTED(WEIR_ALONE, MemcpyWithStream,
             (void* to, const void* from, size_t bytes, int direction, void* stream),
             (to, from, bytes, direction, stream),
             count_copy(stream, direction, bytes, /*waits=*/true))
WEIR_COUNTED(WEIR_ALONE, MemcpyHtoD, (void* to, void* from, size_t bytes), (to, from, bytes),
             count_copy(nullptr, k_to_device, bytes, /*waits=*/true))
WEIR_COUNTED(WEIR_ALONE, MemcpyDtoH, (void* to, void* from, size_t bytes), (to, from, bytes),
             count_copy(nullptr, k_to_host, bytes, /*waits=*/true))
WEIR_COUNTED(WEIR_ALONE, MemcpyDtoD, (void* to, void* from, size_t bytes), (to, from, bytes),
             count_copy(nullptr, k_within, bytes, /*waits=*/false))
WEIR_COUNTED(WEIR_ALONE, MemcpyHtoDAsync, (void* to, const void* from, size_t bytes, void* stream),
             (to, from, bytes, stream), count_copy(stream, k_to_device, bytes, /*waits=*/false))
WEIR_COUNTED(WEIR_ALONE, MemcpyDtoHAsync, (void* to, void* from, size_t bytes, void* stream),
             (to, from, bytes, stream), count_copy(stream, k_to_host, bytes, /*waits=*/false))
WEIR_COUNTED(WEIR_ALONE, MemcpyDtoDAsync, (void* to, void* from, size_t bytes, void* stream),
             (to, from, bytes, stream), count_copy(stream, k_within, bytes, /*waits=*/false))
WEIR_COUNTED(WEIR_ALONE, MemcpyPeer,
             (void* to, int there, const void* from, int here, size_t bytes),
             (to, there, from, here, bytes), count_copy(nullptr, k_within, bytes, /*waits=*/false))
WEIR_COUNTED(WEIR_ALONE, MemsetD8Async, (void* to, unsigned char value, size_t count, void* stream),
             (to, value, count, stream), count_fill(stream, count))
WEIR_COUNTED(WEIR_ALONE, MemsetD32Async, (void* to, int value, size_t count, void* stream),
             (to, value, count, stream), count_fill(stream, count * sizeof value))
