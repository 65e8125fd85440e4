// Adds the counters that only the CUDA probe has.
#include "gate/probes/inject/cuda/cuda.h"

namespace weir_probe::cuda {
namespace {

uint64_t* g_counters[k_counters];  // by Counter, once the file is there
Once g_counters_once;

}  // namespace

void add_counters_once() {
  g_counters_once.run([] {
    constexpr const char* k_names[k_counters] = {"cublas_calls",         "graph_launches",
                                                 "graph_instantiations", "programmatic_launches",
                                                 "device_memory_bytes",  "out_of_memory"};
    streams::add_memory_counters();
    const Locked locked(&streams::g.lock);
    for (int i = 0; i < k_counters; ++i) g_counters[i] = add_counter(&streams::g.file, k_names[i]);
  });
}
void count(Counter what, uint64_t amount) {
  add_counters_once();
  add(g_counters[what], amount);
}

}  // namespace weir_probe::cuda
