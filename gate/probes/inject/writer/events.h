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

// Looks at the environment once and makes the event file of `file`'s name. To be called after
// open_file, under the same lock.
void open_events(const File& file);
// In the child of a fork: its events go to a file of its own (or nowhere, when it has none).
void detach_events_after_fork();
void make_forked_events(const File& file);

extern bool g_events_on;  // set once; what a hot path asks
inline bool events_on() { return __builtin_expect(g_events_on, 0); }
// What the environment asks for; off without events.
[[nodiscard]] Timing timing_wanted();

// Appends one record: `head` and, when it has any, `tail` directly behind it, padded to 8 bytes.
// At most k_most_event bytes together. False when there was no room.
constexpr uint32_t k_most_event = 64 * 1024;
bool write_event(uint16_t kind, uint32_t index, const void* head, uint32_t head_bytes,
                 const void* tail = nullptr, uint32_t tail_bytes = 0);
// When the device ran a command buffer, in as many records as its groups take. `pairs`: begin and
// end of each, all in ticks.
void write_times(uint32_t queue, uint64_t serial, uint32_t order, uint64_t begin, uint64_t end,
                 const uint64_t* pairs, uint32_t groups);
// A wait that ends now; `begin` 0: nobody said when it began. `queue` may be UINT32_MAX.
void write_wait(uint32_t queue, uint32_t kind, uint64_t begin, bool sync);
// For many records at once: room for `bytes` (a multiple of 8, at most k_most_event) of whole
// records, which the caller fills and then publishes. Null when there is no room.
char* begin_records(uint32_t bytes);
void end_records(uint32_t bytes);

// Adds to the processor time that recording cost the program, as the file's header tells.
void note_recording(uint64_t nanoseconds);
extern __thread uint32_t t_recorded __attribute__((tls_model("initial-exec")));
// Notes what the thread takes from here to the end of the scope, with all that is noted within.
class Recorded {
 public:
  Recorded() : begin_(t_recorded++ == 0 && events_on() ? thread_nanoseconds() : 0) {}
  ~Recorded() {
    --t_recorded;
    if (begin_ != 0) note_recording(thread_nanoseconds() - begin_);
  }
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;

 private:
  uint64_t begin_;
};
// The same for what is short: a clock that costs less is read for one in so many of the thread, in
// their middle, and its time stands for all of them. A long one was interrupted, and is left out.
extern __thread uint32_t t_sampled __attribute__((tls_model("initial-exec")));
class Sampled {
 public:
  Sampled()
      : begin_(t_recorded == 0 && ++t_sampled % k_every == k_every / 2 ? now_nanoseconds() : 0) {}
  ~Sampled() {
    if (begin_ == 0) return;
    const uint64_t each = now_nanoseconds() - begin_;
    if (each < k_long) note_recording(k_every * each);
  }
  Sampled(const Sampled&) = delete;
  Sampled& operator=(const Sampled&) = delete;

 private:
  static constexpr uint32_t k_every = 64;
  static constexpr uint64_t k_long = 10'000;
  uint64_t begin_;
};

// When the program first asked whether a queue was done, and it was not; 0: it did not since the
// last answer. Atomic.
struct Polled {
  uint64_t since;
  void not_yet(uint64_t now) {
    uint64_t none = 0;
    __atomic_compare_exchange_n(&since, &none, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  }
  uint64_t take() { return __atomic_exchange_n(&since, 0, __ATOMIC_RELAXED); }
};

void set_events_flag(uint32_t flag);
// Says in the file, and the first time in a line on standard error, that the probe does `what`
// ("counts") without times.
void untimed(const char* what, const char* why);

}  // namespace weir_probe
