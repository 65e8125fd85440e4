// Intercepts CUDA's functions: those of the runtime, of cuBLAS and NCCL, and the driver's that
// allocate memory. Works alike on a CUDA twin and on a GPU, so that a count means the same on both.
#include "gate/probes/inject/cuda/interface.h"
#include "gate/probes/inject/streams/front.h"

using namespace weir_probe;
using namespace weir_probe::cuda;
using namespace weir_probe::streams;

namespace weir_probe::streams {

const char k_probe_name[] = "cuda";
const char* const k_counter_names[k_counters] = {
    nullptr,
    "markers",
    "graph_launches",
    "graph_instantiations",
    "cublas_calls",
    "programmatic_launches",
    "device_memory_bytes",
    "device_memory_peak_bytes",
    "device_memory_steady_bytes",
    "allocations",
    "out_of_memory",
    "small_read_backs",
};

}  // namespace weir_probe::streams

namespace {
namespace api {

using CooperativeShared = size_t;

void count_launch(void* stream, const void* function, const LaunchConfig& config) {
  const LaunchAttributes attributes = read_attributes(config);
  const bool is_programmatic = attributes.uses_dependent_launch != 0;
  streams::count_launch(
      stream, {function, nullptr, launch_sizes(config.grid, config.block, config.shared),
               attributes.hash(), is_programmatic ? k_programmatic_launches : k_no_counter});
}
uint64_t find_container(void**) { return 0; }  // names are enough

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
#define WEIR_REGISTER_FUNCTION __cudaRegisterFunction
#define WEIR_LIBRARIES(X) X(cublasSetStream_v2, cublasDestroy_v2) X(cudnnSetStream, cudnnDestroy)
#define WEIR_LIBRARY_PRODUCTS WEIR_CUBLAS_PRODUCTS
#include "gate/probes/inject/streams/runtime_calls.h"

// --- functions that only CUDA has
WEIR_COUNTED(WEIR_INTERCEPT_NAMED, __cudaGetKernel, (void** kernel, const void* host),
             (kernel, host), copy_function_name(*kernel, host))

// The launch functions that nvcc uses on request.
#define WEIR_INNER_PTSZ(name, ...)                 \
  WEIR_INTERCEPT(__cuda##name, false, __VA_ARGS__) \
  WEIR_INTERCEPT(__cuda##name##_ptsz, true, __VA_ARGS__)
WEIR_COUNTED(WEIR_INNER_PTSZ, LaunchKernel,
             (const void* f, Size3 grid, Size3 block, void** args, size_t shared, void* stream),
             (f, grid, block, args, shared, stream),
             count_launch(actual_stream(stream), f, grid, block, shared))

WEIR_COUNTED(WEIR_PTSZ, Memcpy3DPeerAsync, (const PeerCopy* of, void* stream), (of, stream),
             count_copy(actual_stream(stream),
                        {k_within, of->width * of->height * of->depth, nullptr, nullptr},
                        /*waits=*/false))

WEIR_PRODUCT_ON(cublasLtMatmul, reinterpret_cast<void*>(w15))
WEIR_COUNTED(WEIR_INTERCEPT_NAMED, cudnnBackendExecute, (void* handle, void* plan, void* pack),
             (handle, plan, pack),
             count_library_call("cudnnBackendExecute", g.library_streams.find(address_key(handle)),
                                k_no_counter))

// --- kernels of modules, as Triton's
#define WEIR_CU(name, ...) \
  WEIR_INTERCEPT(cu##name, false, __VA_ARGS__) WEIR_INTERCEPT(cu##name##_ptsz, true, __VA_ARGS__)
WEIR_COUNTED(WEIR_CU, LaunchKernel,
             (void* f, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
              unsigned block_y, unsigned block_z, unsigned shared, void* stream, void** args,
              void** more),
             (f, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, args, more),
             count_launch(actual_stream(stream), f, {grid_x, grid_y, grid_z},
                          {block_x, block_y, block_z}, shared))
WEIR_COUNTED(WEIR_CU, LaunchCooperativeKernel,
             (void* f, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
              unsigned block_y, unsigned block_z, unsigned shared, void* stream, void** args),
             (f, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, args),
             count_launch(actual_stream(stream), f, {grid_x, grid_y, grid_z},
                          {block_x, block_y, block_z}, shared))
WEIR_COUNTED(WEIR_CU, LaunchKernelEx,
             (const DriverLaunchConfig* config, void* f, void** args, void** more),
             (config, f, args, more),
             api::count_launch(actual_stream(config->stream), f, runtime_config(*config)))
WEIR_COUNTED(WEIR_INTERCEPT_NAMED, cuModuleGetFunction,
             (void** function, void* module, const char* name), (function, module, name),
             name_function(*function, name))
WEIR_COUNTED(WEIR_INTERCEPT_NAMED, cuLibraryGetKernel,
             (void** kernel, void* library, const char* name), (kernel, library, name),
             name_function(*kernel, name))
