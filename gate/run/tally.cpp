#include "gate/run/tally.hpp"

#include <algorithm>

namespace weir::run {

using profile::Ended;
using profile::Pass;
using profile::RunRecord;

Tally::Tally(const Plan& plan, std::int64_t side_by_side)
    : side_by_side_(std::max<std::int64_t>(1, side_by_side)) {
  for (const Step& step : plan.steps) ++all_[key(step)].total;
}

void Tally::note(const Step& step, const RunRecord& record) {
  One& one = all_[key(step)];
  ++one.done;
  one.seconds += record.wall_seconds;
  if (record.error) ++one.failures;
  if (record.ended == Ended::timed_out) ++one.timeouts;
}

bool Tally::too_many(const One& one) { return one.timeouts >= 1 || one.failures >= 2; }

bool Tally::given_up(const Step& step) const { return !step.pair && too_many(all_.at(key(step))); }

bool Tally::would_give_up(const Step& step, const RunRecord& record) const {
  if (step.pair) return false;
  One one = all_.at(key(step));
  if (record.error) ++one.failures;
  if (record.ended == Ended::timed_out) ++one.timeouts;
  return too_many(one);
}

std::int64_t Tally::open(const Step& step) const {
  const One& one = all_.at(key(step));
  return one.total - one.done;
}

std::int64_t Tally::done(Pass pass) const {
  std::int64_t sum = 0;
  for (const auto& [key, one] : all_) {
    if (std::get<1>(key) == pass) sum += too_many(one) ? one.total : one.done;
  }
  return sum;
}

std::int64_t Tally::total(Pass pass) const {
  std::int64_t sum = 0;
  for (const auto& [key, one] : all_) {
    if (std::get<1>(key) == pass) sum += one.total;
  }
  return sum;
}

std::optional<double> Tally::seconds_left() const {
  double known_seconds = 0;
  std::int64_t known = 0;
  for (const auto& [key, one] : all_) {
    known_seconds += one.seconds;
    known += one.done;
  }
  if (known == 0) return std::nullopt;
  double left = 0;
  for (const auto& [key, one] : all_) {
    if (too_many(one)) continue;
    // What is not known yet takes as long as the others do on average.
    const double each = one.done > 0 ? one.seconds / static_cast<double>(one.done)
                                     : known_seconds / static_cast<double>(known);
    const double seconds = each * static_cast<double>(one.total - one.done);
    left +=
        std::get<1>(key) == Pass::counted ? seconds / static_cast<double>(side_by_side_) : seconds;
  }
  return left;
}

}  // namespace weir::run
