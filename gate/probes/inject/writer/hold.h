// Delays computation while weir asks for it (weir_probe_hold). With all requests of a burst queued
// before the first computation, a server makes the same batches in every run. Linux alone:
// elsewhere nothing is held, and the file lacks WEIR_PROBE_HOLDS.
#pragma once

#include "gate/probes/inject/writer/file.h"
#include "gate/probes/inject/writer/system.h"

#ifdef __linux__
#include <linux/futex.h>
#endif

namespace weir_probe {

#ifdef __linux__
// Waits until weir lets go of hold `number`, withdraws it, or its time is over.
inline void wait_while_held(weir_probe_hold* hold, uint32_t number) {
  const KeepErrno keep_errno;
  constexpr uint64_t k_max_milliseconds = 120'000;  // milliseconds, whatever the file says
  const uint64_t milliseconds = __atomic_load_n(&hold->milliseconds, __ATOMIC_RELAXED);
  const uint64_t end =
      now_nanoseconds() +
      (milliseconds < k_max_milliseconds ? milliseconds : k_max_milliseconds) * 1'000'000;
  __atomic_store_n(&hold->held, number, __ATOMIC_RELEASE);
  for (;;) {
    const uint32_t let_go = __atomic_load_n(&hold->let_go, __ATOMIC_ACQUIRE);
    if (let_go == number || __atomic_load_n(&hold->asked, __ATOMIC_ACQUIRE) != number) return;
    const uint64_t now = now_nanoseconds();
    if (now >= end) {
      __atomic_store_n(&hold->gave_up, number, __ATOMIC_RELEASE);
      return;
    }
    const timespec remaining = {static_cast<time_t>((end - now) / 1'000'000'000),
                                static_cast<long>((end - now) % 1'000'000'000)};
    // Shared with weir, so not FUTEX_PRIVATE_FLAG.
    syscall(SYS_futex, &hold->let_go, FUTEX_WAIT, let_go, &remaining, nullptr, 0);
  }
}
#endif

// Says in the file that this process obeys holds.
inline void allow_holds([[maybe_unused]] File* file) {
#ifdef __linux__
  set_flag(file, WEIR_PROBE_HOLDS);
#endif
}

// Call it before work is handed to a device, without a lock. Costs two loads where nothing is held.
inline void hold_back([[maybe_unused]] File* file) {
#ifdef __linux__
  weir_probe_hold* hold = &file->header->hold;
  const uint32_t requested = __atomic_load_n(&hold->asked, __ATOMIC_ACQUIRE);
  if (requested == __atomic_load_n(&hold->let_go, __ATOMIC_RELAXED) ||
      requested == __atomic_load_n(&hold->gave_up, __ATOMIC_RELAXED)) {
    return;
  }
  wait_while_held(hold, requested);
#endif
}

}  // namespace weir_probe
