// Bytes that ggml is asked to move: how many, from which kind of memory to which.
#include <stdio.h>
#include <string.h>

#include "gate/probes/inject/ggml/state.h"
#include "gate/probes/table.h"

namespace weir_probe {
namespace {

constexpr const char* k_program = "program";

Table g_entries;  // hash of (kind, from, to) -> entry of the file

BufferType* memory_of(Library* library, const Tensor* tensor) {
  if (!readable(library, tensor) || library->ggml.backend_buffer_get_type == nullptr)
    return nullptr;
  Buffer* buffer = TensorView(tensor).buffer();
  return buffer == nullptr ? nullptr : library->ggml.backend_buffer_get_type(buffer);
}

void name_memory(Library* library, BufferType* memory, char (&out)[48]) {
  const char* name = memory == nullptr || library->ggml.backend_buft_name == nullptr
                         ? nullptr
                         : library->ggml.backend_buft_name(memory);
  copy_text(out, sizeof out, name == nullptr ? "" : name);
}

weir_probe_transfer* make_entry(const weir_probe_transfer& wanted) {
  weir_probe_section* section = section_of(&g.file, WEIR_SECTION_TRANSFERS);
  for (uint32_t i = 0; i < section->used; ++i) {
    weir_probe_transfer& known = g.file.transfers[i];
    if (known.kind == wanted.kind && strcmp(known.from, wanted.from) == 0 &&
        strcmp(known.to, wanted.to) == 0) {
      return &known;
    }
  }
  if (section->used == section->capacity) {
    set_flag(&g.file, WEIR_PROBE_TRANSFERS_OVERFLOWED);
    return &g.file.transfers[section->capacity - 1];
  }
  weir_probe_transfer* made = &g.file.transfers[section->used];
  *made = wanted;
  raise_used(section);
  return made;
}

// Kinds of memory are static objects of their backends: their addresses tell them apart. That two
// triples share 64 bits of a hash is left to chance.
weir_probe_transfer* record(Library* library, uint32_t kind, BufferType* from, BufferType* to,
                            uint64_t bytes) {
  const uint64_t key = reinterpret_cast<uint64_t>(from) * 0x9e3779b97f4a7c15ULL +
                       reinterpret_cast<uint64_t>(to) * 0xd6e8feb86659fd93ULL + kind;
  auto* entry = static_cast<weir_probe_transfer*>(g_entries.find(key));
  if (entry == nullptr) {
    weir_probe_transfer wanted;
    memset(&wanted, 0, sizeof wanted);
    wanted.kind = kind;
    name_memory(library, from, wanted.from);
    name_memory(library, to, wanted.to);
    if (kind == WEIR_TRANSFER_SET || kind == WEIR_TRANSFER_FILL) {
      copy_text(wanted.from, sizeof wanted.from, k_program);
    }
    if (kind == WEIR_TRANSFER_GET) copy_text(wanted.to, sizeof wanted.to, k_program);
    pthread_mutex_lock(&g.lock);
    entry = make_entry(wanted);
    pthread_mutex_unlock(&g.lock);
    g_entries.insert(key, entry);
  }
  add(&entry->calls, 1);
  add(&entry->bytes, bytes);
  return entry;
}

}  // namespace

weir_probe_transfer* record_copy(Library* library, const Tensor* from, const Tensor* to) {
  const uint64_t bytes = library->ggml.nbytes == nullptr ? 0 : library->ggml.nbytes(from);
  count(k_tensor_copies);
  count(k_copied_bytes, bytes);
  return record(library, WEIR_TRANSFER_COPY, memory_of(library, from), memory_of(library, to),
                bytes);
}

weir_probe_transfer* record_set(Library* library, const Tensor* to, uint64_t bytes) {
  count(k_tensor_sets);
  if (t_in_copy != nullptr) return nullptr;  // the copy has been told
  // While a graph is computed it is ggml that moves: experts, one by one.
  if (t_in_graph != nullptr) count(k_copied_bytes, bytes);
  return record(library, WEIR_TRANSFER_SET, nullptr, memory_of(library, to), bytes);
}

weir_probe_transfer* record_get(Library* library, const Tensor* from, uint64_t bytes) {
  count(k_tensor_gets);
  if (t_in_copy != nullptr) return nullptr;
  if (t_in_graph != nullptr) count(k_copied_bytes, bytes);
  return record(library, WEIR_TRANSFER_GET, memory_of(library, from), nullptr, bytes);
}

weir_probe_transfer* record_fill(Library* library, const Tensor* to, uint64_t bytes) {
  return record(library, WEIR_TRANSFER_FILL, nullptr, memory_of(library, to), bytes);
}

void reset_transfer_locks_after_fork() { g_entries.unlock_after_fork(); }

}  // namespace weir_probe
