// The writing side of the event file (gate/probes/events.h), for every probe.
//
// Off unless WEIR_PROBE_EVENTS is set. No lock between threads but when one needs a fresh block: a
// record costs about what copying it costs. Where the file cannot grow, one line goes to standard
// error, the rest is dropped and counted, and the program goes on.
#pragma once

#include "gate/probes/events.h"
#include "gate/probes/inject/writer/file.h"
#include "gate/probes/inject/writer/system.h"

namespace weir_probe {

enum class Timing { off, batched, serialized };

// Reads the environment, once, and creates the event file with `file`'s name. Call it after
// open_file, under the same lock.
void open_events(const File& file);
// In the child of a fork: its events go to a file of its own (or nowhere, when it has none).
void detach_events_after_fork();
void make_forked_events(const File& file);

extern bool g_events_on;  // set once; read on hot paths
inline bool is_recording_events() { return __builtin_expect(g_events_on, 0); }
// Returns the timing that the environment asks for; off without events.
[[nodiscard]] Timing timing_wanted();

// Appends one record: `head` and, when it has any, `tail` directly behind it, padded to 8 bytes.
// At most k_max_event_bytes bytes together. False when there was no room.
constexpr uint32_t k_max_event_bytes = 64 * 1024;
bool write_event(uint16_t kind, uint32_t index, const void* head, uint32_t head_bytes,
                 const void* tail = nullptr, uint32_t tail_bytes = 0);
// Writes when the device ran a command buffer, in as many records as its groups take. `pairs`:
// begin and end of each group. All times in ticks.
void write_times(uint32_t queue, uint64_t serial, uint32_t order, uint64_t begin, uint64_t end,
                 const uint64_t* pairs, uint32_t groups);
// Writes a wait that ends now. `begin`: CPU nanoseconds, 0 if unknown. `queue` may be UINT32_MAX.
void write_wait(uint32_t queue, uint32_t kind, uint64_t begin, bool sync);
// Returns room for `bytes` (a multiple of 8, at most k_max_event_bytes) of whole records, which the
// caller fills and then publishes with commit_event_bytes. Null when there is no room.
char* reserve_event_bytes(uint32_t bytes);
void commit_event_bytes(uint32_t bytes);

// Adds to the processor time that recording cost the program, a field of the file's header.
void note_recording(uint64_t nanoseconds);
extern __thread uint32_t t_recording_depth __attribute__((tls_model("initial-exec")));
// Adds the processor time of its scope to the cost of recording. Nested scopes count once.
class OwnTimeScope {
 public:
  OwnTimeScope()
      : begin_(t_recording_depth++ == 0 && is_recording_events() ? thread_nanoseconds() : 0) {}
  ~OwnTimeScope() {
    --t_recording_depth;
    if (begin_ != 0) note_recording(thread_nanoseconds() - begin_);
  }
  OwnTimeScope(const OwnTimeScope&) = delete;
  OwnTimeScope& operator=(const OwnTimeScope&) = delete;

 private:
  uint64_t begin_;
};
// Does the same for a short scope by sampling: only every k_every-th scope of the thread is timed,
// by a cheaper clock, and counts k_every times. A scope longer than k_long nanoseconds was
// interrupted and is left out.
extern __thread uint32_t t_sample_count __attribute__((tls_model("initial-exec")));
class SampledOwnTimeScope {
 public:
  SampledOwnTimeScope()
      : begin_(t_recording_depth == 0 && ++t_sample_count % k_every == k_every / 2
                   ? now_nanoseconds()
                   : 0) {}
  ~SampledOwnTimeScope() {
    if (begin_ == 0) return;
    const uint64_t each = now_nanoseconds() - begin_;
    if (each < k_long) note_recording(k_every * each);
  }
  SampledOwnTimeScope(const SampledOwnTimeScope&) = delete;
  SampledOwnTimeScope& operator=(const SampledOwnTimeScope&) = delete;

 private:
  static constexpr uint32_t k_every = 64;
  static constexpr uint64_t k_long = 10'000;
  uint64_t begin_;
};

// The time at which the program first asked whether a queue was done, and it was not; 0: not since
// the last answer. Atomic.
struct PollStart {
  uint64_t since;
  void note_not_ready(uint64_t now) {
    uint64_t none = 0;
    __atomic_compare_exchange_n(&since, &none, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  }
  uint64_t take() { return __atomic_exchange_n(&since, 0, __ATOMIC_RELAXED); }
};

void set_events_flag(uint32_t flag);
// Notes in the file that the probe does `what` ("counts") without times. The first time, a line on
// standard error gives the reason.
void report_untimed(const char* what, const char* why);

}  // namespace weir_probe
