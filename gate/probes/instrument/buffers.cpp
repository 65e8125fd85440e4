// Command buffers by label: their dispatches, their GPU times, and conversion of GPU ticks to the
// CPU's clock.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/probes/instrument/state.h"

namespace weir_probe {

// Kernels of a buffer, as indices of their rows in the file.
constexpr uint32_t k_kernels_of_chunk = 254;
struct BufferChunk {
  BufferChunk* next;
  uint32_t kernels[k_kernels_of_chunk];
};

// A buffer's dispatches, kept for the dump until its times are known. Its thread may append while
// another reads, so that stored kernels never move.
struct Buffer {
  Buffer* next;
  uint64_t serial;
  uint32_t label;  // index into g_labels
  bool open;       // its thread may still add to it
  bool evaluated;  // the evaluation in which it began is over
  bool prefill;    // and had several tokens
  uint32_t used;   // number of kernels; atomic, stored after the kernel and its chunk
  BufferChunk* first;
  BufferChunk* last;  // used by its thread alone
};

namespace {

constexpr uint32_t k_max_labels = 512;
constexpr uint32_t k_max_entries = 4096;  // in the table of dispatches
constexpr uint32_t k_max_buffers = 256;
constexpr uint32_t k_max_stamps_in_buffer = 16384;

// Times by evaluation: of several tokens (`prefill`), of one token (`timed`), and of evaluations
// that are not over (`pending`).
struct Label {
  char name[64];
  char prefill_name[64];
  uint64_t hash;
  Times timed, prefill, pending;
};
struct Sum {
  uint64_t calls, total;
};
// A position in buffers of one label, and the kernel that ran there.
struct Entry {
  uint32_t label, position, kernel;
  Sum timed, prefill, pending;
};
// Under the lock, unless a comment says otherwise.
Label g_labels[k_max_labels];
uint32_t g_label_count;
Entry g_entries[k_max_entries];
uint32_t g_entry_count;
constinit Table g_entry_of;
Buffer* g_buffers;
uint32_t g_buffer_count;
uint64_t g_serial;  // atomic

// Returns the record of a command buffer's label, adding it if it is new. Labels beyond the limit
// share the last record, "(other)".
Label* find_label(const char* name) {
  const uint64_t hash = hash_text(name, 0);
  for (uint32_t i = 0; i < g_label_count; ++i) {
    if (g_labels[i].hash == hash) return &g_labels[i];
  }
  if (g_label_count == k_max_labels) return &g_labels[k_max_labels - 1];
  Label* label = &g_labels[g_label_count];
  ++g_label_count;
  if (name == nullptr) name = "";
  const bool is_last = g_label_count == k_max_labels;
  copy_text(label->name, sizeof label->name, is_last ? "(other)" : name);
  snprintf(label->prefill_name, sizeof label->prefill_name, "%.52s, prefill", label->name);
  label->hash = hash;
  return label;
}

void add_times(Times* sum, const Times& more) {
  sum->calls += more.calls;
  sum->total += more.total;
  if (more.longest > sum->longest) sum->longest = more.longest;
}

void add_times(Sum* sum, const Sum& more) {
  sum->calls += more.calls;
  sum->total += more.total;
}

// The sum of a label or entry to which the times of `buffer` belong.
template <class Sums>
auto* select_sum(Sums* sums, const Buffer& buffer) {
  if (!buffer.evaluated) return &sums->pending;
  return buffer.prefill ? &sums->prefill : &sums->timed;
}

// Moves pending times to the sum of the evaluation that has ended.
template <class Sums>
void assign_pending(Sums* sums, bool prefill) {
  add_times(prefill ? &sums->prefill : &sums->timed, sums->pending);
  sums->pending = {};
}

void assign_all_pending(bool prefill) {
  for (uint32_t i = 0; i < g_label_count; ++i) assign_pending(&g_labels[i], prefill);
  for (uint32_t i = 0; i < g_entry_count; ++i) assign_pending(&g_entries[i], prefill);
}

// Adds the time of one dispatch to the entry for its label, its position in the command buffer,
// and its kernel. Without room the time is left out.
void time_entry(const Buffer& buffer, uint32_t position, uint32_t kernel, uint64_t nanoseconds) {
  const uint32_t label = buffer.label;
  // A hash of 64 bits; a key must not be 0.
  const uint64_t key = mix(mix(label + 1, position), kernel);
  auto* entry = g_entry_of.get<Entry>(key);
  if (entry == nullptr) {
    if (g_entry_count == k_max_entries) return;
    entry = &g_entries[g_entry_count];
    *entry = {label, position, kernel, {}, {}, {}};
    if (!g_entry_of.insert(key, entry)) return;
    ++g_entry_count;
  }
  add_times(select_sum(entry, buffer), {1, nanoseconds});
}

// Removes the buffer at this link of the list, and frees it.
void remove_buffer(Buffer** link) {
  Buffer* const buffer = *link;
  *link = buffer->next;
  --g_buffer_count;
  for (BufferChunk* chunk = buffer->first; chunk != nullptr;) {
    BufferChunk* const next = chunk->next;
    free(chunk);
    chunk = next;
  }
  free(buffer);
}

// Removes the oldest buffer that is not open. The list has the newest first.
void remove_oldest() {
  Buffer** oldest = nullptr;
  for (Buffer** at = &g_buffers; *at != nullptr; at = &(*at)->next) {
    if (!(*at)->open) oldest = at;
  }
  if (oldest != nullptr) remove_buffer(oldest);
}

// Adds a command buffer to the list and returns its record; null without memory. Too many buffers
// make it drop the oldest.
Buffer* add_buffer(uint64_t serial, const char* label) {
  const KeepErrno keep;
  if (g_buffer_count >= k_max_buffers) remove_oldest();
  auto* buffer = static_cast<Buffer*>(calloc(1, sizeof(Buffer)));
  if (buffer == nullptr) return nullptr;
  const auto index = static_cast<uint32_t>(find_label(label) - g_labels);
  buffer->next = g_buffers;
  buffer->serial = serial;
  buffer->label = index;
  buffer->open = true;
  g_buffers = buffer;
  ++g_buffer_count;
  return buffer;
}

double tick_length(const Clock& clock) { return clock.tick > 0 ? clock.tick : 1; }

// Nanoseconds between two ticks.
uint64_t length(const Clock& clock, uint64_t begin, uint64_t end) {
  if (end <= begin) return 0;
  return static_cast<uint64_t>(static_cast<double>(end - begin) * tick_length(clock));
}

// Adds the times of a command buffer and of its dispatches to the tables. `pairs`: begin and end
// of each dispatch, in ticks. Removes the buffer's record unless it is still open.
void add_buffer_times(const Clock& clock, uint64_t serial, uint64_t begin, uint64_t end,
                      const uint64_t* pairs, uint32_t dispatches) {
  Buffer** link = &g_buffers;
  while (*link != nullptr && (*link)->serial != serial) link = &(*link)->next;
  if (*link == nullptr) return;
  Buffer* const buffer = *link;
  const uint64_t nanoseconds = length(clock, begin, end);
  add_times(select_sum(&g_labels[buffer->label], *buffer), {1, nanoseconds, nanoseconds});
  const uint32_t used = __atomic_load_n(&buffer->used, __ATOMIC_ACQUIRE);
  const BufferChunk* chunk = buffer->first;
  for (uint32_t i = 0; i < dispatches && i < used; ++i) {
    const uint32_t place = i % k_kernels_of_chunk;
    if (place == 0 && i > 0) chunk = chunk->next;
    time_entry(*buffer, i, chunk->kernels[place],
               length(clock, pairs[size_t{2} * i], pairs[size_t{2} * i + 1]));
  }
  if (!buffer->open) remove_buffer(link);
}

// --- A device's ticks on the CPU's clock.

// Nanoseconds. Closer pairs show mainly the error of taking them.
constexpr uint64_t k_min_pair_distance = 1'000'000;

void write_pair(uint32_t device, const Clock& clock, int index) {
  const weir_event_clock event = {
      clock.ticks[index],   clock.cpu[index], 0, clock.reported_tick * 1e-9, 64,
      WEIR_CLOCK_CALIBRATED};
  write_event(WEIR_EVENT_CLOCK, device, &event, sizeof event);
}

// Writes the clock's pairs to the event file. The file has one length of a tick for good: it is
// written once it is known, or once times need it.
void report_clock(uint32_t device, Clock* clock) {
  if (clock->reported_tick <= 0) clock->reported_tick = clock->tick;
  if (!is_recording_events() || clock->reported_tick <= 0 || clock->pairs == 0) return;
  if (!clock->is_reported) write_pair(device, *clock, 0);
  clock->is_reported = true;
  if (clock->pairs == 2) write_pair(device, *clock, 1);
}

// Writes a device's clock to the event file before the first time that needs it. Needs the lock.
void write_clock_once(uint32_t device) {
  Clock& clock = g.clocks[device];
  if (clock.used) return;
  clock.used = true;
  if (clock.reported_tick <= 0) clock.reported_tick = tick_length(clock);
  if (clock.pairs != 0) {
    if (!clock.is_reported) report_clock(device, &clock);
    return;
  }
  if (!is_recording_events()) return;
  // Without a pair of times, only the length of a tick is known.
  weir_event_clock event = {};
  event.tick_seconds = clock.reported_tick * 1e-9;
  event.valid_bits = 64;
  event.source = WEIR_CLOCK_NONE;
  write_event(WEIR_EVENT_CLOCK, device, &event, sizeof event);
}

// The thread's innermost op; its begin is 0 if none is open, or it is not timed.
weir_event_in_op innermost_op(const Thread& thread) {
  const uint32_t open = thread.depth < k_max_depth ? thread.depth : k_max_depth;
  if (open == 0) return {};
  return {thread.scopes[open - 1].begin, open - 1, 0};
}

// Takes the lock itself.
void warn_about_tick() {
  weir_warn_once("no clock rate and no two clock pairs: a GPU tick is taken for 1 ns");
}

}  // namespace

// Writes a dispatch of x·y·z groups to the event file, and adds it to the thread's command buffer.
// Does nothing if dispatches are not wanted.
void record_dispatch(Thread* thread, uint32_t kernel, uint32_t x, uint32_t y, uint32_t z) {
  if ((weir_profile_flags & WEIR_PROFILE_DISPATCH) == 0) return;
  uint32_t group = WEIR_NO_GROUP;
  if (thread->buffer != 0) {
    group = thread->in_buffer;
    ++thread->in_buffer;
  }
  if (is_recording_events()) {
    const weir_event_in_op in = innermost_op(*thread);
    const uint32_t flags = in.begin != 0 ? WEIR_DISPATCH_IN_OP : 0;
    const weir_event_dispatch event = {x, y, z, flags, group, 0};
    write_event(WEIR_EVENT_DISPATCH, kernel, &event, sizeof event, &in,
                in.begin != 0 ? sizeof in : 0);
  }
  Buffer* buffer = thread->recorded_buffer;
  if (buffer == nullptr || buffer->used == k_max_stamps_in_buffer) return;
  const uint32_t place = buffer->used % k_kernels_of_chunk;
  if (place == 0) {
    const KeepErrno keep;
    auto* chunk = static_cast<BufferChunk*>(calloc(1, sizeof(BufferChunk)));
    if (chunk == nullptr) return;
    if (buffer->first == nullptr) {
      buffer->first = chunk;
    } else {
      buffer->last->next = chunk;
    }
    buffer->last = chunk;
  }
  buffer->last->kernels[place] = kernel;
  __atomic_store_n(&buffer->used, buffer->used + 1, __ATOMIC_RELEASE);
}

void close_buffer(Thread* thread) {
  if (thread->recorded_buffer != nullptr) thread->recorded_buffer->open = false;
  thread->recorded_buffer = nullptr;
}

void leave_buffer(Thread* thread) {
  if (thread->recorded_buffer != nullptr) {
    const Locked locked(&g.lock);
    close_buffer(thread);
  }
  thread->buffer = 0;
}

void record_submit(uint32_t queue, uint64_t buffer) {
  const uint64_t now = now_nanoseconds();
  const uint64_t serial = buffer != 0 ? buffer : __atomic_add_fetch(&g_serial, 1, __ATOMIC_RELAXED);
  const weir_event_submit event = {serial, now, now, buffer != 0 ? 1U : 0U, 0};
  write_event(WEIR_EVENT_SUBMIT, event_queue(queue), &event, sizeof event);
}

void forget_buffers() {
  while (g_buffers != nullptr) remove_buffer(&g_buffers);
}

// Sets the times of all labels and dispatches to 0. Needs the lock.
void reset_buffers() {
  for (uint32_t i = 0; i < g_label_count; ++i) {
    g_labels[i].timed = {};
    g_labels[i].prefill = {};
    g_labels[i].pending = {};
  }
  for (uint32_t i = 0; i < g_entry_count; ++i) {
    g_entries[i].timed = {};
    g_entries[i].prefill = {};
    g_entries[i].pending = {};
  }
}

void end_evaluation_of_buffers(uint32_t rows) {
  const bool prefill = rows > 1;
  for (Buffer* buffer = g_buffers; buffer != nullptr; buffer = buffer->next) {
    if (buffer->evaluated) continue;
    buffer->evaluated = true;
    buffer->prefill = prefill;
  }
  assign_all_pending(prefill);
}

namespace {

// Prints the dispatches behind one row of the table of command buffers, each with its position and
// kernel.
void dump_entries(int descriptor, const Row& row) {
  bool has_header = false;
  for (uint32_t i = 0; i < g_entry_count; ++i) {
    const Entry& entry = g_entries[i];
    const Label& label = g_labels[entry.label];
    if (row.name != label.name && row.name != label.prefill_name) continue;
    const bool is_prefill = row.name == label.prefill_name || label.timed.calls == 0;
    const Sum& sum = is_prefill ? entry.prefill : entry.timed;
    if (sum.calls == 0) continue;
    if (!has_header) {
      print_line(descriptor, "\n  %-4s %-40.40s %8s %10s %8s\n", "nr", row.name, "times", "GPU ms",
                 "mean us");
    }
    has_header = true;
    print_line(descriptor, "  %-4u %-40.40s %8llu %10.3f %8.2f\n", entry.position,
               g.file.kernels[entry.kernel].name, static_cast<unsigned long long>(sum.calls),
               static_cast<double>(sum.total) * 1e-6,
               static_cast<double>(sum.total) * 1e-3 / static_cast<double>(sum.calls));
  }
}

}  // namespace

// Prints a table of command buffers by label, then a table of dispatches for each. A label's times
// in prefill (reading the prompt) get a row of their own if it has others.
void dump_buffers(int descriptor) {
  assign_all_pending(/*prefill=*/false);
  static Row rows[2 * k_max_labels];  // under the lock
  uint32_t count = 0;
  const auto add_row = [&](const char* name, const Times& times) {
    rows[count] = {name, times};
    ++count;
  };
  for (uint32_t i = 0; i < g_label_count; ++i) {
    const Label& label = g_labels[i];
    if (label.timed.calls != 0) add_row(label.name, label.timed);
    if (label.prefill.calls == 0) continue;
    add_row(label.timed.calls != 0 ? label.prefill_name : label.name, label.prefill);
  }
  if (count == 0) return;
  print_rows(descriptor, "command buffers", "GPU ms", rows, count);
  for (uint32_t i = 0; i < count; ++i) dump_entries(descriptor, rows[i]);
}

}  // namespace weir_probe

using namespace weir_probe;

// Called by the engine: starts a command buffer of this thread. Returns its number, or 0 if none
// are recorded.
WEIR_EXPORTED uint64_t weir_buffer_begin(const char* label) {
  if ((weir_profile_flags & WEIR_PROFILE_CB) == 0) return 0;
  const ThreadAccess access;
  Thread* const thread = access.thread;
  if (is_fallback(thread)) return 0;
  leave_buffer(thread);
  if (label == nullptr) label = "";
  const uint64_t serial = __atomic_add_fetch(&g_serial, 1, __ATOMIC_RELAXED);
  thread->buffer = serial;
  thread->in_buffer = 0;
  if (is_recording_events()) {
    const weir_event_buffer event = {serial, 0, 0};
    char text[sizeof Label::name];
    copy_text(text, sizeof text, label);
    write_event(WEIR_EVENT_BUFFER, 0, &event, sizeof event, text,
                static_cast<uint32_t>(strlen(text)) + 1);
  }
  if (g.is_run_by_weir) return serial;
  const Locked locked(&g.lock);
  thread->recorded_buffer = add_buffer(serial, label);
  return serial;
}

// Called by the engine: takes a command buffer's times from the GPU, in ticks. `pairs` holds begin
// and end of each dispatch; null if the engine has none. The times go to this process' own tables,
// unless weir runs the program, and to the event file if one is written.
WEIR_EXPORTED void weir_buffer_times(uint32_t queue, uint64_t buffer, uint64_t begin, uint64_t end,
                                     const uint64_t* pairs, uint32_t dispatches) {
  if ((weir_profile_flags & WEIR_PROFILE_CB) == 0 || buffer == 0) return;
  ensure_thread_record();
  queue = checked_queue(queue);
  if (pairs == nullptr || (weir_profile_flags & WEIR_PROFILE_DISPATCH) == 0) dispatches = 0;
  const uint32_t device = g.queues[queue].device;
  pthread_mutex_lock(&g.lock);
  write_clock_once(device);
  const Clock clock = g.clocks[device];
  if (!g.is_run_by_weir) add_buffer_times(clock, buffer, begin, end, pairs, dispatches);
  pthread_mutex_unlock(&g.lock);
  if (clock.tick <= 0) warn_about_tick();
  if (is_recording_events())
    write_times(event_queue(queue), buffer, 0, begin, end, pairs, dispatches);
}

WEIR_EXPORTED void weir_record(const char* label, uint64_t nanoseconds) {
  if ((weir_profile_flags & WEIR_PROFILE_CB) == 0) return;
  ensure_thread_record();
  const Locked locked(&g.lock);
  add_times(&find_label(label)->timed, {1, nanoseconds, nanoseconds});
}

// Called by the engine: takes one moment by the CPU's and the GPU's clock. The first and the
// latest pair are kept; both give the length of a tick.
WEIR_EXPORTED void weir_clock_pair(uint32_t device, uint64_t cpu_nanoseconds, uint64_t gpu_ticks) {
  if ((weir_profile_flags & WEIR_PROFILE_CB) == 0) return;
  ensure_thread_record();
  device = checked_device(device);
  const Locked locked(&g.lock);
  Clock& clock = g.clocks[device];
  const uint32_t index = clock.pairs == 0 ? 0 : 1;
  const bool is_far_enough =
      cpu_nanoseconds >= clock.cpu[0] + k_min_pair_distance && gpu_ticks > clock.ticks[0];
  if (index == 1 && !is_far_enough) return;
  clock.cpu[index] = cpu_nanoseconds;
  clock.ticks[index] = gpu_ticks;
  clock.pairs = index + 1;
  if (index == 1 && clock.tick <= 0) {
    clock.tick = static_cast<double>(cpu_nanoseconds - clock.cpu[0]) /
                 static_cast<double>(gpu_ticks - clock.ticks[0]);
  }
  report_clock(device, &clock);
}

// Called by the engine: sets the length of a device's tick, unless it is known already.
WEIR_EXPORTED void weir_clock_rate(uint32_t device, double nanoseconds_per_tick) {
  if ((weir_profile_flags & WEIR_PROFILE_CB) == 0) return;
  if (!(nanoseconds_per_tick > 0) || nanoseconds_per_tick > 1e9) return;
  ensure_thread_record();
  device = checked_device(device);
  const Locked locked(&g.lock);
  Clock& clock = g.clocks[device];
  if (clock.tick <= 0) {
    clock.tick = nanoseconds_per_tick;
    report_clock(device, &clock);
  }
}

// Called by the engine: converts a GPU's ticks to the CPU's clock, by the latest pair of times.
// Without a pair it returns the ticks.
WEIR_EXPORTED uint64_t weir_ticks_to_nanoseconds(uint32_t device, uint64_t ticks) {
  device = checked_device(device);
  pthread_mutex_lock(&g.lock);
  const Clock clock = g.clocks[device];
  pthread_mutex_unlock(&g.lock);
  if (clock.pairs == 0) return ticks;
  if (clock.tick <= 0) warn_about_tick();
  const uint32_t last = clock.pairs - 1;
  // Signed: the ticks may lie before the pair.
  const auto since = static_cast<int64_t>(ticks - clock.ticks[last]);
  return clock.cpu[last] + static_cast<uint64_t>(static_cast<int64_t>(static_cast<double>(since) *
                                                                      tick_length(clock)));
}
