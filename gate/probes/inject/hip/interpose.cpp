// The functions that stand in front of the HIP runtime's.
//
// A call on a stream that is being captured builds a graph: it counts when that is
// launched.
#include "gate/probes/inject/hip/hip.h"

using namespace weir_probe;
using namespace weir_probe::hip;
using namespace weir_probe::streams;

namespace {
namespace api {

using streams::filled, streams::graph_was_made, streams::recorded, streams::waits_for_event;
using CooperativeShared = unsigned;

void launched(void* stream, const void* function, const weir_probe_launch& sizes) {
  streams::launched(stream, {function, nullptr, sizes});
}
void launched(void* stream, const void* function, Dim3 grid, Dim3 block, size_t shared) {
  launched(stream, function, sizes_of(grid, block, shared));
}
void launched(void* stream, const void* function, const LaunchConfig& config) {
  launched(stream, function, config.grid, config.block, config.shared);
}
void capture_began(void*) { streams::capture_began(); }
void instantiated(void* exec, void* graph) { graph_was_made(exec, graph); }
void graph_was_launched(void* stream, void* exec) { launched_graph(stream, exec); }
void executable_ended(void* exec) { graph_ended(exec); }
// Polls answer with something other than success when it is not done.
bool is_answered(int) { return true; }
void copied(void* stream, const void*, const void*, int direction, uint64_t bytes, bool waits) {
  streams::copied(stream, direction, bytes, waits);
}
// Sizes as they were asked for.
void created(int result, const uint64_t* at, size_t bytes, const void*) {
  if (result == k_done) memory_taken(*at, bytes, current_device());
}
void taken(int result, void* const* at, size_t bytes) {
  if (result != k_done) return;
  memory_taken(key_of(*at), bytes, current_device());
}

}  // namespace api
}  // namespace

#define WEIR_ALONE(name, ...) WEIR_ROUND(hip##name, false, __VA_ARGS__)
#define WEIR_PTSZ_SPT(name, ...) \
  WEIR_ALONE(name, __VA_ARGS__)  \
  WEIR_ROUND(hip##name##_spt, true, __VA_ARGS__)
#define WEIR_PTDS_SPT WEIR_PTSZ_SPT
#define WEIR_PTSZ WEIR_ALONE
#define WEIR_PTDS WEIR_ALONE
#define WEIR_DRIVER WEIR_ALONE
#include "gate/probes/inject/streams/runtime_calls.h"

// --- calls of HIP's alone
WEIR_ANSWERED(WEIR_ALONE, ExtMallocWithFlags, (void** at, size_t bytes, unsigned flags),
              (at, bytes, flags), api::taken(result, at, bytes))
WEIR_ANSWERED(WEIR_ALONE, MallocManaged, (void** at, size_t bytes, unsigned flags),
              (at, bytes, flags), api::taken(result, at, bytes))
WEIR_ANSWERED(WEIR_ALONE, MallocFromPoolAsync, (void** at, size_t bytes, void* pool, void* stream),
              (at, bytes, pool, stream), api::taken(result, at, bytes))
WEIR_COUNTED(WEIR_ALONE, ExtLaunchKernel,
             (const void* f, Dim3 grid, Dim3 block, void** args, size_t shared, void* stream,
              void* start, void* stop, int flags),
             (f, grid, block, args, shared, stream, start, stop, flags),
             api::launched(stream, f, sizes_of(grid, block, shared)))
WEIR_COUNTED(WEIR_ALONE, ModuleLaunchKernel,
             (void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
              unsigned shared, void* stream, void** args, void** extra),
             (f, gx, gy, gz, bx, by, bz, shared, stream, args, extra),
             api::launched(stream, f, sizes_of({gx, gy, gz}, {bx, by, bz}, shared)))
WEIR_COUNTED(WEIR_ALONE, ModuleLaunchCooperativeKernel,
             (void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
              unsigned shared, void* stream, void** args),
             (f, gx, gy, gz, bx, by, bz, shared, stream, args),
             api::launched(stream, f, sizes_of({gx, gy, gz}, {bx, by, bz}, shared)))
// Told in threads, not in blocks.
WEIR_COUNTED(WEIR_ALONE, ExtModuleLaunchKernel,
             (void* f, uint32_t wx, uint32_t wy, uint32_t wz, uint32_t bx, uint32_t by, uint32_t bz,
              size_t shared, void* stream, void** args, void** extra, void* start, void* stop,
              uint32_t flags),
             (f, wx, wy, wz, bx, by, bz, shared, stream, args, extra, start, stop, flags),
             api::launched(stream, f,
                           sizes_of({bx == 0 ? 0 : wx / bx, by == 0 ? 0 : wy / by,
                                     bz == 0 ? 0 : wz / bz},
                                    {bx, by, bz}, shared)))

// A module's functions have no host function to be named by.
WEIR_COUNTED(WEIR_ALONE, ModuleGetFunction, (void** f, void* module, const char* name),
             (f, module, name), function_is(*f, name))

WEIR_COUNTED(WEIR_ALONE, MemcpyWithStream,
             (void* to, const void* from, size_t bytes, int direction, void* stream),
             (to, from, bytes, direction, stream), copied(stream, direction, bytes, true))
WEIR_COUNTED(WEIR_ALONE, MemcpyHtoD, (void* to, void* from, size_t bytes), (to, from, bytes),
             copied(nullptr, k_to_device, bytes, true))
WEIR_COUNTED(WEIR_ALONE, MemcpyDtoH, (void* to, void* from, size_t bytes), (to, from, bytes),
             copied(nullptr, k_to_host, bytes, true))
WEIR_COUNTED(WEIR_ALONE, MemcpyDtoD, (void* to, void* from, size_t bytes), (to, from, bytes),
             copied(nullptr, k_within, bytes, false))
WEIR_COUNTED(WEIR_ALONE, MemcpyHtoDAsync, (void* to, const void* from, size_t bytes, void* stream),
             (to, from, bytes, stream), copied(stream, k_to_device, bytes, false))
WEIR_COUNTED(WEIR_ALONE, MemcpyDtoHAsync, (void* to, void* from, size_t bytes, void* stream),
             (to, from, bytes, stream), copied(stream, k_to_host, bytes, false))
WEIR_COUNTED(WEIR_ALONE, MemcpyDtoDAsync, (void* to, void* from, size_t bytes, void* stream),
             (to, from, bytes, stream), copied(stream, k_within, bytes, false))
WEIR_COUNTED(WEIR_ALONE, MemcpyPeer,
             (void* to, int there, const void* from, int here, size_t bytes),
             (to, there, from, here, bytes), copied(nullptr, k_within, bytes, false))
WEIR_COUNTED(WEIR_ALONE, MemsetD8Async, (void* to, unsigned char value, size_t count, void* stream),
             (to, value, count, stream), filled(stream, count))
WEIR_COUNTED(WEIR_ALONE, MemsetD32Async, (void* to, int value, size_t count, void* stream),
             (to, value, count, stream), filled(stream, count * sizeof value))
