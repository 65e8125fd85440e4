#include "gate/probes/read/device_clock.hpp"

#include <algorithm>
#include <cmath>

namespace weir::probes {

void DeviceClock::add(const weir_event_clock& pair) {
  if (!(pair.tick_seconds > 0) || !std::isfinite(pair.tick_seconds)) return;
  if (!shape_) shape_ = pair;
  if (pair.source == WEIR_CLOCK_CALIBRATED || pair.source == WEIR_CLOCK_SAME)
    pairs_.push_back(pair);
}

void DeviceClock::settle() {
  // Threads hand in their pairs one after the other.
  std::ranges::stable_sort(pairs_, {}, &weir_event_clock::cpu);
  const auto same_time = [](const auto& a, const auto& b) { return a.cpu == b.cpu; };
  pairs_.erase(std::unique(pairs_.begin(), pairs_.end(), same_time), pairs_.end());
  if (!shape_ || !pairs_.empty() || submissions_.empty()) return;
  const Submission& first = submissions_.front();
  offset_ = static_cast<double>(first.cpu);
  for (const Submission& one : submissions_) {
    // Where the first work would have begun if this one began at once.
    const double begin = static_cast<double>(one.cpu) -
                         ticks_since(first.ticks, one.ticks) * shape_->tick_seconds * 1e9;
    offset_ = std::max(offset_, begin);
  }
}

// Signed: an earlier tick is a step back, if that is nearer than the way round.
double DeviceClock::ticks_since(std::uint64_t from, std::uint64_t ticks) const {
  const std::uint32_t bits = shape_->valid_bits;
  const std::uint64_t mask = bits == 0 || bits >= 64 ? UINT64_MAX : (std::uint64_t{1} << bits) - 1;
  const std::uint64_t ahead = (ticks - from) & mask;
  return ahead > mask / 2 ? -static_cast<double>((from - ticks) & mask)
                          : static_cast<double>(ahead);
}

// From the last pair before `near` on, at the rate up to the next one: the two clocks drift.
double DeviceClock::by_pairs(std::uint64_t ticks, double near) const {
  const double tick = shape_->tick_seconds * 1e9;
  if (pairs_.front().source == WEIR_CLOCK_SAME) return static_cast<double>(ticks) * tick;
  const auto after = std::ranges::upper_bound(
      pairs_, near, {}, [](const weir_event_clock& pair) { return static_cast<double>(pair.cpu); });
  const std::size_t at =
      after == pairs_.begin() ? 0 : static_cast<std::size_t>(after - pairs_.begin()) - 1;
  double rate = tick;
  if (pairs_.size() > 1) {
    const std::size_t from = std::min(at, pairs_.size() - 2);
    const double between = ticks_since(pairs_[from].ticks, pairs_[from + 1].ticks);
    if (between > 0) rate = static_cast<double>(pairs_[from + 1].cpu - pairs_[from].cpu) / between;
    // A rate far from what the device says of itself is a jump of one of the clocks.
    if (rate < tick * 0.99 || rate > tick * 1.01) rate = tick;
  }
  return static_cast<double>(pairs_[at].cpu) + ticks_since(pairs_[at].ticks, ticks) * rate;
}

std::optional<double> DeviceClock::nanoseconds(std::uint64_t ticks, double near) const {
  if (!shape_) return std::nullopt;
  const double tick = shape_->tick_seconds * 1e9;
  double value = 0;
  if (!pairs_.empty()) {
    value = by_pairs(ticks, near);
  } else {
    const std::uint64_t first = submissions_.empty() ? 0 : submissions_.front().ticks;
    value = offset_ + ticks_since(first, ticks) * tick;
  }
  if (shape_->valid_bits == 0 || shape_->valid_bits >= 64) return value;
  const double round = std::ldexp(tick, static_cast<int>(shape_->valid_bits));
  return value + std::round((near - value) / round) * round;
}

std::optional<double> DeviceClock::length(std::uint64_t begin, std::uint64_t end) const {
  if (!shape_) return std::nullopt;
  return std::max(0.0, ticks_since(begin, end)) * shape_->tick_seconds * 1e9;
}

const char* DeviceClock::doubt() const {
  if (!pairs_.empty() || !shape_) return "";
  if (!submissions_.empty()) {
    return "this driver does not tie its clock to the CPU's: device work is placed as early as its "
           "submission allows";
  }
  return "nothing ties this device's clock to the CPU's: its times stand on their own";
}

}  // namespace weir::probes
