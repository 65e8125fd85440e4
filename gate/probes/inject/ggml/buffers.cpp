// Memory by what it is for: weights, caches, intermediate results.
//
// A buffer's use is known once ggml says so. Of those of which it never does, caches are told by
// the name of their first tensor: llama.cpp's are cache_k_l0, cache_v_l0, cache_r_l0, …
#include <stdio.h>
#include <string.h>

#include "gate/probes/inject/ggml/state.h"
#include "gate/probes/table.h"

namespace weir_probe {
namespace {

enum Use : int { k_any, k_weights, k_compute, k_kv_cache, k_uses };  // the first three are ggml's
constexpr const char* k_use_names[k_uses] = {"any", "weights", "compute", "kv_cache"};
constexpr Counter k_totals[k_uses] = {k_counters, k_weights_bytes, k_compute_bytes,
                                      k_kv_cache_bytes};

// Of one use in one kind of memory.
struct Share {
  Share* next;
  BufferType* memory;
  Use use;
  Level level;
  uint64_t* counter;  // null: the file has no room for its name
};
struct Held {
  uint64_t bytes;
  Share* share;  // null: of no known use
};

Table g_held;  // Buffer -> Held
Share* g_shares;
Level g_levels[k_uses];

// "weights_in_vulkan0_bytes". Under g.lock, as are the next two.
uint64_t* counter_of(const char* memory, Use use) {
  const weir_probe_section* section = section_of(&g.file, WEIR_SECTION_COUNTERS);
  if (section->used >= section->capacity) return nullptr;
  char name[sizeof(weir_probe_named_counter::name)];
  snprintf(name, sizeof name, "%s_in_%.12s_bytes", k_use_names[use], memory);
  for (char* c = name; *c != '\0'; ++c) {
    if (*c >= 'A' && *c <= 'Z') *c = static_cast<char>(*c - 'A' + 'a');
    if ((*c < 'a' || *c > 'z') && (*c < '0' || *c > '9')) *c = '_';
  }
  return add_counter(&g.file, name);
}

Share* share_of(const Functions& ggml, BufferType* memory, Use use) {
  Share* share = g_shares;
  while (share != nullptr && (share->memory != memory || share->use != use)) share = share->next;
  if (share != nullptr) return share;
  share = static_cast<Share*>(calloc(1, sizeof(Share)));
  if (share == nullptr) return nullptr;
  const char* name = name_of(ggml, memory);
  *share = {g_shares, memory, use, {}, counter_of(name == nullptr ? "unknown" : name, use)};
  return g_shares = share;
}

void let_go(Held* held) {
  if (held->share == nullptr) return;
  held->share->level.fall(held->bytes);
  g_levels[held->share->use].fall(held->bytes);
  held->share = nullptr;
}

}  // namespace

void buffer_is_for(Library* library, Buffer* buffer, int use) {
  if (buffer == nullptr || use <= k_any || use >= k_uses) return;
  const Functions& ggml = library->ggml;
  // Those that it is made of are told one by one.
  if (ask(ggml.backend_buffer_is_multi_buffer, buffer) ||
      ask(ggml.backend_buffer_is_meta, buffer)) {
    return;
  }
  const uint64_t bytes = ask(ggml.backend_buffer_get_size, buffer);
  BufferType* memory = ask(ggml.backend_buffer_get_type, buffer);
  const Locked locked(&g.lock);
  auto* held = known_or_fresh<Held>(&g_held, reinterpret_cast<uint64_t>(buffer));
  if (held == nullptr) return set_flag(&g.file, WEIR_PROBE_OUT_OF_MEMORY);
  let_go(held);
  *held = {bytes, share_of(ggml, memory, static_cast<Use>(use))};
  if (held->share == nullptr) return;
  count(k_totals[use], g_levels[use].rise(bytes));
  const uint64_t more = held->share->level.rise(bytes);
  if (held->share->counter != nullptr) add(held->share->counter, more);
}

void tensor_lies_in(Library* library, Buffer* buffer, const Tensor* tensor) {
  const char* name = ask(library->ggml.get_name, tensor);
  if (name == nullptr || strncmp(name, "cache_", 6) != 0) return;
  if (g_held.find(reinterpret_cast<uint64_t>(buffer)) == nullptr) {
    buffer_is_for(library, buffer, k_kv_cache);
  }
}

void buffer_ends(Buffer* buffer) {
  const Locked locked(&g.lock);
  auto* held = static_cast<Held*>(g_held.remove(reinterpret_cast<uint64_t>(buffer)));
  if (held == nullptr) return;
  let_go(held);
  free(held);
}

}  // namespace weir_probe
