// Measures the ggml probe's cost per call: its functions in front of a stand-in for ggml, and that
// stand-in alone. The difference of a pair is the probe.
//
// The stand-in is opened privately, as Python does. The probe then has to look up which library a
// call was meant for, the more expensive of its two ways. The cost of a graph is given per op that
// computes (200 of 240 nodes).
#include <cstdio>
#include <cstdlib>

#include <benchmark/benchmark.h>
#include <dlfcn.h>

#include "tests/probes/ggml_stand_in.hpp"
#include "tests/probes/support.hpp"

namespace weir::probes {
namespace {

// Opens a library; ends the program if that fails.
void* open_library(const char* path) {
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::exit(1);
  }
  return handle;
}

struct Ggml {
  void (*wait)(void*);
  void (*set)(void*, const void*, std::size_t, std::size_t);
  int (*compute)(void*, void*);
  StandIn parts;
};

// Looks up ggml's functions, in weir's probe or directly in the stand-in for ggml.
Ggml load_ggml(bool with_probe) {
  static const Folder k_folder;  // for the probe's file; removed at the end
  setenv("WEIR_PROBE_DIR", k_folder.path().c_str(), 1);
  void* stand_in = open_library(WEIR_GGML_STAND_IN);
  void* library =
      with_probe ? open_library(WEIR_BINARY_DIR "/lib/weir/probes/libweir_ggml.so") : stand_in;
  Ggml ggml{};
  ggml.wait = reinterpret_cast<decltype(ggml.wait)>(dlsym(library, "ggml_backend_synchronize"));
  ggml.set = reinterpret_cast<decltype(ggml.set)>(dlsym(library, "ggml_backend_tensor_set"));
  ggml.compute = reinterpret_cast<decltype(ggml.compute)>(
      dlsym(library, "ggml_backend_sched_graph_compute_async"));
  ggml.parts = reinterpret_cast<StandIn (*)()>(dlsym(stand_in, "stand_in"))();
  return ggml;
}

void wait(benchmark::State& state, bool with_probe) {
  const Ggml ggml = load_ggml(with_probe);
  for (auto _ : state) ggml.wait(ggml.parts.gpu);
}
void set(benchmark::State& state, bool with_probe) {
  const Ggml ggml = load_ggml(with_probe);
  for (auto _ : state) ggml.set(ggml.parts.on_gpu, nullptr, 0, 4);
}
void graph(benchmark::State& state, bool with_probe) {
  const Ggml ggml = load_ggml(with_probe);
  for (auto _ : state) ggml.compute(ggml.parts.sched, ggml.parts.graph_of_many);
}

void ggml_wait_bare(benchmark::State& state) { wait(state, /*with_probe=*/false); }
void ggml_wait_with_probe(benchmark::State& state) { wait(state, /*with_probe=*/true); }
void ggml_set_bare(benchmark::State& state) { set(state, /*with_probe=*/false); }
void ggml_set_with_probe(benchmark::State& state) { set(state, /*with_probe=*/true); }
void ggml_graph_bare(benchmark::State& state) { graph(state, /*with_probe=*/false); }
void ggml_graph_with_probe(benchmark::State& state) { graph(state, /*with_probe=*/true); }
BENCHMARK(ggml_wait_bare);
BENCHMARK(ggml_wait_with_probe);
BENCHMARK(ggml_set_bare);
BENCHMARK(ggml_set_with_probe);
BENCHMARK(ggml_graph_bare);
BENCHMARK(ggml_graph_with_probe);

}  // namespace
}  // namespace weir::probes
