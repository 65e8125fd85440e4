// Plays a scene on a stand-in ggml: as a program linked with it, or (ggml_host.cpp) from a library
// that was opened privately. Prints what reached the library below the probe.
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "tests/probes/ggml_stand_in.hpp"

extern "C" {
int ggml_backend_sched_graph_compute(void*, void*);
int ggml_backend_sched_graph_compute_async(void*, void*);
int ggml_backend_graph_compute(void*, void*);
void ggml_backend_synchronize(void*);
void ggml_backend_tensor_set(void*, const void*, size_t, size_t);
void ggml_backend_tensor_set_async(void*, void*, const void*, size_t, size_t);
void ggml_backend_tensor_get(const void*, void*, size_t, size_t);
void ggml_backend_tensor_get_2d(const void*, void*, size_t, size_t, size_t, size_t, size_t);
void ggml_backend_tensor_get_async(void*, const void*, void*, size_t, size_t);
void ggml_backend_tensor_copy(void*, void*);
using EvalCallback = bool (*)(void*, bool, void*);
// An old ggml has none.
void ggml_backend_sched_set_eval_callback(void*, EvalCallback, void*) __attribute__((weak));
}

namespace {

// Does the work of a token: sets an input, computes, reads the result.
void token(const StandIn& ggml) {
  ggml_backend_tensor_set(ggml.on_host, nullptr, 0, 4);
  ggml_backend_sched_graph_compute(ggml.sched, ggml.graph_of_1);
  ggml_backend_tensor_get(ggml.on_gpu, nullptr, 0, 2048);
}

// A program's own evaluation callback: waits for one node, and has the fourth token end there.
struct Watch {
  const void* wanted;
  int questions, reports;
};
bool watch(void* tensor, bool asks, void* data) {
  auto* counts = static_cast<Watch*>(data);
  if (asks) {
    ++counts->questions;
    return tensor == counts->wanted;
  }
  return ++counts->reports != 4;
}

void print(const char* what, const std::vector<int>& numbers) {
  std::printf("%s", what);
  for (const int number : numbers) {
    std::printf(number == 0x7f7f7f7f ? " ?" : " %d", number);
  }
  std::printf("\n");
}

// Each of the ways to read, of each tensor of whole numbers. Prints ? for what nobody computed.
void read_indices(const StandIn& ggml) {
  const struct {
    const char* what;
    const void* tensor;
    size_t offset, count;
  } reads[] = {{"sorted", ggml.sorted, 0, 24},
               {"from 5 on", ggml.sorted, 20, 6},
               {"top", ggml.top, 0, 18},
               {"second row of top", ggml.top, 32, 2},
               {"largest", ggml.largest, 0, 1},
               {"given", ggml.given, 0, 4},
               {"on host", ggml.sorted_on_host, 0, 8},
               {"fractions", ggml.on_gpu, 0, 2}};
  for (const auto& [what, tensor, offset, count] : reads) {
    std::vector<int> numbers(count);
    ggml_backend_tensor_get(tensor, numbers.data(), offset, count * sizeof(int));
    print(what, numbers);
  }
  std::vector<int> rows(9, -1);  // two of each row, with a gap
  ggml_backend_tensor_get_2d(ggml.sorted, rows.data(), 4, 8, 3, 32, 12);
  print("in rows", rows);
  std::vector<int> late(4, -1);
  ggml_backend_tensor_get_async(ggml.gpu, ggml.sorted, late.data(), 0, 16);
  ggml_backend_synchronize(ggml.gpu);
  print("late", late);
  late.assign(4, -1);
  ggml_backend_synchronize(ggml.gpu);
  print("waited twice", late);
}

int play(const char* scene) {
  const StandIn ggml = stand_in();
  if (std::strcmp(scene, "tokens") == 0) {
    ggml_backend_tensor_set_async(ggml.gpu, ggml.on_gpu, nullptr, 0, 100000);  // weights
    for (int i = 0; i < 2; ++i) ggml_backend_sched_graph_compute_async(ggml.sched, ggml.graph_of_7);
    for (int i = 0; i < 10; ++i) token(ggml);
    ggml_backend_graph_compute(ggml.cpu, ggml.graph_of_1);  // without a scheduler
  } else if (std::strcmp(scene, "watched") == 0) {
    Watch counts{ggml.on_gpu, 0, 0};
    ggml_backend_sched_set_eval_callback(ggml.sched, watch, &counts);
    for (int i = 0; i < 6; ++i) token(ggml);
    ggml_backend_sched_set_eval_callback(ggml.sched, nullptr, nullptr);
    token(ggml);
    std::printf("asked %d told %d\n", counts.questions, counts.reports);
    return 0;
  } else if (std::strcmp(scene, "batches") == 0) {
    for (const char* attended :
         {"xx......xxx.....xxxx....", "x..x.....x..x.....x..x..", "x..x..x..x..x..x..x..x.x"}) {
      for (int i = 0; i < 24; ++i) ggml.mask[i] = attended[i] == 'x' ? 0 : -INFINITY;
      ggml_backend_sched_graph_compute(ggml.sched, ggml.graph_of_3);
    }
  } else if (std::strcmp(scene, "failing") == 0) {
    token(ggml);
    ggml.calls[k_fail] = 1;
    if (ggml_backend_sched_graph_compute(ggml.sched, ggml.graph_of_1) != -2) return 3;
  } else if (std::strcmp(scene, "killed") == 0) {
    for (int i = 0; i < 10; ++i) token(ggml);
    raise(SIGKILL);
  } else if (std::strcmp(scene, "forking") == 0) {
    token(ggml);
    const pid_t child = fork();
    for (int i = 0; i < 3; ++i) token(ggml);
    if (child == 0) _exit(0);
    waitpid(child, nullptr, 0);
  } else if (std::strcmp(scene, "indices") == 0) {
    read_indices(ggml);
    token(ggml);
    return 0;
  } else if (std::strcmp(scene, "threads") == 0) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 16; ++i) {
      threads.emplace_back([&] {
        for (int n = 0; n < 500; ++n) token(ggml);
      });
    }
    for (std::thread& thread : threads) thread.join();
  } else {
    return 2;
  }
  std::printf("computed %llu synchronized %llu set %llu got %llu copied %llu\n",
              ggml.calls[k_computed], ggml.calls[k_synchronized], ggml.calls[k_set],
              ggml.calls[k_got], ggml.calls[k_copied]);
  std::fflush(stdout);
  return 0;
}

}  // namespace

extern "C" int scene_main(const char* scene) { return play(scene); }

#ifndef SCENES_ARE_A_LIBRARY
int main(int count, char** arguments) { return count == 2 ? play(arguments[1]) : 2; }
#endif
