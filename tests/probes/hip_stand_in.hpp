// The part of HIP's binary interface that the stand-in has and the scenes use.
#pragma once

#include <cstddef>

struct Dim3 {
  unsigned x, y, z;
};
struct KernelNodeParams {  // hipKernelNodeParams
  Dim3 block;
  void** extra;
  void* function;
  Dim3 grid;
  void** parameters;
  unsigned shared;
};
constexpr int k_invalid = 1, k_not_ready = 600;

extern "C" {
void kernel_one();
void kernel_two();
int hipGetDevice(int* device);
int hipDeviceGetName(char* name, int size, int device);
int hipDeviceComputeCapability(int* major, int* minor, int device);
int hipRuntimeGetVersion(int* version);
const char* hipKernelNameRefByPtr(const void* function, void* stream);
int hipStreamCreate(void** stream);
int hipStreamDestroy(void* stream);
int hipEventCreate(void** event);
int hipEventRecord(void* event, void* stream);
int hipEventSynchronize(void* event);
int hipStreamSynchronize(void* stream);
int hipDeviceSynchronize();
int hipStreamWaitEvent(void* stream, void* event, unsigned flags);
int hipEventQuery(void* event);
int hipStreamQuery(void* stream);
int hipLaunchKernel(const void* function, Dim3 grid, Dim3 block, void** args, size_t shared,
                    void* stream);
int hipModuleGetFunction(void** function, void* module, const char* name);
int hipModuleLaunchKernel(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                          unsigned bz, unsigned shared, void* stream, void** args, void** extra);
int hipMalloc(void** out, size_t bytes);
int hipMallocAsync(void** out, size_t bytes, void* stream);
int hipFree(void* at);
int hipMemCreate(void** handle, size_t bytes, const void* properties, unsigned long long flags);
int hipMemMap(void* at, size_t bytes, size_t offset, void* handle, unsigned long long flags);
int hipMemUnmap(void* at, size_t bytes);
int hipMemRelease(void* handle);
int hipMemcpyAsync(void* to, const void* from, size_t bytes, int direction, void* stream);
int hipMemcpy(void* to, const void* from, size_t bytes, int direction);
int hipMemsetAsync(void* to, int value, size_t bytes, void* stream);
int hipStreamIsCapturing(void* stream, int* status);
int hipStreamBeginCapture(void* stream, int mode);
int hipStreamEndCapture(void* stream, void** graph);
int hipGraphAddChildGraphNode(void** node, void* graph, void* const* after, size_t count,
                              void* child);
int hipGraphGetNodes(void* graph, void** nodes, size_t* count);
int hipGraphNodeGetType(void* node, int* type);
int hipGraphKernelNodeGetParams(void* node, KernelNodeParams* params);
int hipGraphChildGraphNodeGetGraph(void* node, void** graph);
int hipGraphInstantiate(void** exec, void* graph, void** node, char* log, size_t size);
int hipGraphLaunch(void* exec, void* stream);
int hipGraphExecDestroy(void* exec);
}
