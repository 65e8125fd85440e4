#include "gate/probes/device_clock.hpp"

#include <algorithm>
#include <cmath>

namespace weir::probes {
namespace {

std::uint64_t mask_of(std::uint32_t bits) {
  return bits == 0 || bits >= 64 ? UINT64_MAX : (std::uint64_t{1} << bits) - 1;
}

}  // namespace

void DeviceClock::add(const weir_event_clock& pair) {
  if (!(pair.tick_seconds > 0) || !std::isfinite(pair.tick_seconds)) return;
  if (!shape_) shape_ = pair;
  if (pair.source != WEIR_CLOCK_CALIBRATED && pair.source != WEIR_CLOCK_SAME) return;
  if (!pairs_.empty() && pair.cpu <= pairs_.back().cpu) return;
  pairs_.push_back(pair);
}

void DeviceClock::add_submission(std::uint64_t cpu, std::uint64_t ticks) {
  if (!shape_ || !pairs_.empty()) return;
  if (!submitted_) {
    submitted_ = true;
    first_ticks_ = ticks;
    offset_ = static_cast<double>(cpu);
    return;
  }
  // Where the first work would have begun if this one began at once.
  const double begin =
      static_cast<double>(cpu) - ticks_since(first_ticks_, ticks) * shape_->tick_seconds * 1e9;
  offset_ = std::max(offset_, begin);
}

// Signed: an earlier tick is a step back, if that is nearer than the way round.
double DeviceClock::ticks_since(std::uint64_t from, std::uint64_t ticks) const {
  const std::uint64_t mask = mask_of(shape_->valid_bits);
  const std::uint64_t ahead = (ticks - from) & mask;
  return ahead > mask / 2 ? -static_cast<double>((from - ticks) & mask)
                          : static_cast<double>(ahead);
}

std::optional<double> DeviceClock::nanoseconds(std::uint64_t ticks) const {
  if (!shape_) return std::nullopt;
  const double tick = shape_->tick_seconds * 1e9;
  if (pairs_.empty()) return offset_ + ticks_since(first_ticks_, ticks) * tick;
  if (pairs_.front().source == WEIR_CLOCK_SAME) return static_cast<double>(ticks) * tick;
  // The last pair not behind `ticks`, and the rate up to the next one: the two clocks drift.
  std::size_t at = 0;
  while (at + 1 < pairs_.size() && ticks_since(pairs_[at + 1].ticks, ticks) >= 0) ++at;
  double rate = tick;
  if (pairs_.size() > 1) {
    const std::size_t from = std::min(at, pairs_.size() - 2);
    const double between = ticks_since(pairs_[from].ticks, pairs_[from + 1].ticks);
    if (between > 0) {
      rate = static_cast<double>(pairs_[from + 1].cpu - pairs_[from].cpu) / between;
    }
    // A rate far from what the device says of itself is a jump of one of the clocks.
    if (rate < tick * 0.99 || rate > tick * 1.01) rate = tick;
  }
  return static_cast<double>(pairs_[at].cpu) + ticks_since(pairs_[at].ticks, ticks) * rate;
}

std::optional<double> DeviceClock::length(std::uint64_t begin, std::uint64_t end) const {
  if (!shape_) return std::nullopt;
  return std::max(0.0, ticks_since(begin, end)) * shape_->tick_seconds * 1e9;
}

const char* DeviceClock::doubt() const {
  if (!pairs_.empty() || !shape_) return "";
  if (submitted_) {
    return "this driver does not tie its clock to the CPU's: device work is placed as early as its "
           "submission allows";
  }
  return "nothing ties this device's clock to the CPU's: its times stand on their own";
}

}  // namespace weir::probes
