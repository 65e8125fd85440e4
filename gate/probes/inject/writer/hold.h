// Holds back what is about to be computed while weir says so (weir_probe_hold): with all requests
// of a burst queued before the first computation, a server makes the same batches in every run.
// Linux alone; elsewhere nothing is ever held, and the file says so by lacking WEIR_PROBE_HOLDS.
#pragma once

#include "gate/probes/inject/writer/file.h"
#include "gate/probes/inject/writer/system.h"

#ifdef __linux__
#include <linux/futex.h>
#endif

namespace weir_probe {

#ifdef __linux__
inline void wait_while_held(weir_probe_hold* hold, uint32_t number) {
  const KeepErrno keep;
  constexpr uint64_t k_most = 120'000;  // milliseconds, whatever the file says
  const uint64_t asked = __atomic_load_n(&hold->milliseconds, __ATOMIC_RELAXED);
  const uint64_t end = now_nanoseconds() + (asked < k_most ? asked : k_most) * 1'000'000;
  __atomic_store_n(&hold->held, number, __ATOMIC_RELEASE);
  for (;;) {
    const uint32_t let_go = __atomic_load_n(&hold->let_go, __ATOMIC_ACQUIRE);
    if (let_go == number || __atomic_load_n(&hold->asked, __ATOMIC_ACQUIRE) != number) return;
    const uint64_t now = now_nanoseconds();
    if (now >= end) {
      __atomic_store_n(&hold->gave_up, number, __ATOMIC_RELEASE);
      return;
    }
    const timespec left = {static_cast<time_t>((end - now) / 1'000'000'000),
                           static_cast<long>((end - now) % 1'000'000'000)};
    // Shared with weir, so not FUTEX_PRIVATE_FLAG.
    syscall(SYS_futex, &hold->let_go, FUTEX_WAIT, let_go, &left, nullptr, 0);
  }
}
#endif

inline void may_hold([[maybe_unused]] File* file) {
#ifdef __linux__
  set_flag(file, WEIR_PROBE_HOLDS);
#endif
}

// To be called before work is handed to a device, without a lock. Two loads where nothing is held.
inline void hold_back([[maybe_unused]] File* file) {
#ifdef __linux__
  weir_probe_hold* hold = &file->header->hold;
  const uint32_t asked = __atomic_load_n(&hold->asked, __ATOMIC_ACQUIRE);
  if (asked == __atomic_load_n(&hold->let_go, __ATOMIC_RELAXED) ||
      asked == __atomic_load_n(&hold->gave_up, __ATOMIC_RELAXED)) {
    return;
  }
  wait_while_held(hold, asked);
#endif
}

}  // namespace weir_probe
