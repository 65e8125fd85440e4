// Converts a device's ticks to times of the CPU's clock.
#include "gate/probes/read/device_clock.hpp"

#include <algorithm>
#include <cmath>

namespace weir::probes {

void DeviceClock::add(const weir_event_clock& pair) {
  if (!(pair.tick_seconds > 0) || !std::isfinite(pair.tick_seconds)) return;
  if (!tick_) tick_ = pair;
  if (pair.source == WEIR_CLOCK_CALIBRATED || pair.source == WEIR_CLOCK_SAME)
    pairs_.push_back(pair);
}

// Sorts the pairs of times. Without any, it places the device's clock as early as all submissions
// allow.
void DeviceClock::finish() {
  // Pairs come thread by thread, so they are not in order.
  std::ranges::stable_sort(pairs_, {}, &weir_event_clock::cpu);
  const auto same_time = [](const auto& a, const auto& b) { return a.cpu == b.cpu; };
  pairs_.erase(std::unique(pairs_.begin(), pairs_.end(), same_time), pairs_.end());
  if (!tick_ || !pairs_.empty() || submissions_.empty()) return;
  const Submission& first = submissions_.front();
  offset_ = static_cast<double>(first.cpu);
  for (const Submission& submission : submissions_) {
    // CPU time of the first submission's ticks, if this submission's work began at once.
    const double begin = static_cast<double>(submission.cpu) -
                         ticks_since(first.ticks, submission.ticks) * tick_->tick_seconds * 1e9;
    offset_ = std::max(offset_, begin);
  }
}

// Ticks from `from` to `ticks` of a counter that wraps. Negative if the way back is shorter.
double DeviceClock::ticks_since(std::uint64_t from, std::uint64_t ticks) const {
  const std::uint32_t bits = tick_->valid_bits;
  const std::uint64_t mask = bits == 0 || bits >= 64 ? UINT64_MAX : (std::uint64_t{1} << bits) - 1;
  const std::uint64_t ahead = (ticks - from) & mask;
  return ahead > mask / 2 ? -static_cast<double>((from - ticks) & mask)
                          : static_cast<double>(ahead);
}

// Converts ticks to CPU nanoseconds, from the last pair of times before `near`. Clocks drift, so
// the rate is the one between that pair and the next.
double DeviceClock::interpolate(std::uint64_t ticks, double near) const {
  const double tick = tick_->tick_seconds * 1e9;
  if (pairs_.front().source == WEIR_CLOCK_SAME) return static_cast<double>(ticks) * tick;
  const auto after = std::ranges::upper_bound(
      pairs_, near, {}, [](const weir_event_clock& pair) { return static_cast<double>(pair.cpu); });
  const std::size_t start =
      after == pairs_.begin() ? 0 : static_cast<std::size_t>(after - pairs_.begin()) - 1;
  double rate = tick;
  if (pairs_.size() > 1) {
    const std::size_t from = std::min(start, pairs_.size() - 2);
    const double between = ticks_since(pairs_[from].ticks, pairs_[from + 1].ticks);
    if (between > 0) rate = static_cast<double>(pairs_[from + 1].cpu - pairs_[from].cpu) / between;
    // A rate far from the device's nominal one means that one of the clocks jumped.
    if (rate < tick * 0.99 || rate > tick * 1.01) rate = tick;
  }
  return static_cast<double>(pairs_[start].cpu) + ticks_since(pairs_[start].ticks, ticks) * rate;
}

// Converts ticks to CPU nanoseconds, by pairs of times if there are any; nothing if the clock is
// not known. `near`: a CPU time close to the result.
std::optional<double> DeviceClock::cpu_nanoseconds(std::uint64_t ticks, double near) const {
  if (!tick_) return std::nullopt;
  const double tick = tick_->tick_seconds * 1e9;
  double value = 0;
  if (!pairs_.empty()) {
    value = interpolate(ticks, near);
  } else {
    const std::uint64_t first = submissions_.empty() ? 0 : submissions_.front().ticks;
    value = offset_ + ticks_since(first, ticks) * tick;
  }
  if (tick_->valid_bits == 0 || tick_->valid_bits >= 64) return value;
  // A narrow counter wraps: of all times with these ticks, take the one closest to `near`.
  const double period = std::ldexp(tick, static_cast<int>(tick_->valid_bits));
  return value + std::round((near - value) / period) * period;
}

std::optional<double> DeviceClock::length(std::uint64_t begin, std::uint64_t end) const {
  if (!tick_) return std::nullopt;
  return std::max(0.0, ticks_since(begin, end)) * tick_->tick_seconds * 1e9;
}

const char* DeviceClock::warning() const {
  if (!pairs_.empty() || !tick_) return "";
  if (!submissions_.empty()) {
    return "this driver does not tie its clock to the CPU's: device work is placed as early as its "
           "submission allows";
  }
  return "nothing ties this device's clock to the CPU's: its times stand on their own";
}

}  // namespace weir::probes
