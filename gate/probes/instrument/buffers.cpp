// Command buffers by label: what was encoded into them, when the GPU ran them, and how its ticks
// are told on the CPU's clock.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/probes/instrument/state.h"

namespace weir_probe {

// Kernels of a buffer: indices of their rows in the file.
constexpr uint32_t k_kernels_of_chunk = 254;
struct BufferChunk {
  BufferChunk* next;
  uint32_t kernels[k_kernels_of_chunk];
};

// For the dump: what a buffer holds until its times are known. Its thread may append while another
// one reads, so what there is never moves.
struct Buffer {
  Buffer* next;
  uint64_t serial;
  uint32_t label;  // index into g_labels
  bool open;       // its thread may still add to it
  bool evaluated;  // the evaluation that it began in is over
  bool prefill;    // and was one of several tokens
  uint32_t used;   // atomic: stored when the kernel and its chunk are there
  BufferChunk* first;
  BufferChunk* last;  // of its thread
};

namespace {

constexpr uint32_t k_most_labels = 512;
constexpr uint32_t k_most_entries = 4096;  // of the table of dispatches
constexpr uint32_t k_most_flying = 256;
constexpr uint32_t k_most_in_buffer = 16384;

// Times are of evaluations of several tokens (`prefill`), of all else that is over, and of what is
// not yet.
struct Label {
  char name[64];
  char prefill_name[64];
  uint64_t hash;
  Timed timed, prefill, fresh;
};
struct Sum {
  uint64_t calls, total;
};
// A place in buffers of one label, and the kernel that ran there.
struct Entry {
  uint32_t label, position, kernel;
  Sum timed, prefill, fresh;
};
// All of it under the lock.
Label g_labels[k_most_labels];
uint32_t g_label_count;
Entry g_entries[k_most_entries];
uint32_t g_entry_count;
constinit Table g_entry_of;
Buffer* g_flying;
uint32_t g_flying_count;
uint64_t g_serial;  // atomic

Label* label_of(const char* name) {
  const uint64_t hash = hash_text(name, 0);
  for (uint32_t i = 0; i < g_label_count; ++i) {
    if (g_labels[i].hash == hash) return &g_labels[i];
  }
  if (g_label_count == k_most_labels) return &g_labels[k_most_labels - 1];
  Label* label = &g_labels[g_label_count++];
  const bool last = g_label_count == k_most_labels;
  copy_text(label->name, sizeof label->name, last ? "(other)" : name == nullptr ? "" : name);
  snprintf(label->prefill_name, sizeof label->prefill_name, "%.52s, prefill", label->name);
  label->hash = hash;
  return label;
}

void add_times(Timed* sum, const Timed& more) {
  sum->calls += more.calls;
  sum->total += more.total;
  if (more.most > sum->most) sum->most = more.most;
}

void add_times(Sum* sum, const Sum& more) {
  sum->calls += more.calls;
  sum->total += more.total;
}

// The sum of a label or entry that takes the times of `buffer`.
template <class Of>
auto* sum_for(Of* of, const Buffer& buffer) {
  if (!buffer.evaluated) return &of->fresh;
  return buffer.prefill ? &of->prefill : &of->timed;
}

// What is fresh belongs to an evaluation that is over.
template <class Of>
void settle(Of* of, bool prefill) {
  add_times(prefill ? &of->prefill : &of->timed, of->fresh);
  of->fresh = {};
}

void settle_all(bool prefill) {
  for (uint32_t i = 0; i < g_label_count; ++i) settle(&g_labels[i], prefill);
  for (uint32_t i = 0; i < g_entry_count; ++i) settle(&g_entries[i], prefill);
}

void time_entry(const Buffer& buffer, uint32_t position, uint32_t kernel, uint64_t nanoseconds) {
  const uint32_t label = buffer.label;
  const uint64_t key = mix(mix(label + 1, position), kernel);
  auto* entry = g_entry_of.get<Entry>(key);
  if (entry == nullptr) {
    if (g_entry_count == k_most_entries) return;
    entry = &g_entries[g_entry_count];
    *entry = {label, position, kernel, {}, {}, {}};
    if (!g_entry_of.insert(key, entry)) return;
    ++g_entry_count;
  }
  add_times(sum_for(entry, buffer), {1, nanoseconds});
}

void drop(Buffer** at) {
  Buffer* const buffer = *at;
  *at = buffer->next;
  --g_flying_count;
  for (BufferChunk* chunk = buffer->first; chunk != nullptr;) {
    BufferChunk* const next = chunk->next;
    free(chunk);
    chunk = next;
  }
  free(buffer);
}

// The list has the newest first: the last one that nobody adds to goes.
void drop_oldest() {
  Buffer** oldest = nullptr;
  for (Buffer** at = &g_flying; *at != nullptr; at = &(*at)->next) {
    if (!(*at)->open) oldest = at;
  }
  if (oldest != nullptr) drop(oldest);
}

Buffer* follow(uint64_t serial, const char* label) {
  const KeepErrno keep;
  if (g_flying_count >= k_most_flying) drop_oldest();
  auto* buffer = static_cast<Buffer*>(calloc(1, sizeof(Buffer)));
  if (buffer == nullptr) return nullptr;
  const auto index = static_cast<uint32_t>(label_of(label) - g_labels);
  *buffer = {g_flying, serial, index, true, false, false, 0, nullptr, nullptr};
  g_flying = buffer;
  ++g_flying_count;
  return buffer;
}

double tick_of(const Clock& clock) { return clock.tick > 0 ? clock.tick : 1; }

uint64_t length(const Clock& clock, uint64_t begin, uint64_t end) {
  return end <= begin ? 0
                      : static_cast<uint64_t>(static_cast<double>(end - begin) * tick_of(clock));
}

void tabulate(const Clock& clock, uint64_t serial, uint64_t begin, uint64_t end,
              const uint64_t* pairs, uint32_t dispatches) {
  Buffer** at = &g_flying;
  while (*at != nullptr && (*at)->serial != serial) at = &(*at)->next;
  if (*at == nullptr) return;
  Buffer* const buffer = *at;
  const uint64_t whole = length(clock, begin, end);
  add_times(sum_for(&g_labels[buffer->label], *buffer), {1, whole, whole});
  const uint32_t used = __atomic_load_n(&buffer->used, __ATOMIC_ACQUIRE);
  const BufferChunk* chunk = nullptr;
  for (uint32_t i = 0; i < dispatches && i < used; ++i) {
    const uint32_t place = i % k_kernels_of_chunk;
    if (place == 0) chunk = i == 0 ? buffer->first : chunk->next;
    time_entry(*buffer, i, chunk->kernels[place],
               length(clock, pairs[size_t{2} * i], pairs[size_t{2} * i + 1]));
  }
  if (!buffer->open) drop(at);
}

// --- a device's ticks on the CPU's clock

// Nearer pairs say more about how they were taken than about the clocks.
constexpr uint64_t k_least_apart = 1'000'000;

void write_pair(uint32_t device, const Clock& clock, int which) {
  const weir_event_clock event = {
      clock.ticks[which], clock.cpu[which], 0, clock.told_tick * 1e-9, 64, WEIR_CLOCK_CALIBRATED};
  write_event(WEIR_EVENT_CLOCK, device, &event, sizeof event);
}

// The event file takes one length of a tick for good: once it is known or times need it, all pairs
// so far go there.
void tell(uint32_t device, Clock* clock) {
  if (clock->told_tick <= 0) clock->told_tick = clock->tick;
  if (!events_on() || clock->told_tick <= 0 || clock->pairs == 0) return;
  if (!clock->told) write_pair(device, *clock, 0);
  clock->told = true;
  if (clock->pairs == 2) write_pair(device, *clock, 1);
}

// Under the lock.
void use_clock(uint32_t device) {
  Clock& clock = g.clocks[device];
  if (clock.used) return;
  clock.used = true;
  if (clock.told_tick <= 0) clock.told_tick = tick_of(clock);
  if (clock.pairs != 0) {
    if (!clock.told) tell(device, &clock);
    return;
  }
  if (!events_on()) return;
  const weir_event_clock event = {0, 0, 0, clock.told_tick * 1e-9, 64, WEIR_CLOCK_NONE};
  write_event(WEIR_EVENT_CLOCK, device, &event, sizeof event);
}

// begin 0: no op is open, or none that is timed.
weir_event_in_op innermost_op(const Thread& thread) {
  const uint32_t open = thread.depth < k_most_depth ? thread.depth : k_most_depth;
  if (open == 0) return {};
  return {thread.scopes[open - 1].begin, open - 1, 0};
}

// Not under the lock.
void warn_of_tick() {
  weir_warn_once("no clock rate and no two clock pairs: a GPU tick is taken for 1 ns");
}

}  // namespace

void enter_dispatch(Thread* thread, uint32_t kernel, uint32_t x, uint32_t y, uint32_t z) {
  if ((weir_profile_flags & WEIR_PROFILE_DISPATCH) == 0) return;
  const uint32_t group = thread->buffer != 0 ? thread->in_buffer++ : WEIR_NO_GROUP;
  if (events_on()) {
    const weir_event_in_op in = innermost_op(*thread);
    const uint32_t flags = in.begin != 0 ? WEIR_DISPATCH_IN_OP : 0;
    const weir_event_dispatch event = {x, y, z, flags, group, 0};
    write_event(WEIR_EVENT_DISPATCH, kernel, &event, sizeof event, &in,
                in.begin != 0 ? sizeof in : 0);
  }
  Buffer* buffer = thread->entries;
  if (buffer == nullptr || buffer->used == k_most_in_buffer) return;
  const uint32_t at = buffer->used % k_kernels_of_chunk;
  if (at == 0) {
    const KeepErrno keep;
    auto* fresh = static_cast<BufferChunk*>(calloc(1, sizeof(BufferChunk)));
    if (fresh == nullptr) return;
    if (buffer->first == nullptr) {
      buffer->first = fresh;
    } else {
      buffer->last->next = fresh;
    }
    buffer->last = fresh;
  }
  buffer->last->kernels[at] = kernel;
  __atomic_store_n(&buffer->used, buffer->used + 1, __ATOMIC_RELEASE);
}

void close_buffer(Thread* thread) {
  if (thread->entries != nullptr) thread->entries->open = false;
  thread->entries = nullptr;
}

void leave_buffer(Thread* thread) {
  if (thread->entries != nullptr) {
    const Locked locked(&g.lock);
    close_buffer(thread);
  }
  thread->buffer = 0;
}

void enter_submit(uint32_t queue, uint64_t buffer) {
  const uint64_t now = now_nanoseconds();
  const uint64_t serial = buffer != 0 ? buffer : __atomic_add_fetch(&g_serial, 1, __ATOMIC_RELAXED);
  const weir_event_submit event = {serial, now, now, buffer != 0 ? 1U : 0U, 0};
  write_event(WEIR_EVENT_SUBMIT, event_queue(queue), &event, sizeof event);
}

void forget_buffers() {
  while (g_flying != nullptr) drop(&g_flying);
}

void reset_buffers() {
  for (uint32_t i = 0; i < g_label_count; ++i) {
    g_labels[i].timed = g_labels[i].prefill = g_labels[i].fresh = {};
  }
  for (uint32_t i = 0; i < g_entry_count; ++i) {
    g_entries[i].timed = g_entries[i].prefill = g_entries[i].fresh = {};
  }
}

void end_evaluation_of_buffers(uint32_t rows) {
  const bool prefill = rows > 1;
  for (Buffer* buffer = g_flying; buffer != nullptr; buffer = buffer->next) {
    if (buffer->evaluated) continue;
    buffer->evaluated = true;
    buffer->prefill = prefill;
  }
  settle_all(prefill);
}

// A label's times in prefill have a row of their own where it has others.
void dump_buffers(int descriptor) {
  settle_all(false);
  static Row rows[2 * k_most_labels];  // under the lock
  uint32_t count = 0;
  for (uint32_t i = 0; i < g_label_count; ++i) {
    const Label& label = g_labels[i];
    if (label.timed.calls != 0) rows[count++] = {label.name, label.timed};
    if (label.prefill.calls == 0) continue;
    rows[count++] = {label.timed.calls != 0 ? label.prefill_name : label.name, label.prefill};
  }
  if (count == 0) return;
  print_rows(descriptor, "command buffers", "GPU ms", rows, count);
  for (uint32_t l = 0; l < count; ++l) {
    bool first = true;
    for (uint32_t i = 0; i < g_entry_count; ++i) {
      const Entry& entry = g_entries[i];
      const Label& label = g_labels[entry.label];
      if (rows[l].name != label.name && rows[l].name != label.prefill_name) continue;
      const bool prefill = rows[l].name == label.prefill_name || label.timed.calls == 0;
      const Sum& sum = prefill ? entry.prefill : entry.timed;
      if (sum.calls == 0) continue;
      if (first) {
        print_line(descriptor, "\n  %-4s %-40.40s %8s %10s %8s\n", "nr", rows[l].name, "times",
                   "GPU ms", "mean us");
      }
      first = false;
      print_line(descriptor, "  %-4u %-40.40s %8llu %10.3f %8.2f\n", entry.position,
                 g.file.kernels[entry.kernel].name, static_cast<unsigned long long>(sum.calls),
                 static_cast<double>(sum.total) * 1e-6,
                 static_cast<double>(sum.total) * 1e-3 / static_cast<double>(sum.calls));
    }
  }
}

}  // namespace weir_probe

using namespace weir_probe;

WEIR_EXPORTED uint64_t weir_buffer_begin(const char* label) {
  if ((weir_profile_flags & WEIR_PROFILE_CB) == 0) return 0;
  const auto [thread] = Mark();
  if (is_nobody(thread)) return 0;
  leave_buffer(thread);
  if (label == nullptr) label = "";
  const uint64_t serial = __atomic_add_fetch(&g_serial, 1, __ATOMIC_RELAXED);
  thread->buffer = serial;
  thread->in_buffer = 0;
  if (events_on()) {
    const weir_event_buffer event = {serial, 0, 0};
    char text[sizeof Label::name];
    copy_text(text, sizeof text, label);
    write_event(WEIR_EVENT_BUFFER, 0, &event, sizeof event, text,
                static_cast<uint32_t>(strlen(text)) + 1);
  }
  if (g.attached) return serial;
  const Locked locked(&g.lock);
  thread->entries = follow(serial, label);
  return serial;
}

WEIR_EXPORTED void weir_buffer_times(uint32_t queue, uint64_t buffer, uint64_t begin, uint64_t end,
                                     const uint64_t* pairs, uint32_t dispatches) {
  if ((weir_profile_flags & WEIR_PROFILE_CB) == 0 || buffer == 0) return;
  self();
  queue = checked_queue(queue);
  if (pairs == nullptr || (weir_profile_flags & WEIR_PROFILE_DISPATCH) == 0) dispatches = 0;
  const uint32_t device = g.queues[queue].device;
  pthread_mutex_lock(&g.lock);
  use_clock(device);
  const Clock clock = g.clocks[device];
  if (!g.attached) tabulate(clock, buffer, begin, end, pairs, dispatches);
  pthread_mutex_unlock(&g.lock);
  if (clock.tick <= 0) warn_of_tick();
  if (events_on()) write_times(event_queue(queue), buffer, 0, begin, end, pairs, dispatches);
}

WEIR_EXPORTED void weir_record(const char* label, uint64_t nanoseconds) {
  if ((weir_profile_flags & WEIR_PROFILE_CB) == 0) return;
  self();
  const Locked locked(&g.lock);
  add_times(&label_of(label)->timed, {1, nanoseconds, nanoseconds});
}

WEIR_EXPORTED void weir_clock_pair(uint32_t device, uint64_t cpu_nanoseconds, uint64_t gpu_ticks) {
  if ((weir_profile_flags & WEIR_PROFILE_CB) == 0) return;
  self();
  device = checked_device(device);
  const Locked locked(&g.lock);
  Clock& clock = g.clocks[device];
  const uint32_t at = clock.pairs == 0 ? 0 : 1;
  const bool apart = cpu_nanoseconds >= clock.cpu[0] + k_least_apart && gpu_ticks > clock.ticks[0];
  if (at == 1 && !apart) return;
  clock.cpu[at] = cpu_nanoseconds;
  clock.ticks[at] = gpu_ticks;
  clock.pairs = at + 1;
  if (at == 1 && clock.tick <= 0) {
    clock.tick = static_cast<double>(cpu_nanoseconds - clock.cpu[0]) /
                 static_cast<double>(gpu_ticks - clock.ticks[0]);
  }
  tell(device, &clock);
}

WEIR_EXPORTED void weir_clock_rate(uint32_t device, double nanoseconds_per_tick) {
  if ((weir_profile_flags & WEIR_PROFILE_CB) == 0) return;
  if (!(nanoseconds_per_tick > 0) || nanoseconds_per_tick > 1e9) return;
  self();
  device = checked_device(device);
  const Locked locked(&g.lock);
  Clock& clock = g.clocks[device];
  if (clock.tick <= 0) {
    clock.tick = nanoseconds_per_tick;
    tell(device, &clock);
  }
}

WEIR_EXPORTED uint64_t weir_ticks_to_nanoseconds(uint32_t device, uint64_t ticks) {
  device = checked_device(device);
  pthread_mutex_lock(&g.lock);
  const Clock clock = g.clocks[device];
  pthread_mutex_unlock(&g.lock);
  if (clock.pairs == 0) return ticks;
  if (clock.tick <= 0) warn_of_tick();
  const uint32_t last = clock.pairs - 1;
  // Signed: a moment before the pair is one.
  const auto since = static_cast<int64_t>(ticks - clock.ticks[last]);
  return clock.cpu[last] +
         static_cast<uint64_t>(static_cast<int64_t>(static_cast<double>(since) * tick_of(clock)));
}
