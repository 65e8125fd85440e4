// Device times: writes timestamps into command buffers, and reads them once the program knows that
// the work is done.
#include <string.h>

#include "gate/probes/inject/vulkan/hooks.h"

namespace weir_probe {
namespace {

constexpr uint64_t k_calibrate_every = 250000000;  // nanoseconds

uint64_t bit_mask(uint32_t bits) { return bits >= 64 ? UINT64_MAX : (uint64_t{1} << bits) - 1; }

// Writes an event that relates the device's ticks to the CPU's clock, as far as the device can.
void calibrate(Device* device) {
  Timer& timer = device->timer;
  weir_event_clock clock = {};
  clock.tick_seconds = timer.tick_seconds;
  clock.source = WEIR_CLOCK_NONE;
  for (const uint32_t bits : timer.valid_bits) {
    if (bits != 0 && (clock.valid_bits == 0 || bits < clock.valid_bits)) clock.valid_bits = bits;
  }
  if (timer.calibrated) {
    VkCalibratedTimestampInfoEXT infos[2] = {};
    infos[0].sType = infos[1].sType = VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT;
    infos[0].timeDomain = VK_TIME_DOMAIN_DEVICE_EXT;
    infos[1].timeDomain = VK_TIME_DOMAIN_CLOCK_MONOTONIC_EXT;
    uint64_t times[2] = {};
    uint64_t deviation = 0;
    if (timer.calibrate(device->handle, 2, infos, times, &deviation) == VK_SUCCESS) {
      clock.ticks = times[0];
      clock.cpu = times[1];
      clock.deviation = deviation;
      clock.source = WEIR_CLOCK_CALIBRATED;
    }
  }
  timer.last_calibration = now_nanoseconds();
  write_event(WEIR_EVENT_CLOCK, device->index, &clock, sizeof clock);
}

// Returns a chunk of queries for timestamps, a free one or a new one; null when there is none to
// be had. `may_be_stale`: it may still hold another buffer's times.
QueryChunk* get_query_chunk(Device* device, bool* may_be_stale) {
  Timer& timer = device->timer;
  pthread_mutex_lock(&timer.lock);
  QueryChunk* chunk = timer.free_chunks;
  if (chunk != nullptr) timer.free_chunks = chunk->next;
  pthread_mutex_unlock(&timer.lock);
  if (chunk != nullptr) {
    chunk->next = nullptr;
    *may_be_stale = true;
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

// Adds a timestamp to the command buffer, which is taken when all earlier commands in it are done.
// Without memory the recording gets no more times.
void write_timestamp(CommandBuffer* buffer) {
  Stamps& stamps = buffer->recording->stamps;
  if (!stamps.enabled) return;
  const uint32_t query = stamps.queries % k_chunk_queries;
  QueryChunk** link = &stamps.chunks;
  for (uint32_t i = stamps.queries / k_chunk_queries; i > 0; --i) link = &(*link)->next;
  if (query == 0) {
    if (*link == nullptr) {
      *link = get_query_chunk(buffer->device, &stamps.may_be_stale);
    }
    if (*link == nullptr) {
      stamps.enabled = false;
      report_untimed("counts", "there is no memory for timestamps");
      return;
    }
    buffer->device->next.CmdResetQueryPool(buffer->handle, (*link)->pool, 0, k_chunk_queries);
  }
  buffer->device->next.CmdWriteTimestamp(buffer->handle, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT,
                                         (*link)->pool, query);
  ++stamps.queries;
}

// Returns all times of a command buffer, in ticks, for the caller to free. Null when some are not
// available yet.
uint64_t* read_timestamps(Device* device, const Stamps& stamps) {
  uint64_t* ticks = static_cast<uint64_t*>(malloc(stamps.queries * sizeof(uint64_t)));
  if (ticks == nullptr) return nullptr;
  uint32_t count = 0;
  for (const QueryChunk* chunk = stamps.chunks; chunk != nullptr && count < stamps.queries;
       chunk = chunk->next) {
    const uint32_t remaining = stamps.queries - count;
    const uint32_t in_chunk = remaining < k_chunk_queries ? remaining : k_chunk_queries;
    if (device->next.GetQueryPoolResults(device->handle, chunk->pool, 0, in_chunk,
                                         in_chunk * sizeof(uint64_t), ticks + count,
                                         sizeof(uint64_t), VK_QUERY_RESULT_64_BIT) != VK_SUCCESS) {
      free(ticks);
      return nullptr;
    }
    count += in_chunk;
  }
  return ticks;
}

// Reads the times of a buffer's last submission and writes them as an event. False if they are not
// available yet. Needs the timer's lock. Times of an earlier submission may still be there: they
// lie before the begin, or were read already.
bool collect_times(Device* device, Stamps* stamps) {
  uint64_t* ticks = read_timestamps(device, *stamps);
  if (ticks == nullptr) return false;
  const uint64_t mask = bit_mask(device->timer.valid_bits[stamps->queue->family]);
  bool is_fresh = stamps->last_begin == 0 || ticks[0] != stamps->last_begin;
  for (uint32_t i = 1; i < stamps->queries; ++i) {
    // A time before the begin shows as a very long step forward.
    if (((ticks[i] - ticks[0]) & mask) > mask / 2) is_fresh = false;
  }
  if (is_fresh) {
    write_times(queue_index(stamps->queue), stamps->serial, stamps->order, ticks[0],
                ticks[stamps->queries - 1], ticks + 1, stamps->groups);
    stamps->last_begin = ticks[0];
  }
  free(ticks);
  return is_fresh;
}

// Removes `buffer` from the list of buffers in flight. Under the timer's lock.
void remove_in_flight(Timer* timer, CommandBuffer* buffer) {
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
  VkExtensionProperties* extensions = list_extensions(functions.extensions, physical, &count);
  bool has_it = false;
  for (uint32_t i = 0; extensions != nullptr && i < count && !has_it; ++i) {
    has_it = strcmp(extensions[i].extensionName, name) == 0;
  }
  free(extensions);
  return has_it;
}

}  // namespace

// Returns true if times are requested and the device can relate its ticks to the CPU's
// CLOCK_MONOTONIC.
bool can_calibrate(const ClassFunctions& functions, VkPhysicalDevice physical) {
  if (functions.time_domains == nullptr || timing_wanted() == Timing::off ||
      !has_extension(functions, physical, VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME)) {
    return false;
  }
  VkTimeDomainEXT domains[16];
  uint32_t count = 16;
  if (functions.time_domains(physical, &count, domains) < 0) return false;
  bool has_device = false;
  bool has_monotonic = false;
  for (uint32_t i = 0; i < count; ++i) {
    has_device = has_device || domains[i] == VK_TIME_DOMAIN_DEVICE_EXT;
    has_monotonic = has_monotonic || domains[i] == VK_TIME_DOMAIN_CLOCK_MONOTONIC_EXT;
  }
  return has_device && has_monotonic;
}

// Sets up timestamps of a new device if they are requested, and relates its clock to the CPU's.
// Reports it if the device has no timestamps.
void start_timer(Device* device, const ClassFunctions& functions, VkPhysicalDevice physical,
                 bool calibrated) {
  Timer& timer = device->timer;
  timer.last = &timer.in_flight;
  const Timing mode = is_recording_events() ? timing_wanted() : Timing::off;
  if (mode == Timing::off) return;
  VkPhysicalDeviceProperties properties = {};
  if (functions.properties != nullptr) functions.properties(physical, &properties);
  bool has_timestamps = false;
  for (uint32_t i = 0; i < 32; ++i) {
    // Queries can only be reset where work can be computed or drawn.
    const VkQueueFamilyProperties& family = device->families[i];
    if ((family.queueFlags & (VK_QUEUE_COMPUTE_BIT | VK_QUEUE_GRAPHICS_BIT)) == 0) continue;
    timer.valid_bits[i] = family.timestampValidBits;
    has_timestamps = has_timestamps || family.timestampValidBits != 0;
  }
  if (!has_timestamps || properties.limits.timestampPeriod <= 0 ||
      device->next.CreateQueryPool == nullptr || device->next.GetQueryPoolResults == nullptr ||
      device->next.CmdWriteTimestamp == nullptr) {
    report_untimed("counts", "the device has no timestamps");
    return;
  }
  pthread_mutex_init(&timer.lock, nullptr);
  timer.tick_seconds = static_cast<double>(properties.limits.timestampPeriod) * 1e-9;
  timer.calibrate = reinterpret_cast<PFN_vkGetCalibratedTimestampsEXT>(
      calibrated ? device->get(device->handle, "vkGetCalibratedTimestampsEXT") : nullptr);
  timer.calibrated = timer.calibrate != nullptr;
  timer.mode = mode;
  calibrate(device);
}

// Reads the times of a device that are still to come, and destroys its query pools.
void stop_timer(Device* device) {
  Timer& timer = device->timer;
  if (timer.mode == Timing::off) return;
  read_times(device, nullptr, /*idle=*/true);
  if (timer.calibrated) calibrate(device);
  // Also the stamps of command buffers that the program did not free.
  device->pools.each([](void* pool) {
    for (CommandBuffer* buffer = static_cast<CommandPool*>(pool)->first; buffer != nullptr;
         buffer = buffer->next) {
      if (buffer->recording != nullptr) free_stamps(buffer);
    }
  });
  while (timer.free_chunks != nullptr) {
    QueryChunk* next = timer.free_chunks->next;
    device->next.DestroyQueryPool(device->handle, timer.free_chunks->pool, nullptr);
    free(timer.free_chunks);
    timer.free_chunks = next;
  }
}

// Writes the first timestamp of a recording, if its queue family has timestamps.
void write_first_timestamp(CommandBuffer* buffer) {
  Stamps& stamps = buffer->recording->stamps;
  const Timer& timer = buffer->device->timer;
  stamps.queries = 0;
  stamps.groups = 0;
  stamps.group_open = false;
  stamps.enabled = false;
  if (timer.mode == Timing::off || buffer->secondary) return;
  const uint32_t family = buffer->pool->family;
  if (family >= 32 || timer.valid_bits[family] == 0) {
    report_untimed("counts", "one of its queues has no timestamps");
    return;
  }
  stamps.enabled = true;
  write_timestamp(buffer);
}

uint32_t enter_group(CommandBuffer* buffer) {
  Stamps& stamps = buffer->recording->stamps;
  if (!stamps.enabled) return WEIR_NO_GROUP;
  if (!stamps.group_open) {
    write_timestamp(buffer);
    stamps.group_open = true;
    ++stamps.groups;
  }
  return stamps.groups - 1;
}

void close_group(CommandBuffer* buffer) {
  Stamps& stamps = buffer->recording->stamps;
  if (!stamps.group_open) return;
  stamps.group_open = false;
  write_timestamp(buffer);
}

void end_stamps(CommandBuffer* buffer) {
  close_group(buffer);
  write_timestamp(buffer);
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
    // Times that could not be read now may still be there when the queries are used again.
    stamps.may_be_stale = !collect_times(buffer->device, &stamps);
    remove_in_flight(&timer, buffer);
  }
}

// Reads the buffer's times if they are available, and gives its chunks of queries back to the
// device.
void free_stamps(CommandBuffer* buffer) {
  retire_stamps(buffer);
  Timer& timer = buffer->device->timer;
  Stamps& stamps = buffer->recording->stamps;
  if (stamps.chunks == nullptr) return;
  const Locked locked(&timer.lock);
  QueryChunk* last_chunk = stamps.chunks;
  while (last_chunk->next != nullptr) last_chunk = last_chunk->next;
  last_chunk->next = timer.free_chunks;
  timer.free_chunks = stamps.chunks;
  stamps.chunks = nullptr;
}

// Adds a buffer that is about to be submitted to the list of those whose times are to be read. Its
// times from before are read first, if it is still in the list.
void add_in_flight(CommandBuffer* buffer, Queue* queue, uint64_t serial, uint32_t order) {
  Timer& timer = buffer->device->timer;
  Stamps& stamps = buffer->recording->stamps;
  if (!stamps.enabled || timer.mode == Timing::off) return;
  const Locked locked(&timer.lock);
  if (stamps.in_flight) {
    // Submitted again before the program learned that it was done.
    if (stamps.may_be_stale || !collect_times(buffer->device, &stamps)) stamps.may_be_stale = true;
    remove_in_flight(&timer, buffer);
  }
  stamps.serial = serial;
  stamps.order = order;
  stamps.queue = queue;
  stamps.in_flight = true;
  *timer.last = buffer;
  timer.last = &stamps.next_in_flight;
}

void cancel_in_flight(CommandBuffer* buffer, uint64_t serial) {
  Timer& timer = buffer->device->timer;
  if (timer.mode == Timing::off) return;
  const Locked locked(&timer.lock);
  if (buffer->recording->stamps.serial == serial) remove_in_flight(&timer, buffer);
}

// Reads the times of `queue`'s finished buffers (null: of all queues). `is_idle`: all work is
// known to be done. Relates the clocks again when it is due.
void read_times(Device* device, Queue* queue, bool is_idle) {
  Timer& timer = device->timer;
  if (timer.mode == Timing::off) return;
  const Locked locked(&timer.lock);
  CommandBuffer* next = nullptr;
  for (CommandBuffer* buffer = timer.in_flight; buffer != nullptr; buffer = next) {
    Stamps& stamps = buffer->recording->stamps;
    next = stamps.next_in_flight;
    if (queue != nullptr && stamps.queue != queue) continue;
    if (stamps.may_be_stale && !is_idle) continue;
    // In order of submission: buffers behind an unfinished one are not done either.
    if (!collect_times(device, &stamps) && !is_idle) {
      if (queue != nullptr) break;
      continue;
    }
    if (is_idle) stamps.may_be_stale = false;
    remove_in_flight(&timer, buffer);
  }
  if (timer.calibrated && now_nanoseconds() - timer.last_calibration > k_calibrate_every) {
    calibrate(device);
  }
}

}  // namespace weir_probe
