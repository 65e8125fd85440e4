// What the probe asks the CUDA driver, beside what CUPTI tells it.
#pragma once

#include <cuda.h>

namespace weir_probe::cuda {

// Found in the driver that the program has loaded. All may be null.
struct Driver {
  decltype(&cuCtxGetDevice) ctx_get_device;
  decltype(&cuDeviceGetName) device_get_name;
  decltype(&cuDeviceGetAttribute) device_get_attribute;
  decltype(&cuDriverGetVersion) driver_get_version;
  decltype(&cuStreamIsCapturing) stream_is_capturing;
  decltype(&cuGraphGetNodes) graph_get_nodes;
  decltype(&cuGraphNodeGetType) graph_node_get_type;
  decltype(&cuGraphKernelNodeGetParams) graph_kernel_node_get_params;
  decltype(&cuGraphChildGraphNodeGetGraph) graph_child_graph_node_get_graph;
  CUresult (*func_get_name)(const char**, CUfunction);
  CUresult (*kernel_get_name)(const char**, CUkernel);
};
const Driver& driver();

// From now on each stream is asked whether it is being captured.
void capture_began();

}  // namespace weir_probe::cuda
