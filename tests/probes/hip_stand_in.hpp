// The part of HIP's binary interface that the stand-in has and the scenes use.
#pragma once

#include <cstddef>

struct Dim3 {
  unsigned x, y, z;
};
constexpr int k_invalid = 1, k_not_ready = 600;

extern "C" {
void kernel_one();
void kernel_two();
int hipGetDevice(int* device);
int hipDeviceGetName(char* name, int size, int device);
int hipDeviceGetAttribute(int* value, int attribute, int device);
int hipRuntimeGetVersion(int* version);
int hipGetLastError();
int hipPointerGetAttribute(void* value, int attribute, void* at);
int hipFuncGetAttributes(void* attributes, const void* function);
int hipOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function, int threads,
                                                 size_t shared);
void** __hipRegisterFatBinary(const void* wrapper);
void __hipRegisterFunction(void** handle, const void* host, char* device, const char* name,
                           unsigned limit, void* a, void* b, void* c, void* d, int* e);
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
int hipStreamGetCaptureInfo_v2(void* stream, int* status, unsigned long long* id, void** graph,
                               const void** nodes, size_t* count);
int hipStreamBeginCapture(void* stream, int mode);
int hipStreamEndCapture(void* stream, void** graph);
int hipGraphDestroy(void* graph);
int hipGraphInstantiate(void** exec, void* graph, void** node, char* log, size_t size);
int hipGraphLaunch(void* exec, void* stream);
int hipGraphExecDestroy(void* exec);

int hipblasSetStream(void* handle, void* stream);
int hipblasDestroy(void* handle);
int rocblas_set_stream(void* handle, void* stream);
int hipblasLtMatmul(void* handle, size_t, size_t, size_t, size_t, size_t, size_t, size_t, size_t,
                    size_t, size_t, size_t, size_t, size_t, size_t, void* stream);
}

// Functions of hipBLAS and rocBLAS that compute, whose first argument alone the stand-in reads.
#define STAND_IN_PRODUCTS(X)         \
  X(hipblasGemmEx)                   \
  X(hipblasGemmEx_v2)                \
  X(hipblasGemmBatchedEx)            \
  X(hipblasGemmBatchedEx_v2)         \
  X(hipblasGemmStridedBatchedEx)     \
  X(hipblasGemmStridedBatchedEx_v2)  \
  X(hipblasSgemm)                    \
  X(hipblasHgemm)                    \
  X(hipblasSgemmBatched)             \
  X(hipblasSgemmStridedBatched)      \
  X(hipblasStrsmBatched)             \
  X(rocblas_gemm_ex)                 \
  X(rocblas_gemm_batched_ex)         \
  X(rocblas_gemm_strided_batched_ex) \
  X(rocblas_sgemm)                   \
  X(rocblas_hgemm)
#define STAND_IN_DECLARES(name) extern "C" int name(void* handle);
STAND_IN_PRODUCTS(STAND_IN_DECLARES)
