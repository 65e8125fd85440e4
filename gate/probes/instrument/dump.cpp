// Tables for people, where weir is not the one who asks: sorted by total, 80 columns.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gate/probes/instrument/state.h"

#define WEIR_EXPORT extern "C" __attribute__((visibility("default")))

namespace weir_probe {
namespace {

struct Row {
  const char* name;
  uint64_t count;
};

int by_count(const void* a, const void* b) {
  const auto *one = static_cast<const Row*>(a), *two = static_cast<const Row*>(b);
  if (one->count != two->count) return one->count < two->count ? 1 : -1;
  return strcmp(one->name, two->name);
}

uint32_t used(uint32_t kind) { return section_of(&g.file, kind)->used; }

void dump_queues(int descriptor) {
  static constexpr int k_shown[] = {WEIR_COUNT_DISPATCHES, WEIR_COUNT_BARRIERS, WEIR_COUNT_COPIES,
                                    WEIR_COUNT_SUBMITS, WEIR_COUNT_SYNCS};
  bool first = true;
  for (uint32_t queue = 0; queue < g.queue_count; ++queue) {
    uint64_t sums[WEIR_COUNTERS] = {}, any = 0;
    for (const uint32_t row : g.queues[queue].row_of_slot) {
      for (int i = 0; row != 0 && i < WEIR_COUNTERS; ++i) {
        sums[i] += __atomic_load_n(&g.file.queues[row - 1].counters[i], __ATOMIC_RELAXED);
      }
    }
    for (const uint64_t sum : sums) any |= sum;
    if (any == 0) continue;
    if (first) {
      print(descriptor, "\n%-28s %10s %9s %9s %9s %9s\n", "queue", "dispatches", "barriers",
            "copies", "submits", "syncs");
    }
    first = false;
    const weir_probe_device& device = g.devices[g.queues[queue].device];
    char name[64];
    snprintf(name, sizeof name, "%.40s %u", device.name, g.queues[queue].index);
    print(descriptor, "%-28.28s %10llu %9llu %9llu %9llu %9llu\n", name,
          static_cast<unsigned long long>(sums[k_shown[0]]),
          static_cast<unsigned long long>(sums[k_shown[1]]),
          static_cast<unsigned long long>(sums[k_shown[2]]),
          static_cast<unsigned long long>(sums[k_shown[3]]),
          static_cast<unsigned long long>(sums[k_shown[4]]));
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
    uint32_t at = 0;
    while (at < filled && strcmp(rows[at].name, g.file.kernels[i].name) != 0) ++at;
    if (at == filled) rows[filled++].name = g.file.kernels[i].name;
    rows[at].count += dispatches;
  }
  if (filled != 0) {
    qsort(rows, filled, sizeof *rows, by_count);
    print(descriptor, "\n%-68s %10s\n", "kernel", "dispatches");
    for (uint32_t i = 0; i < filled; ++i) {
      print(descriptor, "%-68.68s %10llu\n", rows[i].name,
            static_cast<unsigned long long>(rows[i].count));
    }
  }
  free(rows);
}

}  // namespace

void print(int descriptor, const char* format, ...) {
  const KeepErrno keep;
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  if (length <= 0) return;
  const size_t shown =
      static_cast<size_t>(length) < sizeof line ? static_cast<size_t>(length) : sizeof line - 1;
  write_quietly(descriptor, line, shown);
}

void print_timed(int descriptor, const char* name, const Timed& timed, uint64_t of_all) {
  const auto total = static_cast<double>(timed.total);
  print(descriptor, "%-34.34s %8llu %10.3f %8.2f %8.2f %5.1f%%\n", name,
        static_cast<unsigned long long>(timed.calls), total * 1e-6,
        timed.calls == 0 ? 0 : total * 1e-3 / static_cast<double>(timed.calls),
        static_cast<double>(timed.most) * 1e-3,
        of_all == 0 ? 0 : total * 100 / static_cast<double>(of_all));
}

}  // namespace weir_probe

using namespace weir_probe;

WEIR_EXPORT void weir_profile_dump(int32_t descriptor) {
  if (!__atomic_load_n(&g.ready, __ATOMIC_ACQUIRE)) return;
  const KeepErrno keep;
  pthread_mutex_lock(&g.lock);
  print(descriptor, "weir: profile of process %ld\n", static_cast<long>(getpid()));
  dump_queues(descriptor);
  dump_kernels(descriptor);
  dump_ops(descriptor);
  dump_buffers(descriptor);
  pthread_mutex_unlock(&g.lock);
}

WEIR_EXPORT void weir_profile_reset(void) {
  if (!__atomic_load_n(&g.ready, __ATOMIC_ACQUIRE)) return;
  pthread_mutex_lock(&g.lock);
  if (!g.attached) clear_counts(&g.file);
  forget_op_times();
  reset_buffers();
  pthread_mutex_unlock(&g.lock);
}
