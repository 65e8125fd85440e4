// The scenes that the OpenCL layer is tested with: each does a known number of things to PoCL.
// Exits 0 if every call answered as expected, with or without the layer.
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <chrono>
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
  [[nodiscard]] cl_command_queue queue(cl_command_queue_properties properties = 0) const {
    cl_int error = 0;
    cl_command_queue handle = clCreateCommandQueue(context, device, properties, &error);
    ok(error, "queue");
    return handle;
  }
  [[nodiscard]] cl_kernel kernel(const char* name) const {
    cl_int error = 0;
    cl_kernel handle = clCreateKernel(program, name, &error);
    ok(error, name);
    return handle;
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
  cl_mem from = clCreateBuffer(d.context, CL_MEM_READ_WRITE, bytes, nullptr, &error);
  ok(error, "buffer");
  cl_mem to = clCreateBuffer(d.context, CL_MEM_READ_WRITE, bytes, nullptr, &error);
  ok(error, "buffer");

  // A kernel without its argument is refused: no dispatch.
  const size_t global = k_elements;
  require(clEnqueueNDRangeKernel(a, scale, 1, nullptr, &global, nullptr, 0, nullptr, nullptr) !=
              CL_SUCCESS,
          "a launch that must fail");
  ok(clFinish(a), "finish");  // a wait, but nothing to wait for

  ok(clEnqueueWriteBuffer(a, from, CL_TRUE, 0, bytes, values.data(), 0, nullptr, nullptr),
     "write");  // submit 1, sync 1
  ok(clSetKernelArg(scale, 0, sizeof from, &from), "argument");
  ok(clSetKernelArg(add, 0, sizeof from, &from), "argument");
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
  ok(clEnqueueFillBuffer(a, to, &zero, sizeof zero, 0, bytes, 0, nullptr, nullptr), "fill");
  ok(clEnqueueCopyBuffer(a, from, to, 0, 0, bytes, 0, nullptr, nullptr), "copy");
  cl_event read = nullptr;
  ok(clEnqueueReadBuffer(a, to, CL_FALSE, 0, bytes, values.data(), 0, nullptr, &read), "read");
  ok(clFlush(a), "flush");  // submit 3
  for (cl_int status = CL_QUEUED; status != CL_COMPLETE;) {
    ok(clGetEventInfo(read, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr),
       "poll");
  }                                       // sync 3
  ok(clWaitForEvents(1, &read), "wait");  // a wait for what was seen done
  for (const cl_int value : values) require(value == 35, "1 * 2^5 + 3");
  ok(clEnqueueReadBuffer(a, to, CL_TRUE, 0, bytes, values.data(), 0, nullptr, nullptr),
     "read");  // submit 4, sync 4
  void* mapped = clEnqueueMapBuffer(a, from, CL_TRUE, CL_MAP_READ, 0, bytes, 0, nullptr, nullptr,
                                    &error);  // submit 5, sync 5
  ok(error, "map");
  cl_event events[2] = {};
  ok(clEnqueueUnmapMemObject(a, from, mapped, 0, nullptr, &events[0]), "unmap");
  launch(b, nothing, &events[1]);
  ok(clWaitForEvents(2, events), "wait");  // submit 6 and, on B, 1; sync 6 and 1; one call
  ok(clFinish(b), "finish");               // a wait for nothing
  return 0;
}

// At once: 1000 + 600, of which 600 stay, then an image of 64, and shared memory of 3000. What is
// the program's own, and a part of a buffer, take nothing.
int memory(const Device& d) {
  const cl_command_queue queue = d.queue();
  cl_int error = 0;
  cl_mem first = clCreateBuffer(d.context, CL_MEM_READ_WRITE, 1000, nullptr, &error);
  cl_mem second = clCreateBuffer(d.context, CL_MEM_READ_WRITE, 600, nullptr, &error);
  const cl_buffer_region region = {0, 128};
  cl_mem part =
      clCreateSubBuffer(second, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
  ok(error, "part");
  ok(clRetainMemObject(first), "retain");
  ok(clReleaseMemObject(first), "release");  // it is still there
  ok(clReleaseMemObject(first), "release");
  char host[512] = {};
  cl_mem own = clCreateBuffer(d.context, CL_MEM_USE_HOST_PTR, sizeof host, host, &error);
  const cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
  cl_image_desc shape = {};
  shape.image_type = CL_MEM_OBJECT_IMAGE2D;
  shape.image_width = shape.image_height = 4;
  cl_mem image = clCreateImage(d.context, CL_MEM_READ_WRITE, &format, &shape, nullptr, &error);
  ok(error, "image");
  void* shared = clSVMAlloc(d.context, CL_MEM_READ_WRITE, 3000, 0);
  require(shared != nullptr, "shared memory");
  clSVMFree(d.context, shared);
  launch(queue, d.kernel("nothing"));
  ok(clFinish(queue), "finish");
  for (cl_mem memory : {part, second, own, image}) ok(clReleaseMemObject(memory), "release");
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
  for (std::thread& thread : all) thread.join();
  return 0;
}

// The same on one queue: a thread reads times while another one waits and a third one launches.
int shared(const Device& d) {
  const cl_command_queue queue = d.queue();
  std::vector<std::thread> all;
  for (int i = 0; i < 8; ++i) {
    all.emplace_back([&d, queue] {
      const cl_kernel kernel = d.kernel("nothing");
      for (int n = 0; n < 100; ++n) {
        cl_event event = nullptr;
        launch(queue, kernel, n % 3 == 0 ? &event : nullptr);
        if (event != nullptr) {
          ok(clWaitForEvents(1, &event), "wait");
          ok(clReleaseEvent(event), "release");
        }
      }
    });
  }
  for (std::thread& thread : all) thread.join();
  ok(clFinish(queue), "finish");
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

// One of each kind of copy; a 4 x 4 image of 4 bytes a pixel. Twice in the order they are called:
// once as it is, once with events that the program asks for.
int copies(const Device& d) {
  constexpr size_t k_bytes = 256;
  const cl_queue_properties profiled[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0};
  cl_int error = 0;
  const cl_command_queue queues[] = {
      clCreateCommandQueueWithProperties(d.context, d.device, nullptr, &error),
      clCreateCommandQueueWithProperties(d.context, d.device, profiled, &error)};
  require(queues[0] != nullptr && queues[1] != nullptr, "queues with properties");
  cl_mem from = clCreateBuffer(d.context, CL_MEM_READ_WRITE, k_bytes, nullptr, &error);
  cl_mem to = clCreateBuffer(d.context, CL_MEM_READ_WRITE, k_bytes, nullptr, &error);
  const cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
  cl_image_desc shape = {};
  shape.image_type = CL_MEM_OBJECT_IMAGE2D;
  shape.image_width = shape.image_height = 4;
  cl_mem image = clCreateImage(d.context, CL_MEM_READ_WRITE, &format, &shape, nullptr, &error);
  ok(error, "image");
  cl_mem picture = clCreateImage(d.context, CL_MEM_READ_WRITE, &format, &shape, nullptr, &error);
  ok(error, "image");
  char host[k_bytes] = {};
  const size_t origin[3] = {0, 0, 0}, all[3] = {4, 4, 1}, rect[3] = {8, 2, 2};
  const cl_uint color[4] = {1, 2, 3, 4};
  const cl_int zero = 0;
  for (const cl_command_queue q : queues) {
    cl_event events[16] = {};
    size_t n = 0;
    const auto event = [&]() { return q == queues[1] ? &events[n++] : nullptr; };
    ok(clEnqueueWriteBuffer(q, from, CL_TRUE, 0, 200, host, 0, nullptr, event()), "write");
    ok(clEnqueueReadBuffer(q, from, CL_FALSE, 0, 100, host, 0, nullptr, event()), "read");
    ok(clEnqueueWriteBufferRect(q, from, CL_TRUE, origin, origin, rect, 8, 16, 8, 16, host, 0,
                                nullptr, event()),
       "write a part");
    ok(clEnqueueReadBufferRect(q, from, CL_TRUE, origin, origin, rect, 8, 16, 8, 16, host, 0,
                               nullptr, event()),
       "read a part");
    ok(clEnqueueCopyBuffer(q, from, to, 0, 0, 128, 0, nullptr, event()), "copy");
    ok(clEnqueueCopyBufferRect(q, from, to, origin, origin, rect, 8, 16, 8, 16, 0, nullptr,
                               event()),
       "copy a part");
    ok(clEnqueueFillBuffer(q, from, &zero, sizeof zero, 0, 64, 0, nullptr, event()), "fill");
    ok(clEnqueueFillImage(q, image, color, origin, all, 0, nullptr, event()), "fill an image");
    ok(clEnqueueCopyImage(q, image, picture, origin, origin, all, 0, nullptr, event()),
       "copy an image");
    ok(clEnqueueCopyImageToBuffer(q, image, from, origin, all, 0, 0, nullptr, event()),
       "copy an image to a buffer");
    ok(clEnqueueCopyBufferToImage(q, from, image, 0, origin, all, 0, nullptr, event()),
       "copy a buffer to an image");
    ok(clEnqueueWriteImage(q, image, CL_TRUE, origin, all, 0, 0, host, 0, nullptr, event()),
       "write an image");
    ok(clEnqueueReadImage(q, image, CL_TRUE, origin, all, 0, 0, host, 0, nullptr, event()),
       "read an image");
    void* mapped = clEnqueueMapBuffer(q, from, CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION, 0, 32, 0,
                                      nullptr, event(), &error);
    ok(error, "map");
    ok(clEnqueueUnmapMemObject(q, from, mapped, 0, nullptr, nullptr), "unmap");
    ok(clEnqueueMigrateMemObjects(q, 1, &from, 0, 0, nullptr, event()), "migrate");
    ok(clFinish(q), "finish");
    for (size_t i = 0; i < n; ++i) ok(clReleaseEvent(events[i]), "the program's own event");
  }
  return 0;
}

cl_uint context_references(const Device& d) {
  cl_uint references = 0;
  ok(clGetContextInfo(d.context, CL_CONTEXT_REFERENCE_COUNT, sizeof references, &references,
                      nullptr),
     "references");
  return references;
}

// 40 launches on an out-of-order queue, each held up by one of 4 events of the program's own, which
// are set last first; 10 on a queue that is let go while they are held up. At last nothing but the
// program's own objects is left of the context.
int held_up(const Device& d) {
  const cl_uint before = context_references(d);
  cl_int error = 0;
  const cl_kernel kernel = d.kernel("nothing");
  const size_t global = k_elements;
  const cl_command_queue queue = d.queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  cl_event gates[4];
  for (cl_event& gate : gates) gate = clCreateUserEvent(d.context, &error);
  for (int i = 0; i < 40; ++i) {
    ok(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &global, nullptr, 1, &gates[i % 4],
                              nullptr),
       "launch");
  }
  ok(clFlush(queue), "flush");
  for (int i = 3; i >= 0; --i) {
    cl_event last = nullptr;
    ok(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &global, nullptr, 1, &gates[i], &last),
       "launch");
    ok(clSetUserEventStatus(gates[i], CL_COMPLETE), "set");
    ok(clWaitForEvents(1, &last), "wait");
    ok(clReleaseEvent(last), "release");
    ok(clReleaseEvent(gates[i]), "release");
  }
  ok(clFinish(queue), "finish");
  ok(clRetainCommandQueue(queue), "retain");
  ok(clReleaseCommandQueue(queue), "release");
  ok(clReleaseCommandQueue(queue), "release");

  const cl_command_queue left = d.queue();
  cl_event gate = clCreateUserEvent(d.context, &error);
  for (int i = 0; i < 10; ++i) {
    ok(clEnqueueNDRangeKernel(left, kernel, 1, nullptr, &global, nullptr, 1, &gate, nullptr),
       "launch");
  }
  ok(clReleaseCommandQueue(left), "release");
  ok(clSetUserEventStatus(gate, CL_COMPLETE), "set");
  ok(clReleaseEvent(gate), "release");
  ok(clReleaseKernel(kernel), "release");
  for (int i = 0; i < 12000 && context_references(d) != before; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  std::printf("%d\n", static_cast<int>(context_references(d)) - static_cast<int>(before));
  std::fflush(stdout);
  return 0;
}

// More than the layer keeps in mind, all held up at once.
int flood(const Device& d) {
  cl_int error = 0;
  const cl_kernel kernel = d.kernel("nothing");
  const cl_command_queue queue = d.queue();
  const size_t global = 1;
  cl_event gate = clCreateUserEvent(d.context, &error);
  ok(clEnqueueBarrierWithWaitList(queue, 1, &gate, nullptr), "barrier");
  for (int i = 0; i < 20000; ++i) {
    ok(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &global, nullptr, 0, nullptr, nullptr),
       "launch");
  }
  ok(clSetUserEventStatus(gate, CL_COMPLETE), "set");
  ok(clFinish(queue), "finish");
  return 0;
}

// 5 launches that are done, 3 that nobody waits for.
int exits(const Device& d) {
  some(d, 5);
  const cl_command_queue queue = d.queue();
  const cl_kernel kernel = d.kernel("nothing");
  for (int i = 0; i < 3; ++i) launch(queue, kernel);
  std::exit(0);
}

// One kernel from programs that are made in different ways, each launched another number of times.
int codes(const Device& d) {
  const cl_command_queue queue = d.queue();
  cl_int error = 0;
  const auto source = [&](std::vector<const char*> parts) {
    cl_program handle = clCreateProgramWithSource(d.context, static_cast<cl_uint>(parts.size()),
                                                  parts.data(), nullptr, &error);
    ok(error, "program");
    return handle;
  };
  const auto built = [&](cl_program program, const char* options) {
    ok(clBuildProgram(program, 1, &d.device, options, nullptr, nullptr), "build");
    return program;
  };
  const auto compiled = [&](cl_program program, const char* options,
                            std::vector<cl_program> headers = {}) {
    const char* name = "n.h";
    ok(clCompileProgram(program, 1, &d.device, options, static_cast<cl_uint>(headers.size()),
                        headers.empty() ? nullptr : headers.data(),
                        headers.empty() ? nullptr : &name, nullptr, nullptr),
       "compile");
    return program;
  };
  const auto linked = [&](cl_program program, const char* options) {
    cl_program handle =
        clLinkProgram(d.context, 1, &d.device, options, 1, &program, nullptr, nullptr, &error);
    ok(error, "link");
    return handle;
  };
  const auto launches = [&](int count, cl_program program) {
    cl_kernel kernel = clCreateKernel(program, "work", &error);
    ok(error, "kernel");
    for (int i = 0; i < count; ++i) launch(queue, kernel);
    ok(clFinish(queue), "finish");
    ok(clReleaseKernel(kernel), "release");
    ok(clReleaseProgram(program), "release");
  };
  const char *begin = "#ifndef N\n#define N 1\n#endif\n",
             *work = "kernel void work() { volatile int a = N; }\n",
             *unsplit =
                 "#ifndef N\n#define N 1\n#endif\nkernel void work() { volatile int a = N; }\n",
             *changed = "kernel void work() { volatile int a = 2; }\n",
             *with_header = "#include \"n.h\"\nkernel void work() { volatile int a = N; }\n";
  launches(1, built(source({unsplit}), ""));
  launches(2, built(source({begin, work}), nullptr));  // the same
  launches(4, built(source({changed}), ""));
  launches(8, built(source({unsplit}), "-DN=3"));
  launches(16, built(built(source({unsplit}), "-DN=3"), "-DN=4"));
  launches(32, linked(compiled(source({unsplit}), ""), ""));
  launches(64, linked(compiled(source({unsplit}), "-DN=5"), ""));
  launches(128, linked(compiled(source({with_header}), "", {source({"#define N 6\n"})}), ""));
  launches(256, linked(compiled(source({with_header}), "", {source({"#define N 7\n"})}), ""));
  cl_program from = built(source({unsplit}), "");
  size_t size = 0;
  ok(clGetProgramInfo(from, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr), "size");
  std::vector<unsigned char> bytes(size);
  unsigned char* at = bytes.data();
  ok(clGetProgramInfo(from, CL_PROGRAM_BINARIES, sizeof at, &at, nullptr), "binary");
  const unsigned char* binary = at;
  cl_program again =
      clCreateProgramWithBinary(d.context, 1, &d.device, &size, &binary, nullptr, &error);
  ok(error, "program of a binary");
  launches(512, built(again, ""));
  return 0;
}

// A command that fails takes those that wait for it along.
int failing(const Device& d) {
  cl_int error = 0;
  const cl_kernel kernel = d.kernel("nothing");
  const cl_command_queue queue = d.queue();
  const size_t global = k_elements;
  cl_event launched = nullptr;  // without it PoCL 3.1 aborts by itself
  cl_event gate = clCreateUserEvent(d.context, &error);
  ok(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &global, nullptr, 1, &gate, &launched),
     "launch");
  ok(clSetUserEventStatus(gate, -1), "set");
  (void)clFinish(queue);
  some(d, 2);
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string scene = count > 1 ? arguments[1] : "";
  const Device device;
  const struct {
    const char* name;
    int (*play)(const Device&);
  } scenes[] = {{"all", all},         {"memory", memory},       {"threads", threads},
                {"killed", killed},   {"forking", forking},     {"churn", churn},
                {"idle", idle},       {"extension", extension}, {"copies", copies},
                {"held up", held_up}, {"flood", flood},         {"exits", exits},
                {"failing", failing}, {"shared", shared},       {"codes", codes}};
  for (const auto& entry : scenes) {
    if (scene == entry.name) std::_Exit(entry.play(device));
  }
  return 2;
}
