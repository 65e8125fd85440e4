// Counts device memory, by the calls that allocate and free it.
#include "gate/probes/inject/streams/device_memory.h"
#include "gate/probes/inject/streams/streams.h"

namespace weir_probe::streams {
namespace {

DeviceMemory g_memory;
pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
uint64_t *g_peak, *g_allocations;
Once g_counters_once;

// Locks g_memory to the end of the block, then publishes the memory in use to g.memory_used.
class LockedMemory {
 public:
  LockedMemory() { pthread_mutex_lock(&g_lock); }
  ~LockedMemory() {
    uint64_t used = 0;
    for (int device = 0; device < k_max_memory_devices; ++device) used += g_memory.used(device);
    __atomic_store_n(&g.memory_used, used, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&g_lock);
  }
  LockedMemory(const LockedMemory&) = delete;
  LockedMemory& operator=(const LockedMemory&) = delete;
};

}  // namespace

void add_memory_counters() {
  g_counters_once.run([] {
    ensure_file();
    const Locked locked(&g.lock);
    g_peak = add_counter(&g.file, "device_memory_peak_bytes");
    g_allocations = add_counter(&g.file, "allocations");
    g.memory_steady = add_counter(&g.file, "device_memory_steady_bytes");
  });
}

uint64_t add_memory(uint64_t at, uint64_t bytes, int device) {
  if (at == 0 || device < 0 || device >= k_max_memory_devices) return 0;
  add_memory_counters();
  add(g_allocations, 1);
  const LockedMemory locked_memory;
  const uint64_t before = g_memory.peak();
  g_memory.insert_block(at, bytes, device);
  add(g_peak, g_memory.peak() - before);
  return g_memory.peak() - before;
}
void free_memory(const void* at) {
  const LockedMemory locked_memory;
  g_memory.give_back(key_of(at));
}
void reset_memory(int device) {
  const LockedMemory locked_memory;
  g_memory.reset(device);
}
void map_memory(uint64_t handle, uint64_t at) {
  const LockedMemory locked_memory;
  g_memory.map(handle, at);
}
void release_memory(uint64_t handle) {
  const LockedMemory locked_memory;
  g_memory.release(handle);
}
void unmap_memory(uint64_t at, uint64_t bytes) {
  const LockedMemory locked_memory;
  g_memory.unmap(at, bytes);
}

}  // namespace weir_probe::streams
