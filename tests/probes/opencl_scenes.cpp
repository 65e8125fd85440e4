// What the OpenCL layer is tested with: each scene does a known number of things to PoCL. Exits 0
// when every call answered as expected, whoever listens.
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <CL/cl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

void require(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "scene: %s\n", what);
  std::_Exit(3);
}
void ok(cl_int result, const char* what) { require(result == CL_SUCCESS, what); }

constexpr const char* k_source =
    "kernel void scale(global int* a) { a[get_global_id(0)] *= 2; }\n"
    "kernel void add(global int* a) { a[get_global_id(0) + 8 * get_global_id(1)] += 1; }\n"
    "kernel void nothing() {}\n";
constexpr size_t k_elements = 64;

struct Device {
  cl_device_id device = nullptr;
  cl_context context = nullptr;
  cl_program program = nullptr;

  Device() {
    cl_platform_id platform = nullptr;
    ok(clGetPlatformIDs(1, &platform, nullptr), "no platform");
    ok(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr), "no device");
    cl_int error = 0;
    context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &error);
    ok(error, "context");
    const char* source = k_source;
    program = clCreateProgramWithSource(context, 1, &source, nullptr, &error);
    ok(error, "program");
    ok(clBuildProgram(program, 1, &device, "", nullptr, nullptr), "build");
  }
  [[nodiscard]] cl_command_queue queue() const {
    cl_int error = 0;
    cl_command_queue made = clCreateCommandQueue(context, device, 0, &error);
    ok(error, "queue");
    return made;
  }
  [[nodiscard]] cl_kernel kernel(const char* name) const {
    cl_int error = 0;
    cl_kernel made = clCreateKernel(program, name, &error);
    ok(error, name);
    return made;
  }
};

void launch(cl_command_queue queue, cl_kernel kernel, cl_event* event = nullptr) {
  const size_t global = k_elements, local = 16;
  ok(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &global, &local, 0, nullptr, event),
     "launch");
}

// On queue A: 1 write, 5 "scale", 3 "add", 1 task "nothing", 2 barriers, 3 markers, 1 copy, 1 fill,
// 2 reads, 1 map and unmap. On queue B: 1 "nothing". Submits and syncs are told step by step.
int all(const Device& d) {
  const cl_command_queue a = d.queue();
  const cl_command_queue b = d.queue();
  const cl_kernel scale = d.kernel("scale"), add = d.kernel("add"), nothing = d.kernel("nothing");
  std::vector<cl_int> values(k_elements, 1);
  const size_t bytes = k_elements * sizeof(cl_int);
  cl_int error = 0;
  cl_mem one = clCreateBuffer(d.context, CL_MEM_READ_WRITE, bytes, nullptr, &error);
  ok(error, "buffer");
  cl_mem other = clCreateBuffer(d.context, CL_MEM_READ_WRITE, bytes, nullptr, &error);
  ok(error, "buffer");

  // A kernel without its argument is refused: no dispatch.
  const size_t global = k_elements;
  require(clEnqueueNDRangeKernel(a, scale, 1, nullptr, &global, nullptr, 0, nullptr, nullptr) !=
              CL_SUCCESS,
          "a launch that must fail");
  ok(clFinish(a), "finish");  // a wait, but nothing to wait for

  ok(clEnqueueWriteBuffer(a, one, CL_TRUE, 0, bytes, values.data(), 0, nullptr, nullptr),
     "write");  // submit 1, sync 1
  ok(clSetKernelArg(scale, 0, sizeof one, &one), "argument");
  ok(clSetKernelArg(add, 0, sizeof one, &one), "argument");
  for (int i = 0; i < 5; ++i) launch(a, scale);
  for (int i = 0; i < 2; ++i) ok(clEnqueueBarrierWithWaitList(a, 0, nullptr, nullptr), "barrier");
  const size_t square[2] = {8, 8};
  for (int i = 0; i < 3; ++i) {
    ok(clEnqueueNDRangeKernel(a, add, 2, nullptr, square, nullptr, 0, nullptr, nullptr), "launch");
  }
  ok(clEnqueueTask(a, nothing, 0, nullptr, nullptr), "task");
  for (int i = 0; i < 3; ++i) {
    ok(clEnqueueMarkerWithWaitList(a, 0, nullptr, nullptr), "marker");
  }
  ok(clFlush(a), "flush");    // submit 2
  ok(clFlush(a), "flush");    // nothing left
  ok(clFinish(a), "finish");  // sync 2
  ok(clFinish(a), "finish");  // a wait for nothing

  const cl_int zero = 0;
  ok(clEnqueueFillBuffer(a, other, &zero, sizeof zero, 0, bytes, 0, nullptr, nullptr), "fill");
  ok(clEnqueueCopyBuffer(a, one, other, 0, 0, bytes, 0, nullptr, nullptr), "copy");
  cl_event read = nullptr;
  ok(clEnqueueReadBuffer(a, other, CL_FALSE, 0, bytes, values.data(), 0, nullptr, &read), "read");
  ok(clFlush(a), "flush");  // submit 3
  for (cl_int status = CL_QUEUED; status != CL_COMPLETE;) {
    ok(clGetEventInfo(read, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr),
       "poll");
  }                                       // sync 3
  ok(clWaitForEvents(1, &read), "wait");  // a wait for what was seen done
  for (const cl_int value : values) require(value == 35, "1 * 2^5 + 3");
  ok(clEnqueueReadBuffer(a, other, CL_TRUE, 0, bytes, values.data(), 0, nullptr, nullptr),
     "read");  // submit 4, sync 4
  void* mapped = clEnqueueMapBuffer(a, one, CL_TRUE, CL_MAP_READ, 0, bytes, 0, nullptr, nullptr,
                                    &error);  // submit 5, sync 5
  ok(error, "map");
  cl_event events[2] = {};
  ok(clEnqueueUnmapMemObject(a, one, mapped, 0, nullptr, &events[0]), "unmap");
  launch(b, nothing, &events[1]);
  ok(clWaitForEvents(2, events), "wait");  // submit 6 and, on B, 1; sync 6 and 1; one call
  ok(clFinish(b), "finish");               // a wait for nothing
  return 0;
}

int threads(const Device& d) {
  std::vector<std::thread> all;
  for (int i = 0; i < 8; ++i) {
    all.emplace_back([&d] {
      const cl_command_queue queue = d.queue();
      const cl_kernel kernel = d.kernel("nothing");
      for (int n = 0; n < 100; ++n) {
        launch(queue, kernel);
        if (n % 10 == 9) ok(clFinish(queue), "finish");
      }
    });
  }
  for (std::thread& one : all) one.join();
  return 0;
}

void some(const Device& d, int times) {
  const cl_command_queue queue = d.queue();
  const cl_kernel kernel = d.kernel("nothing");
  for (int i = 0; i < times; ++i) launch(queue, kernel);
  ok(clFinish(queue), "finish");
}

int killed(const Device& d) {
  some(d, 10);
  return raise(SIGKILL);
}

// The child touches nothing; OpenCL does not survive a fork.
int forking(const Device& d) {
  some(d, 4);
  const pid_t child = fork();
  if (child == 0) _exit(0);
  int status = 0;
  waitpid(child, &status, 0);
  require(status == 0, "the child failed");
  some(d, 3);
  return 0;
}

// Every kind of queue and kernel comes and goes: handles are used again.
int churn(const Device& d) {
  for (int i = 0; i < 300; ++i) {
    const cl_command_queue queue = d.queue();
    const cl_kernel kernel = d.kernel("nothing");
    launch(queue, kernel);
    ok(clFinish(queue), "finish");
    ok(clReleaseKernel(kernel), "release");
    ok(clReleaseCommandQueue(queue), "release");
  }
  return 0;
}

int idle(const Device& d) {
  (void)d.queue();
  return 0;
}

int extension(const Device& d) {
  cl_platform_id platform = nullptr;
  ok(clGetPlatformIDs(1, &platform, nullptr), "no platform");
  const bool there =
      clGetExtensionFunctionAddressForPlatform(platform, "clEnqueueCommandBufferKHR") != nullptr;
  std::printf("%s\n", there ? "there" : "not there");
  std::fflush(stdout);  // the scenes end without it
  some(d, 1);
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string scene = count > 1 ? arguments[1] : "";
  const Device device;
  const struct {
    const char* name;
    int (*play)(const Device&);
  } scenes[] = {
      {"all", all},     {"threads", threads}, {"killed", killed},      {"forking", forking},
      {"churn", churn}, {"idle", idle},       {"extension", extension}};
  for (const auto& one : scenes) {
    if (scene == one.name) std::_Exit(one.play(device));
  }
  return 2;
}
