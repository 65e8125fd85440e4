// A device's ticks -> seconds of the CPU's clock. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gate/probes/events.h"

namespace weir::probes {

class DeviceClock {
 public:
  // Pairs in the order of their time.
  void add(const weir_event_clock& pair);
  // A submission's CPU begin and the ticks at which its device work began: used where the driver
  // offers no pairs. The work began no earlier; the smallest distance seen is taken.
  void add_submission(std::uint64_t cpu, std::uint64_t ticks);

  // CPU nanoseconds; nothing where the length of a tick is not known.
  [[nodiscard]] std::optional<double> nanoseconds(std::uint64_t ticks) const;
  // Ticks from `begin` to `end` in nanoseconds, also where the counter began again in between.
  [[nodiscard]] std::optional<double> length(std::uint64_t begin, std::uint64_t end) const;
  // "": tied by the driver; else what is to be said of these times.
  [[nodiscard]] const char* doubt() const;

 private:
  [[nodiscard]] double ticks_since(std::uint64_t from, std::uint64_t ticks) const;

  std::vector<weir_event_clock> pairs_;
  std::optional<weir_event_clock> shape_;  // tick and width, of the first record
  bool submitted_ = false;
  std::uint64_t first_ticks_ = 0;
  double offset_ = 0;  // CPU nanoseconds at first_ticks_
};

}  // namespace weir::probes
