// The switch, who is told what at the end, and the tables for that.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/probes/instrument/state.h"

WEIR_EXPORTED uint32_t weir_profile_flags;
uint32_t weir_profile_flags = 0;
// What `weir doctor` looks for in a program that has the library inside it.
WEIR_EXPORTED const char weir_instrument_marker[];
__attribute__((used)) const char weir_instrument_marker[] = "weir-instrument-abi-1";

namespace weir_probe {
namespace {

constexpr const char* k_variable = "WEIR_PROFILE";
constexpr uint32_t k_most_warnings = 64;
uint64_t g_warned[k_most_warnings];
uint32_t g_warnings;
uint32_t g_flags_at_start;
pid_t g_first_pid;  // not that of a forked child
bool g_dump_at_end;
bool g_headed;  // the dump in progress has printed its first line

// cb needs the counts it belongs to, dispatch the buffers.
uint32_t whole(uint32_t flags) {
  flags &= WEIR_PROFILE_COUNTS | WEIR_PROFILE_OPS | WEIR_PROFILE_CB | WEIR_PROFILE_DISPATCH;
  if ((flags & WEIR_PROFILE_DISPATCH) != 0) flags |= WEIR_PROFILE_CB;
  if ((flags & WEIR_PROFILE_CB) != 0) flags |= WEIR_PROFILE_COUNTS;
  return flags;
}

uint32_t flags_of(const char* text) {
  static constexpr struct {
    const char* word;
    uint32_t flags;
  } k_words[] = {
      {"counts", WEIR_PROFILE_COUNTS},
      {"ops", WEIR_PROFILE_OPS},
      {"cb", WEIR_PROFILE_CB},
      {"dispatch", WEIR_PROFILE_DISPATCH},
  };
  uint32_t flags = 0;
  while (*text != '\0') {
    const size_t length = strcspn(text, ",");
    bool known = length == 0;
    for (const auto& one : k_words) {
      if (strlen(one.word) == length && strncmp(text, one.word, length) == 0) {
        flags |= one.flags;
        known = true;
      }
    }
    if (!known) weir_warn_once("WEIR_PROFILE knows the words counts, ops, cb and dispatch alone");
    text += length;
    if (*text == ',') ++text;
  }
  return whole(flags);
}

__attribute__((constructor)) void look_at_environment() {
  const char* wanted = environment(k_variable);
  if (wanted == nullptr || wanted[0] == '\0') return;
  const char* folder = environment(WEIR_PROBE_DIR_VARIABLE);
  g.attached = folder != nullptr && folder[0] != '\0';
  g_dump_at_end = !g.attached;
  g.timed = !g.attached;
  weir_profile_flags = g_flags_at_start = flags_of(wanted);
  g_first_pid = getpid();
}

// Sums of a queue's counters; false where all are 0.
bool counts_of_queue(uint32_t queue, uint64_t (&sums)[WEIR_COUNTERS]) {
  uint64_t any = 0;
  for (const uint32_t row : g.queues[queue].row_of_slot) {
    for (int i = 0; row != 0 && i < WEIR_COUNTERS; ++i) {
      sums[i] += __atomic_load_n(&g.file.queues[row - 1].counters[i], __ATOMIC_RELAXED);
    }
  }
  for (const uint64_t sum : sums) any |= sum;
  return any != 0;
}

bool saw_device_work() {
  for (uint32_t queue = 0; queue < g.queue_count; ++queue) {
    uint64_t sums[WEIR_COUNTERS] = {};
    if (counts_of_queue(queue, sums)) return true;
  }
  return false;
}

// A program on the CPU has nothing to show of a device: it is said, as silence looks like a fault.
void tell_of_no_device_work() {
  if ((g_flags_at_start & WEIR_PROFILE_COUNTS) == 0 || getpid() != g_first_pid) return;
  if (is_ready(g) && saw_device_work()) return;
  const bool ops = (g_flags_at_start & WEIR_PROFILE_OPS) != 0;
  const char* words = environment(k_variable);
  if (words == nullptr) words = "";
  // Nothing but words goes to a terminal.
  const size_t length = strspn(words, "abcdefghijklmnopqrstuvwxyz,");
  print_line(2, "weir: %s=%.*s: no work of a device was marked%s\n", k_variable,
             length < 64 ? static_cast<int>(length) : 64, words,
             ops ? "" : "; WEIR_PROFILE=ops times ops on the CPU");
}

__attribute__((destructor)) void tell_at_end() {
  if (is_ready(g)) {
    // What ended after the last token belongs to none.
    pthread_mutex_lock(&g.lock);
    take_boundary(0);
    pthread_mutex_unlock(&g.lock);
    if (g_dump_at_end) weir_profile_dump(2);
  }
  if (g_dump_at_end) tell_of_no_device_work();
}

// --- tables for people, where weir is not the one who asks: sorted by total, 80 columns

// Before the first table of a dump; one without any prints nothing. Under the lock.
void print_head(int descriptor) {
  if (g_headed) return;
  g_headed = true;
  print_line(descriptor, "weir: profile of process %ld\n", static_cast<long>(getpid()));
}

int by_total(const void* a, const void* b) {
  const auto *one = static_cast<const Row*>(a), *two = static_cast<const Row*>(b);
  if (one->timed.total != two->timed.total) return one->timed.total < two->timed.total ? 1 : -1;
  if (one->timed.calls != two->timed.calls) return one->timed.calls < two->timed.calls ? 1 : -1;
  return strcmp(one->name, two->name);
}

void sort_rows(Row* rows, uint32_t count) { qsort(rows, count, sizeof *rows, by_total); }

uint32_t used(uint32_t kind) { return section_of(&g.file, kind)->used; }

void dump_queues(int descriptor) {
  bool first = true;
  for (uint32_t queue = 0; queue < g.queue_count; ++queue) {
    uint64_t sums[WEIR_COUNTERS] = {};
    if (!counts_of_queue(queue, sums)) continue;
    if (first) {
      print_head(descriptor);
      print_line(descriptor, "\n%-28s %10s %9s %9s %9s %9s\n", "queue", "dispatches", "barriers",
                 "copies", "submits", "syncs");
    }
    first = false;
    const weir_probe_device& device = g.devices[g.queues[queue].device];
    char name[64];
    snprintf(name, sizeof name, "%.40s %u", device.name, g.queues[queue].index);
    const auto shown = [&](int which) { return static_cast<unsigned long long>(sums[which]); };
    print_line(descriptor, "%-28.28s %10llu %9llu %9llu %9llu %9llu\n", name,
               shown(WEIR_COUNT_DISPATCHES), shown(WEIR_COUNT_BARRIERS), shown(WEIR_COUNT_COPIES),
               shown(WEIR_COUNT_SUBMITS), shown(WEIR_COUNT_SYNCS));
  }
}

void dump_kernels(int descriptor) {
  const uint32_t count = used(WEIR_SECTION_KERNELS);
  auto* rows = static_cast<Row*>(calloc(count, sizeof(Row)));
  if (rows == nullptr) return;
  uint32_t filled = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t dispatches = __atomic_load_n(&g.file.kernels[i].dispatches, __ATOMIC_RELAXED);
    if (dispatches == 0) continue;
    // A kernel has a row for each thread.
    row_named(rows, &filled, g.file.kernels[i].name)->timed.total += dispatches;
  }
  if (filled != 0) {
    sort_rows(rows, filled);
    print_head(descriptor);
    print_line(descriptor, "\n%-68s %10s\n", "kernel", "dispatches");
    for (uint32_t i = 0; i < filled; ++i) {
      print_line(descriptor, "%-68.68s %10llu\n", rows[i].name,
                 static_cast<unsigned long long>(rows[i].timed.total));
    }
  }
  free(rows);
}

}  // namespace

Row* row_named(Row* rows, uint32_t* used, const char* name) {
  uint32_t at = 0;
  while (at < *used && strcmp(rows[at].name, name) != 0) ++at;
  if (at == *used) rows[(*used)++].name = name;
  return &rows[at];
}

void print_rows(int descriptor, const char* what, const char* clock, Row* rows, uint32_t count) {
  sort_rows(rows, count);
  uint64_t all = 0;
  for (uint32_t i = 0; i < count; ++i) all += rows[i].timed.total;
  print_head(descriptor);
  print_line(descriptor, "\n%-34s %8s %10s %8s %8s %6s\n", what, "times", clock, "mean us",
             "max us", "share");
  for (uint32_t i = 0; i < count; ++i) {
    const Timed& timed = rows[i].timed;
    const auto total = static_cast<double>(timed.total);
    print_line(descriptor, "%-34.34s %8llu %10.3f %8.2f %8.2f %5.1f%%\n", rows[i].name,
               static_cast<unsigned long long>(timed.calls), total * 1e-6,
               timed.calls == 0 ? 0 : total * 1e-3 / static_cast<double>(timed.calls),
               static_cast<double>(timed.most) * 1e-3,
               all == 0 ? 0 : total * 100 / static_cast<double>(all));
  }
}

}  // namespace weir_probe

using namespace weir_probe;

WEIR_EXPORTED uint32_t weir_instrument_abi(void) { return WEIR_INSTRUMENT_ABI; }

WEIR_EXPORTED int32_t weir_profile_is_enabled(uint32_t flags) {
  return (weir_profile_flags & flags) != 0;
}

WEIR_EXPORTED void weir_profile_enable(uint32_t flags) {
  // By the program itself: it asks for the dump when it wants one.
  if (!g.attached) g.timed = true;
  flags = whole(flags);
  if (((flags ^ weir_profile_flags) & WEIR_PROFILE_OPS) != 0) {
    __atomic_add_fetch(&g.epoch, 1, __ATOMIC_RELAXED);
  }
  weir_profile_flags = flags;
}

WEIR_EXPORTED uint64_t weir_now(void) { return now_nanoseconds(); }

WEIR_EXPORTED void weir_warn_once(const char* text) {
  if (text == nullptr) return;
  const uint64_t hash = hash_text(text, 0);
  pthread_mutex_lock(&g.lock);
  bool known = g_warnings == k_most_warnings;
  for (uint32_t i = 0; i < g_warnings; ++i) known = known || g_warned[i] == hash;
  if (!known) g_warned[g_warnings++] = hash;
  pthread_mutex_unlock(&g.lock);
  const KeepErrno keep;
  if (!known) print_line(2, "weir: %.400s\n", text);
}

WEIR_EXPORTED void weir_profile_dump(int32_t descriptor) {
  if (!is_ready(g)) return;
  const KeepErrno keep;
  const Locked locked(&g.lock);
  g_headed = false;
  dump_queues(descriptor);
  dump_kernels(descriptor);
  dump_ops(descriptor);
  dump_buffers(descriptor);
}

WEIR_EXPORTED void weir_profile_reset(void) {
  if (!is_ready(g)) return;
  const Locked locked(&g.lock);
  if (!g.attached) clear_counts(&g.file);
  forget_op_times();
  reset_buffers();
}

// The functions of the ABI behind the short forms of the header: a test and a jump. No frame,
// nothing saved, so that one that is off costs a call, a load, a test and a return.
#define WEIR_MARK(flag, name, parameters, arguments)                            \
  WEIR_EXPORTED void weir_##name parameters {                                   \
    if (__builtin_expect((weir_profile_flags & WEIR_PROFILE_##flag) != 0, 0)) { \
      weir_##name##_on arguments;                                               \
    }                                                                           \
  }
WEIR_INSTRUMENT_MARKS(WEIR_MARK)
