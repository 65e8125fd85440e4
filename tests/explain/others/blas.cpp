// blas.cpp: layers of attention on CLBlast, which brings and chooses the kernels: blas STEPS
// [NAME=VALUE …], also in SETTINGS: one change each, as a commit would make it.   c++ -O1 -o blas
// blas.cpp -lclblast -lOpenCL
#define CL_TARGET_OPENCL_VERSION 120
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <CL/cl.h>
#include <clblast.h>

using namespace clblast;

int main(int argc, char** argv) {
  std::string settings = std::getenv("SETTINGS") ? std::getenv("SETTINGS") : "";
  for (int i = 2; i < argc; ++i) settings += std::string(" ") + argv[i];
  const auto on = [&](const char* name) {
    return settings.find(std::string(name) + "=1") != std::string::npos;
  };
  cl_platform_id platform;
  cl_device_id device;
  if (clGetPlatformIDs(1, &platform, nullptr) ||
      clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr))
    return 1;
  cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr);
  cl_command_queue queue = clCreateCommandQueue(context, device, 0, nullptr);
  constexpr std::size_t n = 32, size = n * n, heads = 4, own = n / heads;
  std::vector<float> host(size, 0.01F);
  const auto buffer = [&] {
    return clCreateBuffer(context, CL_MEM_READ_WRITE, 4 * size, nullptr, nullptr);
  };
  cl_mem x = buffer(), w = buffer(), q = buffer(), scores = buffer(), best = buffer();
  const auto write = [&](cl_mem to) {
    clEnqueueWriteBuffer(queue, to, CL_TRUE, 0, 4 * size, host.data(), 0, nullptr, nullptr);
  };
  const auto read = [&](cl_mem from) {
    clEnqueueReadBuffer(queue, from, CL_TRUE, 0, 4 * size, host.data(), 0, nullptr, nullptr);
  };
  if (on("indirect"))
    OverrideParameters(device, "GemmRoutine", Precision::kSingle, {{"XGEMM_MIN_INDIRECT_SIZE", 1}});
  if (on("tiles"))
    OverrideParameters(device, "XgemmDirect", Precision::kSingle,
                       {{"WGD", 16},
                        {"MDIMCD", 8},
                        {"NDIMCD", 8},
                        {"MDIMAD", 8},
                        {"NDIMBD", 8},
                        {"KWID", 2},
                        {"VWMD", 1},
                        {"VWND", 1},
                        {"PADA", 1},
                        {"PADB", 1}});
  const auto gemm = [&](cl_mem a, cl_mem b, cl_mem c, std::size_t m, std::size_t from) {
    Gemm<float>(Layout::kRowMajor, Transpose::kNo, Transpose::kNo, m, n, n, 1.F, a, from, n, b, 0,
                n, 0.F, c, from, n, &queue);
  };
  const auto attend = [&](cl_mem a, cl_mem b, cl_mem c) {
    for (std::size_t head = 0; on("loop") && head < heads; ++head)
      gemm(a, b, c, own, head * own * n);
    if (!on("loop"))
      GemmStridedBatched<float>(Layout::kRowMajor, Transpose::kNo, Transpose::kNo, own, n, n, 1.F,
                                a, 0, n, own * n, b, 0, n, 0, 0.F, c, 0, n, own * n, heads, &queue);
  };
  write(w);
  for (int step = 0; step < std::atoi(argv[1]); ++step) {
    write(x);
    if (on("clear")) ClearCache();
    for (int layer = 0; layer < 4; ++layer) {
      gemm(x, w, q, n, 0);
      attend(q, x, scores);
      attend(scores, x, q);
      if (!on("no_residual")) Axpy<float>(size, 1.F, q, 0, 1, x, 0, 1, &queue);
      if (on("host")) {
        read(x);
        for (float& entry : host) entry *= 0.5F;  // stands for a product
        write(q);
      } else {
        gemm(x, w, q, n, 0);
      }
      gemm(q, w, scores, n, 0);
      Axpy<float>(size, 1.F, scores, 0, 1, x, 0, 1, &queue);
      if (on("scale")) Scal<float>(size, 0.5F, x, 0, 1, &queue);
      if (on("kept")) clEnqueueCopyBuffer(queue, x, best, 0, 0, 4 * size, 0, nullptr, nullptr);
      if (on("finish")) clFinish(queue);
      if (on("read")) read(x);
      if (on("temporary")) clReleaseMemObject(scores), scores = buffer();
    }
    Max<float>(size, best, 0, x, 0, 1, &queue);
    unsigned index = 0;
    clEnqueueReadBuffer(queue, best, CL_TRUE, 0, 4, &index, 0, nullptr, nullptr);
  }
  std::printf("%s tokens, 1 tokens/s\n", argv[1]);
}
