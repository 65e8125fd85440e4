// What a command buffer keeps: the few commands that have an effect which the host can see.
#pragma once

#include "gate/probes/twin/state.h"

namespace weir_twin {

enum OpKind : uint32_t {
  k_copy,           // first: source, second: target; x, y: offsets, z: bytes
  k_fill,           // second: target; y: offset, z: bytes, number: the word
  k_update,         // second: target; y: offset, z: bytes, data
  k_set_event,      // first: event
  k_reset_event,    // first: event
  k_wait_event,     // first: event
  k_reset_queries,  // first: pool; x, y: first and how many
  k_end_query,      // first: pool; x: which
  k_write_time,     // first: pool; x: which
  k_copy_queries,   // first: pool, second: target; x, number: first and how many; y: offset,
                    // z: stride, flags
};

struct Op {
  OpKind kind;
  uint32_t number, flags;
  void *first, *second;
  uint64_t x, y, z;
  void* data;  // of malloc, the op's own
};

struct CommandPool;
struct CommandBuffer {
  VK_LOADER_DATA loader;
  CommandPool* pool;
  CommandBuffer *previous, *next;
  Op* ops;
  uint32_t count, capacity;
  bool out_of_memory;
};
struct CommandPool {
  Device* device;
  CommandBuffer* first;
};

// What a query's result looks like in memory: its values, then whether it is there.
void write_query(const QueryPool& pool, const Query& query, VkQueryResultFlags flags, uint8_t* out);
uint64_t size_of_query(const QueryPool& pool, VkQueryResultFlags flags);

}  // namespace weir_twin
