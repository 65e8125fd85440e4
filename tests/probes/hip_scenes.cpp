// The scenes that the HIP probe is tested with: known numbers of calls of a stand-in runtime.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "tests/probes/hip_stand_in.hpp"

namespace {

void require(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "scene: %s\n", what);
  std::_Exit(3);
}
void ok(int result, const char* what) { require(result == 0, what); }

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

// A graph of 2 launches, a copy, a fill and, as a child, 1 launch more; launched 10 times.
int graphs() {
  char host[8] = {}, device[8] = {};
  void* const s = stream();
  void *child = nullptr, *graph = nullptr, *node = nullptr, *exec = nullptr;
  ok(hipStreamBeginCapture(s, 0), "capture");
  launch(k_two, s);
  ok(hipStreamEndCapture(s, &child), "capture");
  ok(hipStreamBeginCapture(s, 0), "capture");
  launch(k_one, s);
  launch(k_one, s);
  ok(hipMemcpyAsync(device, host, 8, 1, s), "copy");
  ok(hipMemsetAsync(device, 0, 8, s), "fill");
  ok(hipStreamEndCapture(s, &graph), "capture");
  ok(hipGraphAddChildGraphNode(&node, graph, nullptr, 0, child), "child");
  ok(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0), "instantiate");
  for (int i = 0; i < 10; ++i) ok(hipGraphLaunch(exec, s), "launch");
  ok(hipStreamSynchronize(s), "stream");
  ok(hipGraphExecDestroy(exec), "destroy");
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

// At once: 1000 + 2000, then 2000 + 500, at last 2000 + 500 + 4096.
int memory() {
  void *first = nullptr, *second = nullptr, *third = nullptr, *handle = nullptr, *none = nullptr;
  char place[4096];
  ok(hipMalloc(&first, 1000), "memory");
  ok(hipMalloc(&second, 2000), "memory");
  ok(hipFree(first), "free");
  ok(hipMallocAsync(&third, 500, nullptr), "memory");  // allocates within: one call
  require(hipMalloc(&none, size_t{1} << 50) == 2, "refused");
  ok(hipMemCreate(&handle, 4096, nullptr, 0), "memory");
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
  if (scene == "all") return all();
  if (scene == "graphs") return graphs();
  if (scene == "threads") return threads();
  if (scene == "memory") return memory();
  if (scene == "killed") return killed();
  return 2;
}

#ifndef SCENES_ARE_A_LIBRARY
int main(int count, char** arguments) { return scene_main(count > 1 ? arguments[1] : ""); }
#endif
