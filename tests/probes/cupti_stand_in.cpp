// A stand-in for the CUDA runtime, driver and CUPTI in one library, without a device: each call of
// the scenes is told to the subscriber as CUPTI would tell it. STAND_IN_HELD: another profiler is
// there already.
#include <cstdlib>
#include <cstring>

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <cupti.h>
#include <dlfcn.h>

namespace {

CUpti_CallbackFunc g_callback;
bool g_enabled[2][2048];

template <class Params>
int call(CUpti_CallbackDomain domain, uint32_t id, const Params& params, int result,
         const char* symbol = nullptr) {
  if (g_callback == nullptr || !g_enabled[domain == CUPTI_CB_DOMAIN_RUNTIME_API][id]) return result;
  CUpti_CallbackData data{};
  data.functionParams = &params;
  data.functionReturnValue = &result;
  data.symbolName = symbol;
  data.callbackSite = CUPTI_API_ENTER;
  g_callback(nullptr, domain, id, &data);
  data.callbackSite = CUPTI_API_EXIT;
  g_callback(nullptr, domain, id, &data);
  return result;
}

}  // namespace

extern "C" {

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle*, CUpti_CallbackFunc callback, void*) {
  if (std::getenv("STAND_IN_HELD") != nullptr) {
    return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  }
  g_callback = callback;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle,
                                CUpti_CallbackDomain domain, CUpti_CallbackId id) {
  g_enabled[domain == CUPTI_CB_DOMAIN_RUNTIME_API][id] = enable != 0;
  return CUPTI_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* device) {
  *device = 0;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char* name, int size, CUdevice) {
  std::strncpy(name, "Stand-in GPU", static_cast<size_t>(size));
  return CUDA_SUCCESS;
}
CUresult cuGraphGetNodes(CUgraph, CUgraphNode* nodes, size_t* count) {
  for (size_t i = 0; nodes != nullptr && i < 3; ++i)
    nodes[i] = reinterpret_cast<CUgraphNode>(i + 1);
  *count = 3;
  return CUDA_SUCCESS;
}
// Two kernels and a copy.
CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  *type =
      reinterpret_cast<size_t>(node) < 3 ? CU_GRAPH_NODE_TYPE_KERNEL : CU_GRAPH_NODE_TYPE_MEMCPY;
  return CUDA_SUCCESS;
}
CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode, CUDA_KERNEL_NODE_PARAMS* params) {
  params->func = reinterpret_cast<CUfunction>(0x5000);
  params->gridDimX = params->blockDimX = 8;
  params->gridDimY = params->gridDimZ = params->blockDimY = params->blockDimZ = 1;
  return CUDA_SUCCESS;
}
CUresult cuFuncGetName(const char** name, CUfunction) {
  *name = "in_a_graph";
  return CUDA_SUCCESS;
}

// As the driver does when it is first used.
void stand_in_begin() {
  const char* path = std::getenv("CUDA_INJECTION64_PATH");
  void* library = path == nullptr ? nullptr : dlopen(path, RTLD_NOW);
  if (library == nullptr) return;
  const auto begin = reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection"));
  if (begin == nullptr || begin() != 1) std::abort();
}

// A runtime call that makes the driver's within.
void stand_in_launch(void* stream) {
  cudaLaunchKernel_v7000_params params{};
  params.func = reinterpret_cast<const void*>(0x4000);
  params.gridDim = {4, 2, 1};
  params.blockDim = {32, 1, 1};
  params.stream = static_cast<cudaStream_t>(stream);
  int result = 0;
  CUpti_CallbackData data{};
  data.functionParams = &params;
  data.functionReturnValue = &result;
  data.symbolName = "of_the_runtime";
  data.callbackSite = CUPTI_API_ENTER;
  const auto id = CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000;
  if (g_callback != nullptr) g_callback(nullptr, CUPTI_CB_DOMAIN_RUNTIME_API, id, &data);
  cuLaunchKernel_params inner{};
  call(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, inner, 0, "inner");
  data.callbackSite = CUPTI_API_EXIT;
  if (g_callback != nullptr) g_callback(nullptr, CUPTI_CB_DOMAIN_RUNTIME_API, id, &data);
}
void stand_in_driver_launch(void* stream, int result) {
  cuLaunchKernel_params params{};
  params.f = reinterpret_cast<CUfunction>(0x4800);
  params.gridDimX = params.gridDimY = params.gridDimZ = 1;
  params.blockDimX = params.blockDimY = params.blockDimZ = 1;
  params.hStream = static_cast<CUstream>(stream);
  call(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, params, result,
       "of_the_driver");
}
void stand_in_copy(size_t bytes) {
  cudaMemcpy_v3020_params params{};
  params.count = bytes;
  params.kind = cudaMemcpyDeviceToHost;
  call(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy_v3020, params, 0);
}
void stand_in_graphs(int times, void* stream) {
  cudaGraphExec_t exec = reinterpret_cast<cudaGraphExec_t>(0x6000);
  cudaGraphInstantiate_v12000_params instantiation{};
  instantiation.pGraphExec = &exec;
  call(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaGraphInstantiate_v12000,
       instantiation, 0);
  cudaGraphLaunch_v10000_params launch{exec, static_cast<cudaStream_t>(stream)};
  for (int i = 0; i < times; ++i) {
    call(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000, launch, 0);
  }
}
void stand_in_wait(void* stream) {
  cudaStreamSynchronize_v3020_params params{static_cast<cudaStream_t>(stream)};
  call(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020, params,
       0);
}
void stand_in_poll(void* stream, int result) {
  cudaStreamQuery_v3020_params params{static_cast<cudaStream_t>(stream)};
  call(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaStreamQuery_v3020, params, result);
}

}  // extern "C"
