// Intercepts the HIP runtime's functions and those of its libraries, and counts their calls.
#include <dlfcn.h>

#include "gate/probes/inject/hip/hip.h"
#include "gate/probes/inject/streams/front.h"
#include "gate/probes/inject/writer/old_symbols.h"

using namespace weir_probe;
using namespace weir_probe::hip;
using namespace weir_probe::streams;

namespace weir_probe::streams {

const char k_probe_name[] = "hip";
const char* const k_counter_names[k_counters] = {
    nullptr,
    "markers",
    "graph_launches",
    "graph_instantiations",
    "hipblas_calls",
    nullptr,
    "device_memory_bytes",
    "device_memory_peak_bytes",
    "device_memory_steady_bytes",
    "allocations",
    "out_of_memory",
    "small_read_backs",
};

}  // namespace weir_probe::streams

namespace {

Table g_containers;  // handle of a bundle -> its address in the loaded file

// Notes which bundle a handle stands for, as kernels of one name may be in several.
void note_bundle(void** handle, const BundleWrapper* wrapper) {
  Dl_info file{};
  const bool is_known =
      wrapper != nullptr && wrapper->magic == k_bundle_magic && dladdr(wrapper->bundle, &file) != 0;
  const uint64_t container =
      is_known ? address_key(wrapper->bundle) - address_key(file.dli_fbase) : 0;
  g_containers.insert(address_key(handle), reinterpret_cast<void*>(container));
}

namespace api {

using CooperativeShared = unsigned;

void count_launch(void* stream, const void* function, const LaunchConfig& config) {
  streams::count_launch(stream, function, config.grid, config.block, config.shared);
}
uint64_t find_container(void** handle) {
  return address_key(g_containers.find(address_key(handle)));
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
#define WEIR_REGISTER_FUNCTION __hipRegisterFunction
#include "gate/probes/inject/streams/runtime_calls.h"

// --- calls of HIP's alone
WEIR_ANSWERED(WEIR_ALONE, ExtMallocWithFlags, (void** at, size_t bytes, unsigned flags),
              (at, bytes, flags), count_allocation(result, at, bytes))
WEIR_ANSWERED(WEIR_ALONE, MallocManaged, (void** at, size_t bytes, unsigned flags),
              (at, bytes, flags), count_allocation(result, at, bytes))
WEIR_ANSWERED(WEIR_ALONE, MallocFromPoolAsync, (void** at, size_t bytes, void* pool, void* stream),
              (at, bytes, pool, stream), count_allocation(result, at, bytes))
WEIR_PRODUCT_ON(hipblasLtMatmul, reinterpret_cast<void*>(w15))
WEIR_COUNTED(WEIR_ALONE, ExtLaunchKernel,
             (const void* f, Size3 grid, Size3 block, void** args, size_t shared, void* stream,
              void* start, void* stop, int flags),
             (f, grid, block, args, shared, stream, start, stop, flags),
             count_launch(stream, f, grid, block, shared))
WEIR_COUNTED(WEIR_ALONE, ModuleLaunchKernel,
             (void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
              unsigned shared, void* stream, void** args, void** extra),
             (f, gx, gy, gz, bx, by, bz, shared, stream, args, extra),
             count_launch(stream, f, {gx, gy, gz}, {bx, by, bz}, shared))
WEIR_COUNTED(WEIR_ALONE, ModuleLaunchCooperativeKernel,
             (void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
              unsigned shared, void* stream, void** args),
             (f, gx, gy, gz, bx, by, bz, shared, stream, args),
             count_launch(stream, f, {gx, gy, gz}, {bx, by, bz}, shared))
// This call gives the grid in threads, not in blocks.
WEIR_COUNTED(WEIR_ALONE, ExtModuleLaunchKernel,
             (void* f, uint32_t wx, uint32_t wy, uint32_t wz, uint32_t bx, uint32_t by, uint32_t bz,
              size_t shared, void* stream, void** args, void** extra, void* start, void* stop,
              uint32_t flags),
             (f, wx, wy, wz, bx, by, bz, shared, stream, args, extra, start, stop, flags),
             count_launch(stream, f,
                          {bx == 0 ? 0 : wx / bx, by == 0 ? 0 : wy / by, bz == 0 ? 0 : wz / bz},
                          {bx, by, bz}, shared))

// --- functions by name. Those of a module have no host function.
WEIR_EXPORTED void** __hipRegisterFatBinary(const BundleWrapper* wrapper) {
  static void* slot;
  const auto next =
      reinterpret_cast<decltype(&__hipRegisterFatBinary)>(next_function(&slot, __func__));
  if (next == nullptr) return nullptr;
  void** handle = next(wrapper);
  note_bundle(handle, wrapper);
  return handle;
}
WEIR_COUNTED(WEIR_ALONE, ModuleGetFunction, (void** f, void* module, const char* name),
             (f, module, name), name_function(*f, name))
WEIR_COUNTED(WEIR_ALONE, GetFuncBySymbol, (void** f, const void* host), (f, host),
             copy_function_name(*f, host))

// --- copies and fills
WEIR_COUNTED(WEIR_ALONE, MemcpyWithStream,
             (void* to, const void* from, size_t bytes, int direction, void* stream),
             (to, from, bytes, direction, stream),
             count_copy(stream, {find_direction(direction, to, from), bytes, to, from},
                        /*waits=*/true))
WEIR_COUNTED(WEIR_ALONE, MemcpyHtoD, (void* to, void* from, size_t bytes), (to, from, bytes),
             count_copy(nullptr, {k_to_device, bytes, to, from}, /*waits=*/true))
WEIR_COUNTED(WEIR_ALONE, MemcpyDtoH, (void* to, void* from, size_t bytes), (to, from, bytes),
             count_copy(nullptr, {k_to_host, bytes, to, from}, /*waits=*/true))
WEIR_COUNTED(WEIR_ALONE, MemcpyDtoD, (void* to, void* from, size_t bytes), (to, from, bytes),
             count_copy(nullptr, {k_within, bytes, to, from}, /*waits=*/false))
WEIR_COUNTED(WEIR_ALONE, MemcpyHtoDAsync, (void* to, const void* from, size_t bytes, void* stream),
             (to, from, bytes, stream),
             count_copy(stream, {k_to_device, bytes, to, from}, /*waits=*/false))
WEIR_COUNTED(WEIR_ALONE, MemcpyDtoHAsync, (void* to, void* from, size_t bytes, void* stream),
             (to, from, bytes, stream),
             count_copy(stream, {k_to_host, bytes, to, from}, /*waits=*/false))
WEIR_COUNTED(WEIR_ALONE, MemcpyDtoDAsync, (void* to, void* from, size_t bytes, void* stream),
             (to, from, bytes, stream),
             count_copy(stream, {k_within, bytes, to, from}, /*waits=*/false))
WEIR_COUNTED(WEIR_ALONE, MemcpyPeer,
             (void* to, int there, const void* from, int here, size_t bytes),
             (to, there, from, here, bytes),
             count_copy(nullptr, {k_within, bytes, to, from}, /*waits=*/false))
WEIR_COUNTED(WEIR_ALONE, MemsetD8Async, (void* to, unsigned char value, size_t count, void* stream),
             (to, value, count, stream), count_fill(stream, to, count))
WEIR_COUNTED(WEIR_ALONE, MemsetD32Async, (void* to, int value, size_t count, void* stream),
             (to, value, count, stream), count_fill(stream, to, count * sizeof value))
