// Threads' own records and the maps in them; devices and queues; state after a fork.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/probes/instrument/state.h"

namespace weir_probe {

constinit Globals g;
__thread Thread* t_thread WEIR_INITIAL_EXEC = nullptr;

namespace {

constexpr uint64_t k_queue_salt = 1, k_name_salt = 6;
constexpr uint32_t k_max_names = 1U << 13;  // in a thread
constexpr const char* k_probe = "instrument";

// The shared record of threads without memory for their own. Nothing is stored in it.
constinit Thread g_fallback = {};

// 4096 kernels take 1 MiB, 4096 ops 2.4. All together stay below the size that file.cpp can always
// provide.
constexpr Capacity k_capacity{k_max_devices, k_max_queues* k_max_slots, 2048, 8, k_max_kinds,
                              k_max_graphs};

// Clears, in a forked child, all that it inherited from its parent.
void reset_after_fork() {
  detach_events_after_fork();
  if (!g.is_run_by_weir) clear_counts(&g.file);
  forget_ops_after_fork();
  reset_op_times();
  forget_buffers();
  reset_buffers();
  for (Clock& clock : g.clocks) {
    clock.is_reported = false;
    clock.used = false;
    clock.reported_tick = 0;
  }
  __atomic_add_fetch(&g.generation, 1, __ATOMIC_RELAXED);
}

// Returns true if the record's thread has ended. Records of a parent process don't count: their
// threads may have been in the middle of a mark.
bool is_gone(const Thread* thread) {
  return thread->generation == g.generation && thread_is_gone(thread->number);
}

// Returns the record of a thread that has ended, or a new one; null without memory. Needs the
// lock.
Thread* acquire_thread() {
  uint32_t count = 0;
  for (Thread* old = g.threads; old != nullptr; old = old->next) {
    if (is_gone(old)) {
      (void)__atomic_load_n(&old->published, __ATOMIC_ACQUIRE);  // see all that it wrote
      return old;
    }
    ++count;
  }
  Thread* thread = static_cast<Thread*>(calloc(1, sizeof(Thread)));
  if (thread == nullptr) return nullptr;
  thread->slot = count < k_max_slots ? count : k_max_slots - 1;
  thread->last = &thread->first;
  thread->next = g.threads;
  __atomic_store_n(&g.threads, thread, __ATOMIC_RELEASE);
  return thread;
}

}  // namespace

// Returns the thread's copy of a name, by its hash, making one if it is new. Null without room, or
// for a text that is too long.
const Name* intern_name(Thread* thread, uint64_t hash, const char* text) {
  const uint64_t key = mix(k_name_salt, hash);
  if (const auto* stored = thread->rows.get<Name>(key)) return stored;
  if (is_fallback(thread) || thread->rows.live() >= k_max_names) return nullptr;
  const KeepErrno keep;
  auto* name = static_cast<Name*>(calloc(1, sizeof(Name)));
  if (name == nullptr) return nullptr;
  name->hash = hash;
  if (!copy_text(name->text, sizeof name->text, text) || !thread->rows.insert(key, name)) {
    free(name);  // too long to be compared by its text, or no memory
    return nullptr;
  }
  return name;
}

uint64_t hash_text(const char* text, uint64_t salt) {
  if (text == nullptr) text = "";
  return hash_bytes(k_hash_seed ^ salt, text, strlen(text));
}

bool is_fallback(const Thread* thread) { return thread == &g_fallback; }

// Opens the file of counts (or plain memory) on the first call, and the event file. Needs the
// lock.
void ensure_file() {
  if (is_ready(g)) return;
  const auto open = [] {
    if (g.is_run_by_weir) {
      open_file(&g.file, k_probe, k_capacity);
    } else {
      open_memory(&g.file, k_probe, k_capacity);
    }
    open_events(g.file);
    g.timed = g.timed || is_recording_events();
    g.stamps = start_stamp_clock(!is_recording_events());
    __atomic_store_n(&g.generation, 1, __ATOMIC_RELAXED);
  };
  ensure_initialized(&g, open, reset_after_fork, make_forked_events);
}

// Gives the calling thread a record: its own from before a fork, one of an ended thread, or a new
// one. Without memory it gets the shared record.
Thread* attach_thread() {
  const KeepErrno keep;
  const Locked locked(&g.lock);
  ensure_file();
  Thread* thread = t_thread;
  if (thread == nullptr || thread == &g_fallback) thread = acquire_thread();
  if (thread == nullptr) {
    set_flag(&g.file, WEIR_PROBE_OUT_OF_MEMORY);
    thread = &g_fallback;
    thread->last = &thread->first;
  }
  thread->number = thread_number();
  thread->depth = 0;
  // The record's last thread may have ended within a buffer; a parent's buffers are freed already.
  if (thread->generation == g.generation) close_buffer(thread);
  thread->buffer = 0;
  thread->wait_start = 0;
  thread->recorded_buffer = nullptr;
  thread->generation = g.generation;
  t_thread = thread;
  return thread;
}

uint32_t checked_device(uint32_t device) {
  if (device < __atomic_load_n(&g.device_count, __ATOMIC_ACQUIRE)) return device;
  // A program that declares no device gets one that satisfies no placement.
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
  const weir_probe_section* section = find_section(&g.file, WEIR_SECTION_DEVICES);
  while (section->used < g.device_count) add_device(&g.file, g.devices[section->used]);
}

// The index of the queue's row for a slot, which is added if there is none. Needs the lock.
static uint32_t find_slot_row(uint32_t queue, uint32_t slot) {
  Queue& entry = g.queues[queue];
  if (entry.slot_rows[slot] == 0) {
    fill_devices();
    const uint32_t row = add_queue(&g.file, entry.device, 0, entry.index, 0);
    __atomic_store_n(&entry.slot_rows[slot], 1 + row, __ATOMIC_RELEASE);
  }
  return entry.slot_rows[slot] - 1;
}

uint32_t event_queue(uint32_t queue) {
  const uint32_t row = __atomic_load_n(&g.queues[queue].slot_rows[0], __ATOMIC_ACQUIRE);
  if (__builtin_expect(row != 0, 1)) return row - 1;
  const Locked locked(&g.lock);
  return find_slot_row(queue, 0);
}

weir_probe_queue* queue_counters(Thread* thread, uint32_t queue) {
  const uint64_t key = mix(k_queue_salt, queue);
  auto* counters = thread->rows.get<weir_probe_queue>(key);
  if (__builtin_expect(counters != nullptr, 1)) return counters;
  queue = checked_queue(queue);
  const Locked locked(&g.lock);
  find_slot_row(queue, 0);  // events refer to the first row
  counters = &g.file.queues[find_slot_row(queue, thread->slot)];
  remember(thread, key, counters);
  return counters;
}

}  // namespace weir_probe

using namespace weir_probe;

// Called by the engine: adds a device and returns its index. Without a class, one is made of its
// API and name. Devices beyond the limit share the last index.
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
  // A device that is declared again keeps its index.
  while (index < g.device_count &&
         (strcmp(g.devices[index].api, device.api) != 0 ||
          strcmp(g.devices[index].name, device.name) != 0 ||
          strcmp(g.devices[index].device_class, device.device_class) != 0)) {
    ++index;
  }
  if (index == k_max_devices) {
    index = k_max_devices - 1;
    raise_flag(&g, WEIR_PROBE_DEVICES_OVERFLOWED);
  } else if (index == g.device_count) {
    g.devices[index] = device;
    __atomic_store_n(&g.device_count, index + 1, __ATOMIC_RELEASE);
  }
  return index;
}

// Called by the engine: adds a queue of a device and returns its index. Queues beyond the limit
// share the last index.
WEIR_EXPORTED uint32_t weir_queue_declare(uint32_t device) {
  device = checked_device(device);
  const Locked locked(&g.lock);
  uint32_t index = g.queue_count;
  if (index == k_max_queues) {
    index = k_max_queues - 1;
    raise_flag(&g, WEIR_PROBE_QUEUES_OVERFLOWED);
  } else {
    uint32_t device_queues = 0;  // declared before, of the same device
    for (uint32_t i = 0; i < index; ++i) {
      if (g.queues[i].device == device) ++device_queues;
    }
    g.queues[index].device = device;
    g.queues[index].index = device_queues;
    __atomic_store_n(&g.queue_count, index + 1, __ATOMIC_RELEASE);
  }
  return index;
}
