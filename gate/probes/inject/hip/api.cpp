// Describes what HIP alone has.
#include "gate/probes/inject/hip/hip.h"
#include "gate/probes/inject/streams/front.h"

namespace weir_probe::streams {

using namespace hip;

// All may be names of one file, which is mapped under the name that was asked for first.
const char* const k_libraries[] = {"/libamdhip64", "/libhipblas", "/librocblas", "/librccl",
                                   nullptr};

namespace {

constexpr int k_features[] = {
    k_major, k_minor, k_processors, k_shared_per_block_optin, k_shared_per_processor, k_warp_size};

}  // namespace

// Sizes of memory are those requested.
const Api k_api = {.name = "hip",
                   .vendor = 0x1002,
                   .driver = "HIP runtime",
                   .major_unit = 10'000'000,
                   .minor_unit = 100'000,
                   .is_integrated = k_integrated,
                   .features = list_of(k_features),
                   .allocation_bytes = 1,
                   .reservation_bytes = 1,
                   .tells_spills = true,
                   .functions = {.current_device = "hipGetDevice",
                                 .device_name = "hipDeviceGetName",
                                 .device_attribute = "hipDeviceGetAttribute",
                                 .version = "hipRuntimeGetVersion",
                                 .pointer_attribute = "hipPointerGetAttribute",
                                 .capture_info = "hipStreamGetCaptureInfo_v2",
                                 .function_attributes = "hipFuncGetAttributes",
                                 .occupancy = "hipOccupancyMaxActiveBlocksPerMultiprocessor",
                                 .last_error = "hipGetLastError"}};

// The attributes do not say which GPU the code is for.
bool read_costs(const void* function, weir_probe_code_costs* out) {
  FunctionAttributes attributes{};
  return read_common_costs(function, &attributes, out);
}

}  // namespace weir_probe::streams
