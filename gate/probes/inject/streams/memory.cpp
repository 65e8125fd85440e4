// Memory of devices: how much of it is taken, by the calls that ask for it and give it back.
#include "gate/probes/inject/streams/device_memory.h"
#include "gate/probes/inject/streams/streams.h"

namespace weir_probe::streams {
namespace {

DeviceMemory g_memory;
pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
uint64_t *g_peak, *g_allocations;
Once g_counters_once;

// While there is one g_memory is this thread's; then streams know how much is taken.
class Changing {
 public:
  Changing() { pthread_mutex_lock(&g_lock); }
  ~Changing() {
    uint64_t used = 0;
    for (int device = 0; device < k_most_memories; ++device) used += g_memory.used(device);
    __atomic_store_n(&g.memory_used, used, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&g_lock);
  }
  Changing(const Changing&) = delete;
  Changing& operator=(const Changing&) = delete;
};

}  // namespace

void have_memory() {
  g_counters_once.run([] {
    ensure_file();
    const Locked locked(&g.lock);
    g_peak = add_counter(&g.file, "device_memory_peak_bytes");
    g_allocations = add_counter(&g.file, "allocations");
    g.memory_steady = add_counter(&g.file, "device_memory_steady_bytes");
  });
}

uint64_t memory_taken(uint64_t at, uint64_t bytes, int device) {
  if (at == 0 || device < 0 || device >= k_most_memories) return 0;
  have_memory();
  add(g_allocations, 1);
  const Changing changing;
  const uint64_t most = g_memory.most();
  g_memory.take(at, bytes, device);
  add(g_peak, g_memory.most() - most);
  return g_memory.most() - most;
}
void memory_given_back(const void* at) {
  const Changing changing;
  g_memory.give_back(key_of(at));
}
void memory_reset(int device) {
  const Changing changing;
  g_memory.reset(device);
}
void memory_mapped(uint64_t handle, uint64_t at) {
  const Changing changing;
  g_memory.map(handle, at);
}
void memory_released(uint64_t handle) {
  const Changing changing;
  g_memory.release(handle);
}
void memory_unmapped(uint64_t at, uint64_t bytes) {
  const Changing changing;
  g_memory.unmap(at, bytes);
}

}  // namespace weir_probe::streams
