// Device times: timestamps of the layer's own in the program's command buffers.
//
// What lies between two barriers may overlap and is one group with two timestamps; every buffer has
// one at its begin and one at its end. They are read when the program itself has learned that the
// work is done: the layer waits for nothing. Queries are reset inside the buffer, so that it can be
// submitted again and no feature has to be switched on.
#pragma once

#include <pthread.h>
#include <stdint.h>
#include <vulkan/vulkan.h>

#include "gate/probes/inject/writer/events.h"

namespace weir_probe {

struct CommandBuffer;
struct Device;
struct Queue;

constexpr uint32_t k_chunk_queries = 256;

// A piece of a recording's queries.
struct QueryChunk {
  VkQueryPool pool;
  QueryChunk* next;
};

// The timestamps of one command buffer. Query 0 is its begin, then two for each group, then its
// end.
struct Stamps {
  bool on;          // this recording is timed
  bool group_open;  // work was recorded since the last barrier
  uint32_t groups;
  uint32_t queries;  // used, in all chunks together
  QueryChunk* chunks;
  // The submission whose times have not been read yet.
  bool in_flight;  // atomic; changed under the timer's lock
  bool unsure;  // older times may still stand in the queries: only to be read when all work is done
  uint64_t serial;
  uint32_t order;
  Queue* queue;
  CommandBuffer* next_in_flight;
  uint64_t last_begin;  // ticks, of the submission read last; 0: none
};

// A device's part in it.
struct Timer {
  Timing mode;  // off: nothing below is set
  pthread_mutex_t lock;
  double tick_seconds;
  uint32_t valid_bits[32];  // by queue family
  bool calibrated;
  uint64_t last_calibration;  // CPU nanoseconds
  QueryChunk* free_chunks;
  CommandBuffer* in_flight;  // oldest first
  CommandBuffer** last;
  PFN_vkCreateQueryPool CreateQueryPool;
  PFN_vkDestroyQueryPool DestroyQueryPool;
  PFN_vkGetQueryPoolResults GetQueryPoolResults;
  PFN_vkCmdResetQueryPool CmdResetQueryPool;
  PFN_vkCmdWriteTimestamp CmdWriteTimestamp;
  PFN_vkCmdPipelineBarrier CmdPipelineBarrier;
  PFN_vkGetCalibratedTimestampsEXT GetCalibratedTimestamps;
};

// Whether `physical` can tie its ticks to CLOCK_MONOTONIC; then the device is to be made with
// VK_EXT_calibrated_timestamps.
[[nodiscard]] bool can_calibrate(VkInstance instance, PFN_vkGetInstanceProcAddr get,
                                 VkPhysicalDevice physical);
void start_timer(Device* device, VkInstance instance, PFN_vkGetInstanceProcAddr get,
                 VkPhysicalDevice physical, bool calibrated);
// Reads what is left, gives the queries back. Before the device goes.
void stop_timer(Device* device);

// Of a recording. The group that the next command is part of, or WEIR_NO_GROUP.
void begin_stamps(CommandBuffer* buffer);
uint32_t enter_group(CommandBuffer* buffer);
void close_group(CommandBuffer* buffer);
void end_stamps(CommandBuffer* buffer);
// In serialized timing: nothing that comes later starts before this.
void serialize(CommandBuffer* buffer);
// The buffer's times are read if they are there, its queries are free again. It is not pending.
void retire_stamps(CommandBuffer* buffer);
void free_stamps(CommandBuffer* buffer);

// A submission of `buffer` is about to go down; it failed; the program learned that work is done on
// `queue` (or on all of them, when null; `idle`: all of its work).
void note_flight(CommandBuffer* buffer, Queue* queue, uint64_t serial, uint32_t order);
void forget_flight(CommandBuffer* buffer, uint64_t serial);
void read_times(Device* device, Queue* queue, bool idle);

}  // namespace weir_probe
