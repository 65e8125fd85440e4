// Threads' own records and the maps in them; devices and queues; what a fork leaves behind.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/probes/instrument/state.h"

namespace weir_probe {

constinit Globals g;
__thread Thread* t_thread WEIR_INITIAL_EXEC = nullptr;

namespace {

constexpr uint64_t k_queue_salt = 1, k_name_salt = 6;
constexpr uint32_t k_most_names = 1U << 13;  // of a thread
constexpr const char* k_probe = "instrument";

// What a thread without memory for a record of its own counts in: nothing.
constinit Thread g_nobody = {};

// 4096 kernels in 1 MiB, 4096 ops in 2.4: with the rest below what file.cpp can always give.
constexpr Capacity k_capacity{k_most_devices, k_most_queues* k_most_slots, 2048, 8, k_most_kinds,
                              k_most_graphs};

void in_child() {
  detach_events_after_fork();
  if (!g.attached) clear_counts(&g.file);
  forget_ops_after_fork();
  forget_op_times();
  forget_buffers();
  reset_buffers();
  for (Clock& clock : g.clocks) {
    clock.told = clock.used = false;
    clock.told_tick = 0;
  }
  __atomic_add_fetch(&g.generation, 1, __ATOMIC_RELAXED);
}

// Records of the process that this one was forked from are left alone: their threads may have been
// in the middle of a mark.
bool is_gone(const Thread* thread) {
  return thread->generation == g.generation && thread_is_gone(thread->number);
}

// A record of a thread that is gone, or a fresh one. Under the lock.
Thread* adopt() {
  uint32_t count = 0;
  for (Thread* at = g.threads; at != nullptr; at = at->next, ++count) {
    if (!is_gone(at)) continue;
    (void)__atomic_load_n(&at->left, __ATOMIC_ACQUIRE);  // all that it did before
    return at;
  }
  Thread* thread = static_cast<Thread*>(calloc(1, sizeof(Thread)));
  if (thread == nullptr) return nullptr;
  thread->slot = count < k_most_slots ? count : k_most_slots - 1;
  thread->last = &thread->first;
  thread->next = g.threads;
  __atomic_store_n(&g.threads, thread, __ATOMIC_RELEASE);
  return thread;
}

}  // namespace

const Name* stored_name(Thread* thread, uint64_t hash, const char* text) {
  const uint64_t key = mix(k_name_salt, hash);
  auto* known = thread->rows.get<Name>(key);
  if (known != nullptr) return known;
  if (is_nobody(thread) || thread->rows.live() >= k_most_names) return nullptr;
  const KeepErrno keep;
  auto* name = static_cast<Name*>(calloc(1, sizeof(Name)));
  if (name == nullptr) return nullptr;
  name->hash = hash;
  if (!copy_text(name->text, sizeof name->text, text) || !thread->rows.insert(key, name)) {
    free(name);  // too long to be told by its text
    return nullptr;
  }
  return name;
}

uint64_t hash_text(const char* text, uint64_t salt) {
  if (text == nullptr) text = "";
  return hash_bytes(k_hash_seed ^ salt, text, strlen(text));
}

bool is_nobody(const Thread* thread) { return thread == &g_nobody; }

void ensure_file() {
  if (is_ready(g)) return;
  const auto open = [] {
    if (g.attached) {
      open_file(&g.file, k_probe, k_capacity);
    } else {
      open_memory(&g.file, k_probe, k_capacity);
    }
    open_events(g.file);
    g.timed = g.timed || events_on();
    g.stamps = begin_stamps(!events_on());
    __atomic_store_n(&g.generation, 1, __ATOMIC_RELAXED);
  };
  make_ready(&g, open, in_child, make_forked_events);
}

Thread* enter() {
  const KeepErrno keep;
  const Locked locked(&g.lock);
  ensure_file();
  Thread* thread = t_thread;
  if (thread == nullptr || thread == &g_nobody) thread = adopt();
  if (thread == nullptr) {
    set_flag(&g.file, WEIR_PROBE_OUT_OF_MEMORY);
    thread = &g_nobody;
    thread->last = &thread->first;
  }
  thread->number = thread_number();
  thread->depth = 0;
  // The last one's of a thread that ended within it; a parent's is gone already.
  if (thread->generation == g.generation) close_buffer(thread);
  thread->buffer = thread->wait_began = 0;
  thread->entries = nullptr;
  thread->generation = g.generation;
  t_thread = thread;
  return thread;
}

uint32_t checked_device(uint32_t device) {
  if (device < __atomic_load_n(&g.device_count, __ATOMIC_ACQUIRE)) return device;
  // Declared nothing: one to count in, which no placement is satisfied with.
  if (__atomic_load_n(&g.device_count, __ATOMIC_ACQUIRE) == 0) {
    weir_device_declare("", "other", "(not declared)", "not-declared");
  }
  weir_warn_once("a mark names a device that was not declared: it counts for the last one");
  return __atomic_load_n(&g.device_count, __ATOMIC_ACQUIRE) - 1;
}

uint32_t checked_queue(uint32_t queue) {
  if (queue < __atomic_load_n(&g.queue_count, __ATOMIC_ACQUIRE)) return queue;
  if (__atomic_load_n(&g.queue_count, __ATOMIC_ACQUIRE) == 0) weir_queue_declare(0);
  weir_warn_once("a mark names a queue that was not declared: it counts for the last one");
  return __atomic_load_n(&g.queue_count, __ATOMIC_ACQUIRE) - 1;
}

void fill_devices() {
  const weir_probe_section* section = section_of(&g.file, WEIR_SECTION_DEVICES);
  while (section->used < g.device_count) add_device(&g.file, g.devices[section->used]);
}

static uint32_t row_of_slot(uint32_t queue, uint32_t slot) {
  Queue& of = g.queues[queue];
  if (of.row_of_slot[slot] == 0) {
    fill_devices();
    const uint32_t row = add_queue(&g.file, of.device, 0, of.index, 0);
    __atomic_store_n(&of.row_of_slot[slot], 1 + row, __ATOMIC_RELEASE);
  }
  return of.row_of_slot[slot] - 1;
}

uint32_t event_queue(uint32_t queue) {
  const uint32_t known = __atomic_load_n(&g.queues[queue].row_of_slot[0], __ATOMIC_ACQUIRE);
  if (__builtin_expect(known != 0, 1)) return known - 1;
  const Locked locked(&g.lock);
  return row_of_slot(queue, 0);
}

weir_probe_queue* row_of(Thread* thread, uint32_t queue) {
  const uint64_t key = mix(k_queue_salt, queue);
  auto* known = thread->rows.get<weir_probe_queue>(key);
  if (__builtin_expect(known != nullptr, 1)) return known;
  queue = checked_queue(queue);
  const Locked locked(&g.lock);
  row_of_slot(queue, 0);
  weir_probe_queue* row = &g.file.queues[row_of_slot(queue, thread->slot)];
  keep(thread, key, row);
  return row;
}

}  // namespace weir_probe

using namespace weir_probe;

WEIR_EXPORTED uint32_t weir_device_declare(const char* api, const char* type, const char* name,
                                           const char* device_class) {
  weir_probe_device device{};
  copy_text(device.api, sizeof device.api, api);
  copy_text(device.type, sizeof device.type, type == nullptr ? "other" : type);
  copy_text(device.name, sizeof device.name, name);
  if (device_class != nullptr && device_class[0] != '\0') {
    copy_text(device.device_class, sizeof device.device_class, device_class);
  } else {
    snprintf(device.device_class, sizeof device.device_class, "%s-%016llx", device.api,
             static_cast<unsigned long long>(hash_text(device.name, 0)));
  }
  const Locked locked(&g.lock);
  uint32_t index = 0;
  // Declared again, it is the same one.
  while (index < g.device_count &&
         (strcmp(g.devices[index].api, device.api) != 0 ||
          strcmp(g.devices[index].name, device.name) != 0 ||
          strcmp(g.devices[index].device_class, device.device_class) != 0)) {
    ++index;
  }
  if (index == k_most_devices) {
    index = k_most_devices - 1;
    tell_flag(&g, WEIR_PROBE_DEVICES_OVERFLOWED);
  } else if (index == g.device_count) {
    g.devices[index] = device;
    __atomic_store_n(&g.device_count, index + 1, __ATOMIC_RELEASE);
  }
  return index;
}

WEIR_EXPORTED uint32_t weir_queue_declare(uint32_t device) {
  device = checked_device(device);
  const Locked locked(&g.lock);
  uint32_t index = g.queue_count;
  if (index == k_most_queues) {
    index = k_most_queues - 1;
    tell_flag(&g, WEIR_PROBE_QUEUES_OVERFLOWED);
  } else {
    uint32_t before = 0;
    for (uint32_t i = 0; i < index; ++i) before += g.queues[i].device == device ? 1 : 0;
    g.queues[index].device = device;
    g.queues[index].index = before;
    __atomic_store_n(&g.queue_count, index + 1, __ATOMIC_RELEASE);
  }
  return index;
}
