// Converts a device's ticks to times of the CPU's clock. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gate/probes/events.h"

namespace weir::probes {

// Call add() and add_submission() in any order, then finish() once, then the conversions.
class DeviceClock {
 public:
  // A time of both clocks. Pairs whose tick has no length are ignored.
  void add(const weir_event_clock& pair);
  // CPU time at which a submission began, and the ticks at which its device work began. Used where
  // the driver offers no pairs: work begins no earlier than its submission, and the smallest
  // distance is taken.
  void add_submission(std::uint64_t cpu, std::uint64_t ticks) {
    submissions_.push_back({cpu, ticks});
  }
  void finish();

  // Converts ticks to CPU nanoseconds; nothing where the length of a tick is not known. `near` is a
  // CPU time close to the result, such as that of the submission. It selects the pair to start
  // from, and how often a narrow counter has wrapped around.
  [[nodiscard]] std::optional<double> cpu_nanoseconds(std::uint64_t ticks, double near) const;
  // Nanoseconds from tick `begin` to tick `end`, also where the counter wrapped in between.
  [[nodiscard]] std::optional<double> length(std::uint64_t begin, std::uint64_t end) const;
  // A warning about converted times; "" where the driver relates the two clocks.
  [[nodiscard]] const char* warning() const;

 private:
  struct Submission {
    std::uint64_t cpu, ticks;
  };
  [[nodiscard]] double ticks_since(std::uint64_t from, std::uint64_t ticks) const;
  [[nodiscard]] double interpolate(std::uint64_t ticks, double near) const;

  std::vector<weir_event_clock> pairs_;  // finished: in the order of their CPU times, each once
  std::vector<Submission> submissions_;
  std::optional<weir_event_clock> tick_;  // tick and width, of the first record
  double offset_ = 0;                     // CPU nanoseconds at the first submission's ticks
};

}  // namespace weir::probes
