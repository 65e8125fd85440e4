// The device class of an OpenCL device: what an engine's choice of kernels depends on.
//
// OpenCL has no numbers for devices, drivers and their versions: hashes of their names stand for
// them. The same for every machine with the same device and driver: no memory sizes, and of a CPU
// no number of cores. Shared by the layer and weir-devices.
#pragma once

#include <stdint.h>

#include "gate/probes/inject/opencl/cl.h"

namespace weir_probe::opencl {

struct ClassFunctions {
  cl_api_clGetDeviceInfo device_info;
  cl_api_clGetPlatformInfo platform_info;
};

struct DeviceClass {
  uint32_t vendor;
  uint32_t device;          // of the device's name
  uint32_t driver_id;       // of the platform's name
  uint32_t driver_version;  // of the driver's version
  uint64_t feature_hash;
  const char* type;  // "cpu", "discrete", "integrated" or "other"
  char name[256];
  char driver[256];  // "Portable Computing Language: 3.1"
  char text[128];    // "opencl-10006-0123abcd-89abcdef-01234567-0123456789abcdef"
};

// False when the device does not answer.
bool describe_device(const ClassFunctions& functions, cl_device_id device, DeviceClass* out);

}  // namespace weir_probe::opencl
