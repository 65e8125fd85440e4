// Query pools: timestamps are the clock's, all other queries find 0.
#include <stdlib.h>
#include <string.h>

#include "gate/probes/twin/commands.h"
#include "gate/probes/twin/entries.h"

namespace weir_twin {
namespace {

VKAPI_ATTR VkResult VKAPI_CALL create_query_pool(VkDevice, const VkQueryPoolCreateInfo* info,
                                                 const VkAllocationCallbacks*, VkQueryPool* out) {
  auto* pool = static_cast<QueryPool*>(
      calloc(1, sizeof(QueryPool) + size_t{info->queryCount} * sizeof(Query)));
  if (pool == nullptr) return VK_ERROR_OUT_OF_HOST_MEMORY;
  pool->count = info->queryCount;
  pool->values = 1;
  if (info->queryType == VK_QUERY_TYPE_PIPELINE_STATISTICS) {
    pool->values = static_cast<uint32_t>(__builtin_popcount(info->pipelineStatistics));
  } else if (info->queryType == VK_QUERY_TYPE_TRANSFORM_FEEDBACK_STREAM_EXT) {
    pool->values = 2;
  }
  *out = handle_of<VkQueryPool>(pool);
  return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL destroy_query_pool(VkDevice, VkQueryPool pool,
                                              const VkAllocationCallbacks*) {
  free(object<QueryPool>(pool));
}

VKAPI_ATTR void VKAPI_CALL reset_query_pool(VkDevice handle, VkQueryPool which, uint32_t first,
                                            uint32_t count) {
  auto* device = object<Device>(handle);
  auto* pool = object<QueryPool>(which);
  pthread_mutex_lock(&device->lock);
  for (uint32_t i = 0; i < count && first + i < pool->count; ++i) pool->queries[first + i] = {};
  pthread_mutex_unlock(&device->lock);
}

struct Range {
  const QueryPool* pool;
  uint32_t first, count;
};
bool queries_ready(void* of) {
  const auto* range = static_cast<const Range*>(of);
  for (uint32_t i = 0; i < range->count; ++i) {
    if (!range->pool->queries[range->first + i].available) return false;
  }
  return true;
}

VKAPI_ATTR VkResult VKAPI_CALL get_results(VkDevice handle, VkQueryPool which, uint32_t first,
                                           uint32_t count, size_t size, void* out,
                                           VkDeviceSize stride, VkQueryResultFlags flags) {
  auto* device = object<Device>(handle);
  auto* pool = object<QueryPool>(which);
  if (first >= pool->count) return VK_SUCCESS;
  if (count > pool->count - first) count = pool->count - first;
  Range range{pool, first, count};
  if ((flags & VK_QUERY_RESULT_WAIT_BIT) != 0) {
    wait_until(device, UINT64_MAX, queries_ready, &range);
  }
  pthread_mutex_lock(&device->lock);
  const uint64_t each = size_of_query(*pool, flags);
  for (uint32_t i = 0; i < count && i * stride + each <= size; ++i) {
    write_query(*pool, pool->queries[first + i], flags, static_cast<uint8_t*>(out) + i * stride);
  }
  const bool ready = queries_ready(&range);
  pthread_mutex_unlock(&device->lock);
  return ready ? VK_SUCCESS : VK_NOT_READY;
}

}  // namespace

uint64_t size_of_query(const QueryPool& pool, VkQueryResultFlags flags) {
  const uint64_t each = (flags & VK_QUERY_RESULT_64_BIT) != 0 ? 8 : 4;
  return each * (pool.values + ((flags & VK_QUERY_RESULT_WITH_AVAILABILITY_BIT) != 0 ? 1 : 0));
}

void write_query(const QueryPool& pool, const Query& query, VkQueryResultFlags flags,
                 uint8_t* out) {
  const size_t each = (flags & VK_QUERY_RESULT_64_BIT) != 0 ? 8 : 4;
  const auto put = [&](uint64_t value) {
    memcpy(out, &value, each);  // the lower half comes first on all that this is built for
    out += each;
  };
  if (query.available || (flags & VK_QUERY_RESULT_PARTIAL_BIT) != 0) {
    for (uint32_t i = 0; i < pool.values; ++i) put(query.value);
  } else {
    out += each * pool.values;
  }
  if ((flags & VK_QUERY_RESULT_WITH_AVAILABILITY_BIT) != 0) put(query.available ? 1 : 0);
}

Entries query_entries() {
  static const Entry entries[] = {
      WEIR_TWIN_CORE(0, CreateQueryPool, create_query_pool),
      WEIR_TWIN_CORE(0, DestroyQueryPool, destroy_query_pool),
      WEIR_TWIN_CORE(2, ResetQueryPool, reset_query_pool),
      WEIR_TWIN_EXTENSION("VK_EXT_host_query_reset", ResetQueryPoolEXT, reset_query_pool),
      WEIR_TWIN_CORE(0, GetQueryPoolResults, get_results),
  };
  return all_of(entries);
}

}  // namespace weir_twin
