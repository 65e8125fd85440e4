// Fits ramps of every place to a series by sums over its beginnings.
#include "gate/stats/ramp.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace weir::stats {

Ramps::Ramps(std::span<const double> values) : size_(values.size()) {
  first_ = values.empty() ? 0 : values[0];
  sums_.assign(size_ + 1, 0);
  products_.assign(size_ + 1, 0);
  double squares = 0;
  for (std::size_t i = 0; i < size_; ++i) {
    const double value = values[i] - first_;
    sums_[i + 1] = sums_[i] + value;
    products_[i + 1] = products_[i] + static_cast<double>(i) * value;
    squares += value * value;
  }
  total_ =
      squares - sums_[size_] * sums_[size_] / static_cast<double>(std::max<std::size_t>(1, size_));
}

// Fits a ramp by linear regression: values stay level before `begin`, move along a line, and stay
// level from `end` on. Takes constant time, from sums over the beginnings of the series.
Ramp Ramps::fit(std::size_t begin, std::size_t end) const {
  const double count = static_cast<double>(size_);
  const double length = static_cast<double>(end - begin);
  const double points_after = static_cast<double>(size_ - end);
  const double weight_sum = (length + 1) / 2 + points_after;
  const double weight_squares = (length + 1) * (2 * length + 1) / (6 * length) + points_after;
  const double on_ramp = products_[end] - products_[begin] -
                         (static_cast<double>(begin) - 1) * (sums_[end] - sums_[begin]);
  const double weighted_values = on_ramp / length + sums_[size_] - sums_[end];
  const double information = weight_squares - weight_sum * weight_sum / count;
  const double covariance = weighted_values - weight_sum * sums_[size_] / count;
  Ramp ramp{begin, end};
  const double height = covariance / information;
  ramp.before = first_ + (sums_[size_] - height * weight_sum) / count;
  ramp.after = ramp.before + height;
  ramp.squares = total_ - height * covariance;
  ramp.variance = 1 / information;
  return ramp;
}

Ramp Ramps::best() const {
  Ramp best{1, 2};
  best.squares = std::numeric_limits<double>::infinity();
  for (std::size_t begin = 1; begin < size_; begin += stride_) {
    for (std::size_t end = begin + 1; end <= size_; end += stride_) {
      const Ramp ramp = fit(begin, end);
      if (ramp.squares < best.squares) best = ramp;
    }
  }
  return best;
}

// Returns the smallest and the largest height of all ramps that fit nearly as well as `likeliest`:
// at most `slack` more in squared distances (profile likelihood).
std::pair<double, double> Ramps::heights(const Ramp& likeliest, double slack) const {
  double low = likeliest.height(), high = low;
  for (std::size_t begin = 1; begin < size_; begin += stride_) {
    for (std::size_t end = begin + 1; end <= size_; end += stride_) {
      const Ramp ramp = fit(begin, end);
      const double unused_slack = slack - (ramp.squares - likeliest.squares);
      if (unused_slack < 0) continue;
      const double height_margin = std::sqrt(unused_slack * ramp.variance);
      low = std::min(low, ramp.height() - height_margin);
      high = std::max(high, ramp.height() + height_margin);
    }
  }
  return {low, high};
}

}  // namespace weir::stats
