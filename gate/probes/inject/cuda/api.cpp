// Describes what CUDA alone has, for the probe in front of it and for that of CUPTI.
#include "gate/probes/inject/cuda/interface.h"
#include "gate/probes/inject/streams/front.h"

namespace weir_probe::streams {

using namespace cuda;

const char* const k_libraries[] = {"/libcudart", "/libcuda.so", "/libcublas",
                                   "/libcudnn",  "/libnccl",    nullptr};

namespace {

constexpr int k_features[] = {
    k_major, k_minor, k_processors, k_shared_per_block_optin, k_shared_per_processor, k_warp_size};

}  // namespace

const Api k_api = {.name = "cuda",
                   .vendor = 0x10de,
                   .driver = "CUDA driver for",
                   .major_unit = 1000,
                   .minor_unit = 10,
                   .is_integrated = k_integrated,
                   .features = list_of(k_features),
                   .allocation_bytes = 512,
                   .reservation_bytes = 2 << 20,
                   .tells_spills = false,
                   .functions = {.current_device = "cuCtxGetDevice",
                                 .device_name = "cuDeviceGetName",
                                 .device_attribute = "cuDeviceGetAttribute",
                                 .version = "cuDriverGetVersion",
                                 .pointer_attribute = "cuPointerGetAttribute",
                                 .capture_info = "cuStreamGetCaptureInfo_v2",
                                 .function_attributes = "cudaFuncGetAttributes",
                                 .occupancy = "cudaOccupancyMaxActiveBlocksPerMultiprocessor",
                                 .last_error = "cudaGetLastError"}};

bool read_costs(const void* function, weir_probe_code_costs* out) {
  FunctionAttributes attributes{};
  if (!read_common_costs(function, &attributes, out)) return false;
  out->architecture = static_cast<uint32_t>(attributes.binary_version);
  return true;
}

}  // namespace weir_probe::streams
