// Device times: when the program itself has learned that work is done, they are read.
#include <string.h>

#include "gate/probes/inject/vulkan/hooks.h"

namespace weir_probe {
namespace {

constexpr uint64_t k_calibrate_every = 250000000;  // nanoseconds

uint64_t mask_of(uint32_t bits) { return bits >= 64 ? UINT64_MAX : (uint64_t{1} << bits) - 1; }

void calibrate(Device* device) {
  Timer& timer = device->timer;
  weir_event_clock clock = {};
  clock.tick_seconds = timer.tick_seconds;
  clock.source = WEIR_CLOCK_NONE;
  for (const uint32_t bits : timer.valid_bits) {
    if (bits != 0 && (clock.valid_bits == 0 || bits < clock.valid_bits)) clock.valid_bits = bits;
  }
  if (timer.calibrated) {
    VkCalibratedTimestampInfoEXT wanted[2] = {};
    wanted[0].sType = wanted[1].sType = VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT;
    wanted[0].timeDomain = VK_TIME_DOMAIN_DEVICE_EXT;
    wanted[1].timeDomain = VK_TIME_DOMAIN_CLOCK_MONOTONIC_EXT;
    uint64_t times[2] = {};
    uint64_t deviation = 0;
    if (timer.calibrate(device->handle, 2, wanted, times, &deviation) == VK_SUCCESS) {
      clock.ticks = times[0];
      clock.cpu = times[1];
      clock.deviation = deviation;
      clock.source = WEIR_CLOCK_CALIBRATED;
    }
  }
  timer.last_calibration = now_nanoseconds();
  write_event(WEIR_EVENT_CLOCK, device->index, &clock, sizeof clock);
}

// `used` becomes true where times of another buffer still stand in it.
QueryChunk* take_chunk(Device* device, bool* used) {
  Timer& timer = device->timer;
  pthread_mutex_lock(&timer.lock);
  QueryChunk* chunk = timer.free_chunks;
  if (chunk != nullptr) timer.free_chunks = chunk->next;
  pthread_mutex_unlock(&timer.lock);
  if (chunk != nullptr) {
    chunk->next = nullptr;
    *used = true;
    return chunk;
  }
  chunk = static_cast<QueryChunk*>(calloc(1, sizeof(QueryChunk)));
  if (chunk == nullptr) return nullptr;
  VkQueryPoolCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO;
  info.queryType = VK_QUERY_TYPE_TIMESTAMP;
  info.queryCount = k_chunk_queries;
  if (device->next.CreateQueryPool(device->handle, &info, nullptr, &chunk->pool) == VK_SUCCESS) {
    return chunk;
  }
  free(chunk);
  return nullptr;
}

// One more timestamp: written when all that came before in the buffer is done.
void stamp(CommandBuffer* buffer) {
  Stamps& stamps = buffer->recording->stamps;
  if (!stamps.on) return;
  const uint32_t at = stamps.queries % k_chunk_queries;
  QueryChunk** link = &stamps.chunks;
  for (uint32_t i = stamps.queries / k_chunk_queries; i > 0; --i) link = &(*link)->next;
  if (at == 0) {
    if (*link == nullptr) {
      *link = take_chunk(buffer->device, &stamps.unsure);
    }
    if (*link == nullptr) {
      stamps.on = false;
      untimed("counts", "there is no memory for timestamps");
      return;
    }
    buffer->device->next.CmdResetQueryPool(buffer->handle, (*link)->pool, 0, k_chunk_queries);
  }
  buffer->device->next.CmdWriteTimestamp(buffer->handle, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT,
                                         (*link)->pool, at);
  ++stamps.queries;
}

// All times of `buffer`, into memory that the caller frees; null when some are not there yet.
uint64_t* fetch(Device* device, const Stamps& stamps) {
  uint64_t* ticks = static_cast<uint64_t*>(malloc(stamps.queries * sizeof(uint64_t)));
  if (ticks == nullptr) return nullptr;
  uint32_t got = 0;
  for (const QueryChunk* chunk = stamps.chunks; chunk != nullptr && got < stamps.queries;
       chunk = chunk->next) {
    const uint32_t left = stamps.queries - got;
    const uint32_t here = left < k_chunk_queries ? left : k_chunk_queries;
    if (device->next.GetQueryPoolResults(device->handle, chunk->pool, 0, here,
                                         here * sizeof(uint64_t), ticks + got, sizeof(uint64_t),
                                         VK_QUERY_RESULT_64_BIT) != VK_SUCCESS) {
      free(ticks);
      return nullptr;
    }
    got += here;
  }
  return ticks;
}

// Under the timer's lock. Times of an earlier submission may still stand where those of this one
// will: they lie before its begin, or have been read already.
bool harvest(Device* device, Stamps* stamps) {
  uint64_t* ticks = fetch(device, *stamps);
  if (ticks == nullptr) return false;
  const uint64_t mask = mask_of(device->timer.valid_bits[stamps->queue->family]);
  bool fresh = stamps->last_begin == 0 || ticks[0] != stamps->last_begin;
  for (uint32_t i = 1; i < stamps->queries; ++i) {
    // Before its begin, which is a very long step forward.
    if (((ticks[i] - ticks[0]) & mask) > mask / 2) fresh = false;
  }
  if (fresh) {
    write_times(queue_index(stamps->queue), stamps->serial, stamps->order, ticks[0],
                ticks[stamps->queries - 1], ticks + 1, stamps->groups);
    stamps->last_begin = ticks[0];
  }
  free(ticks);
  return fresh;
}

// Under the timer's lock.
void unlink_flight(Timer* timer, CommandBuffer* buffer) {
  CommandBuffer** link = &timer->in_flight;
  while (*link != nullptr && *link != buffer) link = &(*link)->recording->stamps.next_in_flight;
  if (*link == nullptr) return;
  Stamps& stamps = buffer->recording->stamps;
  *link = stamps.next_in_flight;
  if (timer->last == &stamps.next_in_flight) timer->last = link;
  stamps.next_in_flight = nullptr;
  // Last: the thread that records the buffer may see this without the lock, and free it.
  __atomic_store_n(&stamps.in_flight, false, __ATOMIC_RELEASE);
}

bool has_extension(const ClassFunctions& functions, VkPhysicalDevice physical, const char* name) {
  uint32_t count = 0;
  VkExtensionProperties* all = list_extensions(functions.extensions, physical, &count);
  bool found = false;
  for (uint32_t i = 0; all != nullptr && i < count && !found; ++i) {
    found = strcmp(all[i].extensionName, name) == 0;
  }
  free(all);
  return found;
}

}  // namespace

bool can_calibrate(const ClassFunctions& functions, VkPhysicalDevice physical) {
  if (functions.time_domains == nullptr || timing_wanted() == Timing::off ||
      !has_extension(functions, physical, VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME)) {
    return false;
  }
  VkTimeDomainEXT known[16];
  uint32_t count = 16;
  if (functions.time_domains(physical, &count, known) < 0) return false;
  bool device = false;
  bool monotonic = false;
  for (uint32_t i = 0; i < count; ++i) {
    device = device || known[i] == VK_TIME_DOMAIN_DEVICE_EXT;
    monotonic = monotonic || known[i] == VK_TIME_DOMAIN_CLOCK_MONOTONIC_EXT;
  }
  return device && monotonic;
}

void start_timer(Device* device, const ClassFunctions& functions, VkPhysicalDevice physical,
                 bool calibrated) {
  Timer& timer = device->timer;
  timer.last = &timer.in_flight;
  const Timing mode = events_on() ? timing_wanted() : Timing::off;
  if (mode == Timing::off) return;
  VkPhysicalDeviceProperties described = {};
  if (functions.properties != nullptr) functions.properties(physical, &described);
  bool any = false;
  for (uint32_t i = 0; i < 32; ++i) {
    // Queries can only be reset where work can be computed or drawn.
    const VkQueueFamilyProperties& family = device->families[i];
    if ((family.queueFlags & (VK_QUEUE_COMPUTE_BIT | VK_QUEUE_GRAPHICS_BIT)) == 0) continue;
    timer.valid_bits[i] = family.timestampValidBits;
    any = any || family.timestampValidBits != 0;
  }
  if (!any || described.limits.timestampPeriod <= 0 || device->next.CreateQueryPool == nullptr ||
      device->next.GetQueryPoolResults == nullptr || device->next.CmdWriteTimestamp == nullptr) {
    untimed("counts", "the device has no timestamps");
    return;
  }
  pthread_mutex_init(&timer.lock, nullptr);
  timer.tick_seconds = static_cast<double>(described.limits.timestampPeriod) * 1e-9;
  timer.calibrate = reinterpret_cast<PFN_vkGetCalibratedTimestampsEXT>(
      calibrated ? device->get(device->handle, "vkGetCalibratedTimestampsEXT") : nullptr);
  timer.calibrated = timer.calibrate != nullptr;
  timer.mode = mode;
  calibrate(device);
}

void stop_timer(Device* device) {
  Timer& timer = device->timer;
  if (timer.mode == Timing::off) return;
  read_times(device, nullptr, true);
  if (timer.calibrated) calibrate(device);
  // Also those of command buffers that the program leaves to its device.
  device->pools.each([](void* pool) {
    for (CommandBuffer* at = static_cast<CommandPool*>(pool)->first; at != nullptr; at = at->next) {
      if (at->recording != nullptr) free_stamps(at);
    }
  });
  while (timer.free_chunks != nullptr) {
    QueryChunk* next = timer.free_chunks->next;
    device->next.DestroyQueryPool(device->handle, timer.free_chunks->pool, nullptr);
    free(timer.free_chunks);
    timer.free_chunks = next;
  }
}

void begin_stamps(CommandBuffer* buffer) {
  Stamps& stamps = buffer->recording->stamps;
  const Timer& timer = buffer->device->timer;
  stamps.queries = stamps.groups = 0;
  stamps.group_open = false;
  stamps.on = false;
  if (timer.mode == Timing::off || buffer->secondary) return;
  const uint32_t family = buffer->pool->family;
  if (family >= 32 || timer.valid_bits[family] == 0) {
    untimed("counts", "one of its queues has no timestamps");
    return;
  }
  stamps.on = true;
  stamp(buffer);
}

uint32_t enter_group(CommandBuffer* buffer) {
  Stamps& stamps = buffer->recording->stamps;
  if (!stamps.on) return WEIR_NO_GROUP;
  if (!stamps.group_open) {
    stamp(buffer);
    stamps.group_open = true;
    ++stamps.groups;
  }
  return stamps.groups - 1;
}

void close_group(CommandBuffer* buffer) {
  Stamps& stamps = buffer->recording->stamps;
  if (!stamps.group_open) return;
  stamps.group_open = false;
  stamp(buffer);
}

void end_stamps(CommandBuffer* buffer) {
  close_group(buffer);
  stamp(buffer);
}

void serialize(CommandBuffer* buffer) {
  const Timer& timer = buffer->device->timer;
  if (timer.mode != Timing::serialized || !buffer->recording->stamps.group_open) return;
  close_group(buffer);
  buffer->device->next.CmdPipelineBarrier(buffer->handle, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                                          VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 0, 0, nullptr, 0,
                                          nullptr, 0, nullptr);
}

void retire_stamps(CommandBuffer* buffer) {
  Timer& timer = buffer->device->timer;
  Stamps& stamps = buffer->recording->stamps;
  if (timer.mode == Timing::off || !__atomic_load_n(&stamps.in_flight, __ATOMIC_ACQUIRE)) return;
  const Locked locked(&timer.lock);
  if (stamps.in_flight) {
    // Where they could not be read now, they may stand there still when the queries are used again.
    stamps.unsure = !harvest(buffer->device, &stamps);
    unlink_flight(&timer, buffer);
  }
}

void free_stamps(CommandBuffer* buffer) {
  retire_stamps(buffer);
  Timer& timer = buffer->device->timer;
  Stamps& stamps = buffer->recording->stamps;
  if (stamps.chunks == nullptr) return;
  const Locked locked(&timer.lock);
  QueryChunk* last = stamps.chunks;
  while (last->next != nullptr) last = last->next;
  last->next = timer.free_chunks;
  timer.free_chunks = stamps.chunks;
  stamps.chunks = nullptr;
}

void note_flight(CommandBuffer* buffer, Queue* queue, uint64_t serial, uint32_t order) {
  Timer& timer = buffer->device->timer;
  Stamps& stamps = buffer->recording->stamps;
  if (!stamps.on || timer.mode == Timing::off) return;
  const Locked locked(&timer.lock);
  if (stamps.in_flight) {
    // Submitted again before the program learned that it was done.
    if (stamps.unsure || !harvest(buffer->device, &stamps)) stamps.unsure = true;
    unlink_flight(&timer, buffer);
  }
  stamps.serial = serial;
  stamps.order = order;
  stamps.queue = queue;
  stamps.in_flight = true;
  *timer.last = buffer;
  timer.last = &stamps.next_in_flight;
}

void forget_flight(CommandBuffer* buffer, uint64_t serial) {
  Timer& timer = buffer->device->timer;
  if (timer.mode == Timing::off) return;
  const Locked locked(&timer.lock);
  if (buffer->recording->stamps.serial == serial) unlink_flight(&timer, buffer);
}

void read_times(Device* device, Queue* queue, bool idle) {
  Timer& timer = device->timer;
  if (timer.mode == Timing::off) return;
  const Locked locked(&timer.lock);
  CommandBuffer* next = nullptr;
  for (CommandBuffer* at = timer.in_flight; at != nullptr; at = next) {
    Stamps& stamps = at->recording->stamps;
    next = stamps.next_in_flight;
    if (queue != nullptr && stamps.queue != queue) continue;
    if (stamps.unsure && !idle) continue;
    // In the order of submission: what is not done yet has nothing done behind it.
    if (!harvest(device, &stamps) && !idle) {
      if (queue != nullptr) break;
      continue;
    }
    if (idle) stamps.unsure = false;
    unlink_flight(&timer, at);
  }
  if (timer.calibrated && now_nanoseconds() - timer.last_calibration > k_calibrate_every) {
    calibrate(device);
  }
}

}  // namespace weir_probe
