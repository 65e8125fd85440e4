// Counts memory by use: weights, caches, intermediate results.
//
// ggml tells the use of a buffer, except for caches. They are recognised by the name of their first
// tensor: llama.cpp's are cache_k_l0, cache_v_l0, cache_r_l0, …
#include <stdio.h>
#include <string.h>

#include "gate/probes/inject/ggml/state.h"
#include "gate/probes/table.h"

namespace weir_probe {
namespace {

enum Use : int { k_any, k_weights, k_compute, k_kv_cache, k_uses };  // the first three are ggml's
constexpr const char* k_use_names[k_uses] = {"any", "weights", "compute", "kv_cache"};
constexpr Counter k_use_counters[k_uses] = {k_counters, k_weights_bytes, k_compute_bytes,
                                            k_kv_cache_bytes};

// Bytes of one use in one kind of memory.
struct UseTotal {
  UseTotal* next;
  BufferType* memory;
  Use use;
  Level level;
  uint64_t* counter;  // null: the file has no room for its name
};
struct BufferUse {
  uint64_t bytes;
  UseTotal* total;  // null: use unknown
};

Table g_buffers;  // Buffer -> Held
UseTotal* g_totals;
Level g_levels[k_uses];

// Adds the counter of a use in a kind of memory, such as "weights_in_vulkan0_bytes"; null without
// room. Under g.lock.
uint64_t* add_use_counter(const char* memory, Use use) {
  const weir_probe_section* section = find_section(&g.file, WEIR_SECTION_COUNTERS);
  if (section->used >= section->capacity) return nullptr;
  char name[sizeof(weir_probe_named_counter::name)];
  snprintf(name, sizeof name, "%s_in_%.12s_bytes", k_use_names[use], memory);
  for (char* c = name; *c != '\0'; ++c) {
    if (*c >= 'A' && *c <= 'Z') *c = static_cast<char>(*c - 'A' + 'a');
    if ((*c < 'a' || *c > 'z') && (*c < '0' || *c > '9')) *c = '_';
  }
  return add_counter(&g.file, name);
}

// Returns the total of a use in a kind of memory, adding it if it is new; null when memory is out.
// Under g.lock.
UseTotal* find_or_add_total(const Functions& ggml, BufferType* memory, Use use) {
  UseTotal* total = g_totals;
  while (total != nullptr && (total->memory != memory || total->use != use)) total = total->next;
  if (total != nullptr) return total;
  total = static_cast<UseTotal*>(calloc(1, sizeof(UseTotal)));
  if (total == nullptr) return nullptr;
  const char* name = memory_name(ggml, memory);
  *total = {g_totals, memory, use, {}, add_use_counter(name == nullptr ? "unknown" : name, use)};
  g_totals = total;
  return total;
}

// Subtracts a buffer's bytes from the totals of its use. Under g.lock.
void release(BufferUse* buffer_use) {
  if (buffer_use->total == nullptr) return;
  buffer_use->total->level.fall(buffer_use->bytes);
  g_levels[buffer_use->total->use].fall(buffer_use->bytes);
  buffer_use->total = nullptr;
}

}  // namespace

// Counts a buffer's bytes for `use` (weights, cache, compute), and no longer for an earlier use. A
// buffer that consists of others is ignored, as those are reported one by one.
void note_buffer_use(Library* library, Buffer* buffer, int use) {
  if (buffer == nullptr || use <= k_any || use >= k_uses) return;
  const Functions& ggml = library->ggml;

  if (call_if_present(ggml.backend_buffer_is_multi_buffer, buffer) ||
      call_if_present(ggml.backend_buffer_is_meta, buffer)) {
    return;
  }
  const uint64_t bytes = call_if_present(ggml.backend_buffer_get_size, buffer);
  BufferType* memory = call_if_present(ggml.backend_buffer_get_type, buffer);
  const Locked locked(&g.lock);
  auto* buffer_use = get_or_create<BufferUse>(&g_buffers, reinterpret_cast<uint64_t>(buffer));
  if (buffer_use == nullptr) return set_flag(&g.file, WEIR_PROBE_OUT_OF_MEMORY);
  release(buffer_use);
  *buffer_use = {bytes, find_or_add_total(ggml, memory, static_cast<Use>(use))};
  if (buffer_use->total == nullptr) return;
  count(k_use_counters[use], g_levels[use].rise(bytes));
  const uint64_t increase = buffer_use->total->level.rise(bytes);
  if (buffer_use->total->counter != nullptr) add(buffer_use->total->counter, increase);
}

void note_tensor(Library* library, Buffer* buffer, const Tensor* tensor) {
  const char* name = call_if_present(library->ggml.get_name, tensor);
  if (name == nullptr || strncmp(name, "cache_", 6) != 0) return;
  if (g_buffers.find(reinterpret_cast<uint64_t>(buffer)) == nullptr) {
    note_buffer_use(library, buffer, k_kv_cache);
  }
}

void forget_buffer(Buffer* buffer) {
  const Locked locked(&g.lock);
  auto* buffer_use = static_cast<BufferUse*>(g_buffers.remove(reinterpret_cast<uint64_t>(buffer)));
  if (buffer_use == nullptr) return;
  release(buffer_use);
  free(buffer_use);
}

}  // namespace weir_probe
