// A layer of the ICD loader for tests: stands below weir's and makes PoCL another driver.
// OPENCL_BELOW says which: one whose queues have no profiling ("refuses"), one that ties its clock
// to the CPU's
// ("timer"), or to another clock of the host's ("foreign timer").
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <CL/cl.h>
#include <CL/cl_icd.h>
#include <CL/cl_layer.h>

namespace {

cl_icd_dispatch next;
cl_icd_dispatch table;

bool is(const char* what) {
  const char* wanted = std::getenv("OPENCL_BELOW");
  return wanted != nullptr && std::strcmp(wanted, what) == 0;
}

cl_ulong now(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<cl_ulong>(time.tv_sec) * 1000000000U + static_cast<cl_ulong>(time.tv_nsec);
}

cl_command_queue CL_API_CALL create(cl_context context, cl_device_id device,
                                    cl_command_queue_properties properties, cl_int* error) {
  if ((properties & CL_QUEUE_PROFILING_ENABLE) == 0) {
    return next.clCreateCommandQueue(context, device, properties, error);
  }
  if (error != nullptr) *error = CL_INVALID_QUEUE_PROPERTIES;
  return nullptr;
}

cl_int CL_API_CALL platform_info(cl_platform_id platform, cl_platform_info what, size_t size,
                                 void* value, size_t* size_out) {
  if (what != CL_PLATFORM_HOST_TIMER_RESOLUTION) {
    return next.clGetPlatformInfo(platform, what, size, value, size_out);
  }
  const cl_ulong resolution = 1;
  if (value != nullptr) std::memcpy(value, &resolution, sizeof resolution);
  return CL_SUCCESS;
}

// PoCL takes its times from CLOCK_MONOTONIC_RAW.
cl_int CL_API_CALL timers(cl_device_id, cl_ulong* device, cl_ulong* host) {
  *device = now(CLOCK_MONOTONIC_RAW);
  *host = now(is("timer") ? CLOCK_MONOTONIC : CLOCK_REALTIME);
  return CL_SUCCESS;
}

}  // namespace

extern "C" {

cl_int CL_API_CALL clGetLayerInfo(cl_layer_info, size_t size, void* value, size_t* size_out) {
  const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
  if (value != nullptr && size >= sizeof version) std::memcpy(value, &version, sizeof version);
  if (size_out != nullptr) *size_out = sizeof version;
  return CL_SUCCESS;
}

cl_int CL_API_CALL clInitLayer(cl_uint entries, const cl_icd_dispatch* below, cl_uint* entries_out,
                               const cl_icd_dispatch** out) {
  constexpr cl_uint k_entries = sizeof(cl_icd_dispatch) / sizeof(void*);
  if (entries < k_entries) return CL_INVALID_VALUE;
  next = table = *below;
  if (is("refuses")) table.clCreateCommandQueue = create;
  if (is("timer") || is("foreign timer")) {
    table.clGetPlatformInfo = platform_info;
    table.clGetDeviceAndHostTimer = timers;
  }
  *entries_out = k_entries;
  *out = &table;
  return CL_SUCCESS;
}

}  // extern "C"
