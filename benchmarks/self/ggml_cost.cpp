// What the ggml probe costs per call: its functions in front of a stand-in for ggml, against that
// stand-in alone. The difference of a pair is the probe.
//
// The stand-in is opened privately, as by Python, where the probe has to look up whom a call was
// meant for: the dearer of its two ways. A graph's cost is told per op that works (200 of 240
// nodes).
#include <cstdio>
#include <cstdlib>

#include <benchmark/benchmark.h>
#include <dlfcn.h>

#include "tests/probes/ggml_stand_in.hpp"
#include "tests/probes/support.hpp"

namespace weir::probes {
namespace {

void* library(const char* path) {
  void* opened = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::exit(1);
  }
  return opened;
}

struct Ggml {
  void (*wait)(void*);
  void (*set)(void*, const void*, std::size_t, std::size_t);
  int (*compute)(void*, void*);
  StandIn parts;
};

Ggml ggml(bool with_probe) {
  static const Folder k_folder;  // the probe's file goes here, and away with it
  setenv("WEIR_PROBE_DIR", k_folder.path().c_str(), 1);
  void* stand_in = library(WEIR_GGML_STAND_IN);
  void* from = with_probe ? library(WEIR_BINARY_DIR "/lib/weir/probes/libweir_ggml.so") : stand_in;
  Ggml out{};
  out.wait = reinterpret_cast<decltype(out.wait)>(dlsym(from, "ggml_backend_synchronize"));
  out.set = reinterpret_cast<decltype(out.set)>(dlsym(from, "ggml_backend_tensor_set"));
  out.compute = reinterpret_cast<decltype(out.compute)>(
      dlsym(from, "ggml_backend_sched_graph_compute_async"));
  out.parts = reinterpret_cast<StandIn (*)()>(dlsym(stand_in, "stand_in"))();
  return out;
}

void wait(benchmark::State& state, bool with_probe) {
  const Ggml on = ggml(with_probe);
  for (auto _ : state) on.wait(on.parts.gpu);
}
void set(benchmark::State& state, bool with_probe) {
  const Ggml on = ggml(with_probe);
  for (auto _ : state) on.set(on.parts.on_gpu, nullptr, 0, 4);
}
void graph(benchmark::State& state, bool with_probe) {
  const Ggml on = ggml(with_probe);
  for (auto _ : state) on.compute(on.parts.sched, on.parts.graph_of_many);
}

void ggml_wait_bare(benchmark::State& state) { wait(state, false); }
void ggml_wait_with_probe(benchmark::State& state) { wait(state, true); }
void ggml_set_bare(benchmark::State& state) { set(state, false); }
void ggml_set_with_probe(benchmark::State& state) { set(state, true); }
void ggml_graph_bare(benchmark::State& state) { graph(state, false); }
void ggml_graph_with_probe(benchmark::State& state) { graph(state, true); }
BENCHMARK(ggml_wait_bare);
BENCHMARK(ggml_wait_with_probe);
BENCHMARK(ggml_set_bare);
BENCHMARK(ggml_set_with_probe);
BENCHMARK(ggml_graph_bare);
BENCHMARK(ggml_graph_with_probe);

}  // namespace
}  // namespace weir::probes
