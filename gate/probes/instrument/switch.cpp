// Switches the library on and off, and prints the tables at the end.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/probes/instrument/state.h"

WEIR_EXPORTED uint32_t weir_profile_flags;
uint32_t weir_profile_flags = 0;
// A text by which `weir doctor` recognizes a program with the library inside.
WEIR_EXPORTED const char weir_instrument_marker[];
__attribute__((used)) const char weir_instrument_marker[] = "weir-instrument-abi-1";

namespace weir_probe {
namespace {

constexpr const char* k_variable = "WEIR_PROFILE";
constexpr uint32_t k_max_warnings = 64;
uint64_t g_warned[k_max_warnings];  // hashes of warnings that were printed
uint32_t g_warnings;
uint32_t g_flags_at_start;
pid_t g_first_pid;  // the process that loaded the library, not a forked child
bool g_dump_at_end;
bool g_has_head;  // the dump in progress has printed its first line

// Adds flags that others need: cb needs counts, and dispatch needs cb. Removes unknown ones.
uint32_t with_implied_flags(uint32_t flags) {
  flags &= WEIR_PROFILE_COUNTS | WEIR_PROFILE_OPS | WEIR_PROFILE_CB | WEIR_PROFILE_DISPATCH;
  if ((flags & WEIR_PROFILE_DISPATCH) != 0) flags |= WEIR_PROFILE_CB;
  if ((flags & WEIR_PROFILE_CB) != 0) flags |= WEIR_PROFILE_COUNTS;
  return flags;
}

// Returns the flags that a text such as "counts,ops" names. Warns about words that it does not
// know.
uint32_t parse_flags(const char* text) {
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
    bool is_known = length == 0;
    for (const auto& entry : k_words) {
      if (strlen(entry.word) == length && strncmp(text, entry.word, length) == 0) {
        flags |= entry.flags;
        is_known = true;
      }
    }
    if (!is_known)
      weir_warn_once("WEIR_PROFILE knows the words counts, ops, cb and dispatch alone");
    text += length;
    if (*text == ',') ++text;
  }
  return with_implied_flags(flags);
}

__attribute__((constructor)) void read_environment() {
  const char* flags = environment(k_variable);
  if (flags == nullptr || flags[0] == '\0') return;
  const char* folder = environment(WEIR_PROBE_DIR_VARIABLE);
  g.is_run_by_weir = folder != nullptr && folder[0] != '\0';
  g_dump_at_end = !g.is_run_by_weir;
  g.timed = !g.is_run_by_weir;
  g_flags_at_start = parse_flags(flags);
  weir_profile_flags = g_flags_at_start;
  g_first_pid = getpid();
}

// Sums a queue's counters over threads; false if all are 0.
bool sum_counters(uint32_t queue, uint64_t (&sums)[WEIR_COUNTERS]) {
  for (const uint32_t row : g.queues[queue].slot_rows) {
    for (int i = 0; row != 0 && i < WEIR_COUNTERS; ++i) {
      sums[i] += __atomic_load_n(&g.file.queues[row - 1].counters[i], __ATOMIC_RELAXED);
    }
  }
  for (const uint64_t sum : sums) {
    if (sum != 0) return true;
  }
  return false;
}

bool has_device_work() {
  for (uint32_t queue = 0; queue < g.queue_count; ++queue) {
    uint64_t sums[WEIR_COUNTERS] = {};
    if (sum_counters(queue, sums)) return true;
  }
  return false;
}

// Prints a line if counts were requested and no device did any work: saying nothing would look
// like a fault.
void report_no_device_work() {
  if ((g_flags_at_start & WEIR_PROFILE_COUNTS) == 0 || getpid() != g_first_pid) return;
  if (is_ready(g) && has_device_work()) return;
  const bool has_ops = (g_flags_at_start & WEIR_PROFILE_OPS) != 0;
  const char* flags = environment(k_variable);
  if (flags == nullptr) flags = "";
  // The value is printed up to the first unusual character, which a terminal might interpret.
  const size_t length = strspn(flags, "abcdefghijklmnopqrstuvwxyz,");
  print_line(2, "weir: %s=%.*s: no work of a device was marked%s\n", k_variable,
             length < 64 ? static_cast<int>(length) : 64, flags,
             has_ops ? "" : "; WEIR_PROFILE=ops times ops on the CPU");
}

__attribute__((destructor)) void report_at_exit() {
  if (is_ready(g)) {
    // Ops after the last token make a graph without rows.
    pthread_mutex_lock(&g.lock);
    close_graph(0);
    pthread_mutex_unlock(&g.lock);
    if (g_dump_at_end) weir_profile_dump(2);
  }
  if (g_dump_at_end) report_no_device_work();
}

// --- Tables for people, if weir does not run the program: sorted by total, 80 columns.

// Prints the first line of a dump, before its first table. Needs the lock.
void print_head(int descriptor) {
  if (g_has_head) return;
  g_has_head = true;
  print_line(descriptor, "weir: profile of process %ld\n", static_cast<long>(getpid()));
}

// Orders rows by total and calls, the largest first, then by name.
int compare_rows(const void* a, const void* b) {
  const Row& first = *static_cast<const Row*>(a);
  const Row& second = *static_cast<const Row*>(b);
  if (first.timed.total != second.timed.total)
    return first.timed.total < second.timed.total ? 1 : -1;
  if (first.timed.calls != second.timed.calls)
    return first.timed.calls < second.timed.calls ? 1 : -1;
  return strcmp(first.name, second.name);
}

void sort_rows(Row* rows, uint32_t count) { qsort(rows, count, sizeof *rows, compare_rows); }

// Prints a table of those queues that have counts.
void dump_queues(int descriptor) {
  bool has_header = false;
  for (uint32_t queue = 0; queue < g.queue_count; ++queue) {
    uint64_t sums[WEIR_COUNTERS] = {};
    if (!sum_counters(queue, sums)) continue;
    if (!has_header) {
      print_head(descriptor);
      print_line(descriptor, "\n%-28s %10s %9s %9s %9s %9s\n", "queue", "dispatches", "barriers",
                 "copies", "submits", "syncs");
    }
    has_header = true;
    const weir_probe_device& device = g.devices[g.queues[queue].device];
    char name[64];
    snprintf(name, sizeof name, "%.40s %u", device.name, g.queues[queue].index);
    const auto sum = [&](int counter) { return static_cast<unsigned long long>(sums[counter]); };
    print_line(descriptor, "%-28.28s %10llu %9llu %9llu %9llu %9llu\n", name,
               sum(WEIR_COUNT_DISPATCHES), sum(WEIR_COUNT_BARRIERS), sum(WEIR_COUNT_COPIES),
               sum(WEIR_COUNT_SUBMITS), sum(WEIR_COUNT_SYNCS));
  }
}

// Prints a table of kernels by name, each summed over all threads.
void dump_kernels(int descriptor) {
  const uint32_t count = find_section(&g.file, WEIR_SECTION_KERNELS)->used;
  auto* rows = static_cast<Row*>(calloc(count, sizeof(Row)));
  if (rows == nullptr) return;
  uint32_t filled = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t dispatches = __atomic_load_n(&g.file.kernels[i].dispatches, __ATOMIC_RELAXED);
    if (dispatches == 0) continue;
    // The file has a row of the kernel for each thread.
    find_table_row(rows, &filled, g.file.kernels[i].name)->timed.total += dispatches;
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

Row* find_table_row(Row* rows, uint32_t* used, const char* name) {
  uint32_t at = 0;
  while (at < *used && strcmp(rows[at].name, name) != 0) ++at;
  if (at == *used) {
    rows[at].name = name;
    ++*used;
  }
  return &rows[at];
}

// Prints a table of times, sorted by total, with each row's mean, longest time and share.
void print_rows(int descriptor, const char* title, const char* clock, Row* rows, uint32_t count) {
  sort_rows(rows, count);
  uint64_t sum = 0;
  for (uint32_t i = 0; i < count; ++i) sum += rows[i].timed.total;
  print_head(descriptor);
  print_line(descriptor, "\n%-34s %8s %10s %8s %8s %6s\n", title, "times", clock, "mean us",
             "max us", "share");
  for (uint32_t i = 0; i < count; ++i) {
    const Times& timed = rows[i].timed;
    const auto total = static_cast<double>(timed.total);
    print_line(descriptor, "%-34.34s %8llu %10.3f %8.2f %8.2f %5.1f%%\n", rows[i].name,
               static_cast<unsigned long long>(timed.calls), total * 1e-6,
               timed.calls == 0 ? 0 : total * 1e-3 / static_cast<double>(timed.calls),
               static_cast<double>(timed.longest) * 1e-3,
               sum == 0 ? 0 : total * 100 / static_cast<double>(sum));
  }
}

}  // namespace weir_probe

using namespace weir_probe;

WEIR_EXPORTED uint32_t weir_instrument_abi(void) { return WEIR_INSTRUMENT_ABI; }

WEIR_EXPORTED int32_t weir_profile_is_enabled(uint32_t flags) {
  return (weir_profile_flags & flags) != 0;
}

WEIR_EXPORTED void weir_profile_enable(uint32_t flags) {
  // The program switched it on itself, and prints the tables when it wants.
  if (!g.is_run_by_weir) g.timed = true;
  flags = with_implied_flags(flags);
  if (((flags ^ weir_profile_flags) & WEIR_PROFILE_OPS) != 0) {
    __atomic_add_fetch(&g.epoch, 1, __ATOMIC_RELAXED);
  }
  weir_profile_flags = flags;
}

WEIR_EXPORTED uint64_t weir_now(void) { return now_nanoseconds(); }

// Prints a warning unless it was printed before. At most 64 different ones are printed.
WEIR_EXPORTED void weir_warn_once(const char* text) {
  if (text == nullptr) return;
  const uint64_t hash = hash_text(text, 0);
  pthread_mutex_lock(&g.lock);
  bool is_silent = g_warnings == k_max_warnings;
  for (uint32_t i = 0; i < g_warnings; ++i) is_silent = is_silent || g_warned[i] == hash;
  if (!is_silent) {
    g_warned[g_warnings] = hash;
    ++g_warnings;
  }
  pthread_mutex_unlock(&g.lock);
  const KeepErrno keep;
  if (!is_silent) print_line(2, "weir: %.400s\n", text);
}

WEIR_EXPORTED void weir_profile_dump(int32_t descriptor) {
  if (!is_ready(g)) return;
  const KeepErrno keep;
  const Locked locked(&g.lock);
  g_has_head = false;
  dump_queues(descriptor);
  dump_kernels(descriptor);
  dump_ops(descriptor);
  dump_buffers(descriptor);
}

WEIR_EXPORTED void weir_profile_reset(void) {
  if (!is_ready(g)) return;
  const Locked locked(&g.lock);
  if (!g.is_run_by_weir) clear_counts(&g.file);
  reset_op_times();
  reset_buffers();
}

// The ABI's functions behind the header's inline forms: a test and a jump, without a stack frame.
// One that is off costs a call, a load, a test and a return.
#define WEIR_MARK(flag, name, parameters, arguments)                            \
  WEIR_EXPORTED void weir_##name parameters {                                   \
    if (__builtin_expect((weir_profile_flags & WEIR_PROFILE_##flag) != 0, 0)) { \
      weir_##name##_on arguments;                                               \
    }                                                                           \
  }
WEIR_INSTRUMENT_MARKS(WEIR_MARK)
