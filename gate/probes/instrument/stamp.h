// Moments of op scopes, two for each: what such a scope costs is mostly reading a clock. Where only
// lengths are wanted, the processor's own counter is read, which takes a third of the time.
#pragma once

#include <stdint.h>

#include "gate/probes/inject/writer/events.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

namespace weir_probe {

struct Stamps {
  bool ticks = false;  // they are the counter's, not nanoseconds
  uint64_t first_tick = 0, first_nanosecond = 0;
};

// It runs at one rate whatever the processor does, on all of its cores: AMD64 Architecture
// Programmer's Manual 3, Fn8000_0007 EDX bit 8 (Intel: SDM 3B, "Invariant TSC").
inline bool has_steady_counter() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & (1U << 8U)) != 0;
#else
  return false;
#endif
}

inline uint64_t read_counter() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return 0;
#endif
}

inline Stamps begin_stamps(bool lengths_only) {
  Stamps stamps;
  if (!lengths_only || !has_steady_counter()) return stamps;
  stamps.ticks = true;
  stamps.first_nanosecond = now_nanoseconds();
  stamps.first_tick = read_counter();
  return stamps;
}

inline uint64_t stamp(const Stamps& stamps) {
  return __builtin_expect(stamps.ticks, 1) ? read_counter() : now_nanoseconds();
}

// Of one unit of a stamp, as it was from the beginning until now.
inline double nanoseconds_of(const Stamps& stamps) {
  if (!stamps.ticks) return 1;
  const uint64_t now = now_nanoseconds(), tick = read_counter();
  if (tick <= stamps.first_tick || now <= stamps.first_nanosecond) return 1;
  return static_cast<double>(now - stamps.first_nanosecond) /
         static_cast<double>(tick - stamps.first_tick);
}

}  // namespace weir_probe
