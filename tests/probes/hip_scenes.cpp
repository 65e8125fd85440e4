// The scenes that the HIP probe is tested with: known numbers of calls of a stand-in runtime.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>

#include "tests/probes/hip_stand_in.hpp"

namespace {

void require(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "scene: %s\n", what);
  std::_Exit(3);
}
void ok(int result, const char* what) { require(result == 0, what); }

// Two bundles of machine code as compiled code registers them, with kernels of one name, and a
// wrapper of something else.
const char k_bundles[2][32] = {};
struct Wrapper {
  unsigned magic = 0x48495046, version = 1;
  const void* bundle;
  void* unused = nullptr;
} const k_wrappers[] = {
    {.bundle = k_bundles[0]}, {.bundle = k_bundles[1]}, {.magic = 7, .bundle = k_bundles[0]}};
const char g_scales[3] = {};  // their addresses stand for functions of the host

void name_function(void** handle, const void* host, const char* name) {
  __hipRegisterFunction(handle, host, const_cast<char*>(name), name, -1U, nullptr, nullptr, nullptr,
                        nullptr, nullptr);
}

const void* const k_one = reinterpret_cast<const void*>(&kernel_one);
const void* const k_two = reinterpret_cast<const void*>(&kernel_two);

void launch(const void* function, void* stream) {
  ok(hipLaunchKernel(function, {4, 2, 1}, {32, 1, 1}, nullptr, 128, stream), "launch");
}

void* stream() {
  void* handle = nullptr;
  ok(hipStreamCreate(&handle), "stream");
  return handle;
}

// Null stream: 3 launches, 2 blocking copies. Stream a: 5 launches, 1 copy, 1 fill. Stream b:
// 2 launches of a module's function.
int all() {
  char host[64] = {}, device[64] = {};
  void* const a = stream();
  void* const b = stream();
  require(hipLaunchKernel(nullptr, {1, 1, 1}, {1, 1, 1}, nullptr, 0, a) == k_invalid, "refused");
  ok(hipDeviceSynchronize(), "device");  // nothing to wait for

  ok(hipMemcpy(device, host, 64, 1), "copy");  // sync 1, of the null stream
  for (int i = 0; i < 3; ++i) launch(k_one, nullptr);
  ok(hipMemcpy(host, device, 16, 2), "copy");  // sync 2

  for (int i = 0; i < 5; ++i) launch(i < 4 ? k_one : k_two, a);
  ok(hipMemcpyAsync(device, host, 32, 3, a), "copy");
  ok(hipMemsetAsync(device, 0, 64, a), "fill");
  void* event = nullptr;
  ok(hipEventCreate(&event), "event");
  ok(hipEventRecord(event, a), "record");
  ok(hipStreamWaitEvent(b, event, 0), "barrier");
  while (hipEventQuery(event) == k_not_ready) {
  }                                         // 3 polls; sync 1 of a
  ok(hipEventSynchronize(event), "event");  // a wait for what was seen done
  ok(hipStreamSynchronize(a), "stream");    // another
  void* function = nullptr;
  ok(hipModuleGetFunction(&function, nullptr, "of_a_module"), "function");
  for (int i = 0; i < 2; ++i) {
    ok(hipModuleLaunchKernel(function, 1, 1, 1, 8, 8, 1, 0, b, nullptr, nullptr), "launch");
  }
  ok(hipDeviceSynchronize(), "device");  // sync 1 of b
  ok(hipStreamDestroy(a), "destroy");
  return 0;
}

void* captured(void* stream, void (*calls)(void* stream)) {
  void *graph = nullptr, *exec = nullptr;
  ok(hipStreamBeginCapture(stream, 0), "capture");
  calls(stream);
  ok(hipStreamEndCapture(stream, &graph), "capture");
  ok(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0), "instantiate");
  ok(hipGraphDestroy(graph), "destroy");
  return exec;
}

// A graph of 2 launches, a copy, a fill and the 1 launch of another graph; launched 10 times. Waits
// for events within a capture count nothing.
int graphs() {
  void* const s = stream();
  static void* s_inner = captured(s, [](void* on) { launch(k_two, on); });
  void* const exec = captured(s, [](void* on) {
    static char s_host[8], s_device[8];
    void* event = nullptr;
    launch(k_one, on);
    launch(k_one, on);
    ok(hipMemcpyAsync(s_device, s_host, 8, 1, on), "copy");
    ok(hipMemsetAsync(s_device, 0, 8, on), "fill");
    ok(hipEventCreate(&event), "event");
    ok(hipEventRecord(event, on), "record");
    ok(hipStreamWaitEvent(on, event, 0), "barrier");
    ok(hipGraphLaunch(s_inner, on), "launch");
  });
  for (int i = 0; i < 10; ++i) ok(hipGraphLaunch(exec, s), "launch");
  ok(hipStreamSynchronize(s), "stream");
  ok(hipGraphExecDestroy(exec), "destroy");
  return 0;
}

// A graph that was made by other calls.
int unseen() {
  void *exec = nullptr, *made = stream();
  ok(hipGraphInstantiate(&exec, made, nullptr, nullptr, 0), "instantiate");
  ok(hipGraphLaunch(exec, stream()), "launch");
  return 0;
}

// Each function of the libraries once, and once in a graph that is launched twice.
int libraries() {
  const auto all = [](void* stream) {
    int hipblas = 0, rocblas = 0;
    ok(hipblasSetStream(&hipblas, stream), "stream");
    ok(rocblas_set_stream(&rocblas, stream), "stream");
#define SCENE_CALLS(name) \
  ok(name(std::string(#name).starts_with("hip") ? &hipblas : &rocblas), #name);
    STAND_IN_PRODUCTS(SCENE_CALLS)
    ok(hipblasLtMatmul(&hipblas, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, stream), "hipBLASLt");
    ok(hipblasDestroy(&hipblas), "destroy");
  };
  void* const s = stream();
  all(s);
  void* const exec = captured(s, all);
  for (int i = 0; i < 2; ++i) ok(hipGraphLaunch(exec, s), "launch");
  return 0;
}

// Kernels of one name, of either bundle and of none that is known; blocks of two sizes each. Prints
// where the bundles lie in the file.
int costs() {
  Dl_info file{};
  require(dladdr(k_bundles, &file) != 0, "file");
  for (const auto& bundle : k_bundles) {
    std::printf("%zu\n", static_cast<std::size_t>(bundle - static_cast<char*>(file.dli_fbase)));
  }
  for (unsigned i = 0; i < 3; ++i) {
    name_function(__hipRegisterFatBinary(&k_wrappers[i]), &g_scales[i], "_Z5scalePf");
    for (const unsigned threads : {100U + i, 256U + i}) {
      ok(hipLaunchKernel(&g_scales[i], {4, 1, 1}, {threads, 1, 1}, nullptr, 0, nullptr), "launch");
    }
  }
  return 0;
}

// Copies that leave it to the addresses where they go.
int directions() {
  void *first = nullptr, *second = nullptr;
  char host[2][64] = {};
  ok(hipMalloc(&first, 64), "memory");
  ok(hipMalloc(&second, 64), "memory");
  ok(hipMemcpy(first, host[0], 1, 4), "copy");
  ok(hipMemcpy(host[0], first, 2, 4), "copy");
  ok(hipMemcpy(second, first, 4, 4), "copy");
  ok(hipMemcpy(host[1], host[0], 8, 4), "copy");
  return 0;
}

int threads() {
  std::vector<std::thread> all;
  for (int i = 0; i < 16; ++i) {
    all.emplace_back([] {
      void* const mine = stream();
      for (int n = 0; n < 1000; ++n) {
        launch(n % 2 == 0 ? k_one : k_two, mine);
        if (n % 10 == 9) ok(hipStreamSynchronize(mine), "stream");
      }
    });
  }
  for (std::thread& thread : all) thread.join();
  return 0;
}

// At once: 1000 + 2000, then 2000 + 500, at last 2000 + 500 + 4096. Memory of the host is not the
// device's.
int memory() {
  void *first = nullptr, *second = nullptr, *third = nullptr, *handle = nullptr, *none = nullptr;
  char place[4096];
  ok(hipMalloc(&first, 1000), "memory");
  ok(hipMalloc(&second, 2000), "memory");
  ok(hipFree(first), "free");
  ok(hipMallocAsync(&third, 500, nullptr), "memory");  // allocates within: one call
  require(hipMalloc(&none, size_t{1} << 50) == 2, "refused");
  const int on_host[4] = {1, 0, 2, 0}, on_device[4] = {1, 0, 1, 0};
  ok(hipMemCreate(&handle, 8192, on_host, 0), "memory");
  ok(hipMemCreate(&handle, 8192, nullptr, 0), "memory");
  ok(hipMemCreate(&handle, 4096, on_device, 0), "memory");
  ok(hipMemMap(place, 4096, 0, handle, 0), "map");
  ok(hipMemRelease(handle), "release");  // it is still seen
  launch(k_one, nullptr);
  ok(hipMemUnmap(place, 4096), "unmap");
  return 0;
}

int killed() {
  for (int i = 0; i < 10; ++i) launch(k_one, nullptr);
  return raise(SIGKILL);
}

}  // namespace

extern "C" int scene_main(const char* name) {
  const std::string scene = name;
  void** const handle = __hipRegisterFatBinary(&k_wrappers[0]);
  name_function(handle, k_one, "kernel_one");
  name_function(handle, k_two, "kernel_two");
  if (scene == "all") return all();
  if (scene == "graphs") return graphs();
  if (scene == "unseen") return unseen();
  if (scene == "libraries") return libraries();
  if (scene == "costs") return costs();
  if (scene == "directions") return directions();
  if (scene == "threads") return threads();
  if (scene == "memory") return memory();
  if (scene == "killed") return killed();
  return 2;
}

#ifndef SCENES_ARE_A_LIBRARY
int main(int count, char** arguments) { return scene_main(count > 1 ? arguments[1] : ""); }
#endif
