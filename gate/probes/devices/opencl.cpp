#include <dlfcn.h>

#include "gate/probes/devices/print.h"
#include "gate/probes/inject/opencl/class.h"

namespace weir_probe {

const char* print_opencl_devices() {
  void* loader = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  if (loader == nullptr) return "no OpenCL loader (libOpenCL.so.1)";
  const auto platforms_of =
      reinterpret_cast<cl_api_clGetPlatformIDs>(dlsym(loader, "clGetPlatformIDs"));
  const auto devices_of = reinterpret_cast<cl_api_clGetDeviceIDs>(dlsym(loader, "clGetDeviceIDs"));
  const opencl::ClassFunctions functions = {
      reinterpret_cast<cl_api_clGetDeviceInfo>(dlsym(loader, "clGetDeviceInfo")),
      reinterpret_cast<cl_api_clGetPlatformInfo>(dlsym(loader, "clGetPlatformInfo"))};
  if (platforms_of == nullptr || devices_of == nullptr) return "libOpenCL.so.1 lacks functions";
  constexpr cl_uint k_most = 64;
  cl_platform_id platforms[k_most];
  cl_uint platform_count = 0;
  // A loader without a driver answers with an error of an extension.
  if (platforms_of(k_most, platforms, &platform_count) != CL_SUCCESS || platform_count == 0) {
    return "no OpenCL driver";
  }
  bool first = true;
  const char* error = nullptr;
  for (cl_uint i = 0; i < platform_count && i < k_most; ++i) {
    cl_device_id devices[k_most];
    cl_uint count = 0;
    const cl_int listed = devices_of(platforms[i], CL_DEVICE_TYPE_ALL, k_most, devices, &count);
    if (listed == CL_DEVICE_NOT_FOUND) continue;
    if (listed != CL_SUCCESS) {
      error = "clGetDeviceIDs failed";
      continue;
    }
    for (cl_uint j = 0; j < count && j < k_most; ++j) {
      opencl::DeviceClass described;
      if (!opencl::describe_device(functions, devices[j], &described)) {
        error = "a device could not be described";
        continue;
      }
      print_device(described, first);
      first = false;
    }
  }
  return error;
}

}  // namespace weir_probe
