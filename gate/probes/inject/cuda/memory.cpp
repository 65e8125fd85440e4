// The counters of CUDA's own, and memory of devices among them.
#include "gate/probes/inject/cuda/cuda.h"
#include "gate/probes/inject/cuda/device_memory.h"

namespace weir_probe::cuda {
namespace {

uint64_t* g_counters[k_counters];  // by Counter, once the file is there
Once g_counters_once;

DeviceMemory g_memory;
pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;

void find_counters() {
  constexpr const char* k_names[k_counters] = {"cublas_calls",         "graph_launches",
                                               "graph_instantiations", "programmatic_launches",
                                               "device_memory_bytes",  "out_of_memory"};
  streams::ensure_file();
  const Locked locked(&streams::g.lock);
  for (int i = 0; i < k_counters; ++i) g_counters[i] = add_counter(&streams::g.file, k_names[i]);
}

}  // namespace

void have_counters() { g_counters_once.run(find_counters); }
void count(Counter what, uint64_t amount) {
  have_counters();
  add(g_counters[what], amount);
}

void memory_asked(int result, uint64_t at, uint64_t counted, int device) {
  if (result == k_out_of_memory) return count(k_memory_refused);
  if (result != k_ok || at == 0 || device < 0 || device >= k_most_memories) return;
  const Locked locked(&g_lock);
  const uint64_t most = g_memory.most();
  g_memory.take(at, counted, device);
  if (g_memory.most() > most) count(k_device_memory_bytes, g_memory.most() - most);
}
void memory_given_back(uint64_t at) {
  const Locked locked(&g_lock);
  g_memory.give_back(at);
}
void memory_reset(int device) {
  const Locked locked(&g_lock);
  g_memory.reset(device);
}
void memory_mapped(uint64_t handle, uint64_t at) {
  const Locked locked(&g_lock);
  g_memory.map(handle, at);
}
void memory_released(uint64_t handle) {
  const Locked locked(&g_lock);
  g_memory.release(handle);
}
void memory_unmapped(uint64_t at, uint64_t bytes) {
  const Locked locked(&g_lock);
  g_memory.unmap(at, bytes);
}

}  // namespace weir_probe::cuda
