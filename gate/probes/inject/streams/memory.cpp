// Counts device memory, by the calls that allocate and free it.
#include "gate/probes/inject/streams/device_memory.h"
#include "gate/probes/inject/streams/interface.h"

namespace weir_probe::streams {
namespace {

DeviceMemory g_memory;
pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;

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

void add_memory(int result, uint64_t at, uint64_t bytes, int device) {
  if (result == k_out_of_memory) count(k_memory_refused);
  if (result != k_done || at == 0 || device < 0 || device >= k_max_memory_devices) return;
  count(k_allocations);
  const LockedMemory locked_memory;
  const uint64_t before = g_memory.peak();
  g_memory.insert_block(at, bytes, device);
  count(k_device_memory_peak_bytes, g_memory.peak() - before);
  count(k_device_memory_bytes, g_memory.peak() - before);
}

}  // namespace

void count_allocation(int result, void* const* at, uint64_t bytes) {
  add_memory(result, result == k_done ? address_key(*at) : 0,
             round_up_to(bytes, k_api.allocation_bytes), current_device());
}
void count_created_memory(int result, const uint64_t* handle, uint64_t bytes,
                          const AllocationProperties* properties) {
  if (properties == nullptr || properties->location_type != k_on_device) return;
  add_memory(result, result == k_done ? *handle : 0, round_up_to(bytes, k_api.reservation_bytes),
             properties->location);
}
void free_memory(const void* at) {
  const LockedMemory locked_memory;
  g_memory.give_back(address_key(at));
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
