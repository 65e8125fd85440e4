// The device class of an OpenCL device: what an engine's choice of kernels depends on.
//
// OpenCL has no numbers for devices, drivers and their versions: hashes of their names stand for
// them. The same for every machine with the same device and driver: no memory sizes, and of a CPU
// no number of cores. Shared by the layer and weir-devices.
#pragma once

// For layers: all versions, the deprecated calls too, and the loader's table.
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_0_APIS
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_2_0_APIS
#define CL_USE_DEPRECATED_OPENCL_2_1_APIS
#define CL_USE_DEPRECATED_OPENCL_2_2_APIS
#include <CL/cl.h>
#include <CL/cl_icd.h>
#include <CL/cl_layer.h>

#include "gate/probes/inject/writer/file.h"

namespace weir_probe::opencl {

struct ClassFunctions {
  cl_api_clGetDeviceInfo device_info;
  cl_api_clGetPlatformInfo platform_info;
};

// Fills all of `out` except its counters. A class reads
// "opencl-10006-0123abcd-89abcdef-01234567-0123456789abcdef", a driver "Portable Computing
// Language: 3.1". Its numbers are folded hashes of the names of device, platform and driver
// version. False, and without a class, when the device does not answer.
bool describe_device(const ClassFunctions& functions, cl_device_id device, weir_probe_device* out);

}  // namespace weir_probe::opencl
