// A device's ticks -> seconds of the CPU's clock. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gate/probes/events.h"

namespace weir::probes {

// Filled by add() and add_submission() in any order, then settled once, then asked.
class DeviceClock {
 public:
  void add(const weir_event_clock& pair);
  // A submission's CPU begin and the ticks at which its device work began: used where the driver
  // offers no pairs. The work began no earlier; the smallest distance seen is taken.
  void add_submission(std::uint64_t cpu, std::uint64_t ticks) {
    submissions_.push_back({cpu, ticks});
  }
  void settle();

  // CPU nanoseconds; nothing where the length of a tick is not known. `near` is a CPU time close to
  // it (when it was submitted): it picks the pair to start from, and the round of a counter that
  // begins again.
  [[nodiscard]] std::optional<double> nanoseconds(std::uint64_t ticks, double near) const;
  // Ticks from `begin` to `end` in nanoseconds, also where the counter began again in between.
  [[nodiscard]] std::optional<double> length(std::uint64_t begin, std::uint64_t end) const;
  // "": tied by the driver; else what is to be said of these times.
  [[nodiscard]] const char* doubt() const;

 private:
  struct Submission {
    std::uint64_t cpu, ticks;
  };
  [[nodiscard]] double ticks_since(std::uint64_t from, std::uint64_t ticks) const;
  [[nodiscard]] double by_pairs(std::uint64_t ticks, double near) const;

  std::vector<weir_event_clock> pairs_;  // settled: in the order of their CPU times, each once
  std::vector<Submission> submissions_;
  std::optional<weir_event_clock> shape_;  // tick and width, of the first record
  double offset_ = 0;                      // CPU nanoseconds at the first submission's ticks
};

}  // namespace weir::probes
