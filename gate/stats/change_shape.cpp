#include "gate/stats/change_shape.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "gate/stats/quantile.hpp"

namespace weir::stats {

Centre centre_of(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t cut = sorted.size() / 5;
  const double low = sorted[cut], high = sorted[sorted.size() - 1 - cut];
  Centre centre;
  centre.kept = static_cast<double>(sorted.size() - 2 * cut);
  double pulled = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const double value = std::clamp(sorted[i], low, high);
    pulled += value / static_cast<double>(sorted.size());
    if (i >= cut && i < sorted.size() - cut) centre.level += value / centre.kept;
  }
  for (const double value : sorted) {
    const double off = std::clamp(value, low, high) - pulled;
    centre.squares += off * off;
  }
  return centre;
}

Difference difference_of(const Centre& before, const Centre& after, double inflation,
                         double level) {
  Difference difference;
  difference.size = after.level - before.level;
  const double freedom = before.kept + after.kept - 2;
  double reach = std::numeric_limits<double>::infinity();
  if (freedom >= 1) {
    const double one = (before.squares + after.squares) / freedom;
    const double variance = one * (1 / before.kept + 1 / after.kept) * inflation;
    reach = student_quantile(1 - level / 2, freedom) * std::sqrt(variance);
  }
  difference.low = difference.size - reach;
  difference.high = difference.size + reach;
  return difference;
}

namespace {

// Running sums, from which the least squares of any ramp come in a few steps.
class RampSums {
 public:
  RampSums(std::span<const double> values, std::span<const double> days)
      : days_(days), at_(values.size() + 1) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double x = days[i] - days[0], y = values[i] - values[0];
      at_[i + 1] = {at_[i].x + x, at_[i].xx + x * x, at_[i].y + y, at_[i].xy + x * y};
      squares_ += y * y;
    }
    base_ = values[0];
  }

  // A straight line between the points `from` and `to`; empty where they are of one day.
  [[nodiscard]] std::optional<Ramp> fit(std::size_t from, std::size_t to) const {
    const double begin = days_[from] - days_[0], length = days_[to] - days_[from];
    if (length <= 0) return std::nullopt;
    const double all = static_cast<double>(days_.size());
    const Sums part = between(from, to), rest = between(to, days_.size());
    const double inside = static_cast<double>(to - from), behind = all - static_cast<double>(to);
    const double f = (part.x - inside * begin) / length + behind;
    const double ff =
        (part.xx - 2 * begin * part.x + inside * begin * begin) / (length * length) + behind;
    const double fy = (part.xy - begin * part.y) / length + rest.y;
    const double determinant = all * ff - f * f, y = at_.back().y;
    if (determinant <= 1e-12 * all * all) return std::nullopt;
    Ramp ramp;
    ramp.from = from;
    ramp.to = to;
    ramp.rise.size = (all * fy - f * y) / determinant;
    const double level = (y - ramp.rise.size * f) / all;
    ramp.level = level + base_;
    ramp.rest = std::max(0.0, squares_ - level * y - ramp.rise.size * fy);
    return ramp;
  }

 private:
  struct Sums {
    double x = 0, xx = 0, y = 0, xy = 0;
  };
  [[nodiscard]] Sums between(std::size_t from, std::size_t to) const {
    const Sums &a = at_[from], &b = at_[to];
    return {b.x - a.x, b.xx - a.xx, b.y - a.y, b.xy - a.xy};
  }

  std::span<const double> days_;
  std::vector<Sums> at_;
  double squares_ = 0, base_ = 0;
};

// So many places are tried for each end at first, and then those near the best.
constexpr std::size_t k_places = 32;

}  // namespace

std::optional<Ramp> nearest_ramp(std::span<const double> values, std::span<const double> days,
                                 double inflation, double level) {
  const std::size_t n = values.size();
  if (n < k_shortest_drift + 2) return std::nullopt;
  const RampSums sums(values, days);
  // That it starts or ends in between has to be worth a number that may be chosen.
  const double count = static_cast<double>(n) / inflation, worth = std::log(std::max(2.0, count));
  std::optional<Ramp> best;
  double least = 0;
  const auto look = [&](std::size_t from, std::size_t to) {
    if (to >= n || to < from + k_shortest_drift) return;
    const std::optional<Ramp> ramp = sums.fit(from, to);
    if (!ramp) return;
    const double cost = count * std::log(std::max(ramp->rest, 1e-300)) + (from > 0 ? worth : 0) +
                        (to + 1 < n ? worth : 0);
    if (best && cost >= least) return;
    best = ramp;
    least = cost;
  };
  std::size_t step = std::max<std::size_t>(1, n / k_places);
  for (std::size_t from = 0; from < n; from += step) {
    for (std::size_t to = from + k_shortest_drift; to < n; to += step) look(from, to);
    look(from, n - 1);
  }
  if (!best) return std::nullopt;
  while (step > 1) {
    step = (step + 1) / 2;
    const std::size_t from = best->from, to = best->to;
    for (std::size_t a = from > step ? from - step : 0; a <= from + step; a += step) {
      for (std::size_t b = to > step ? to - step : 0; b <= to + step; b += step) look(a, b);
      look(a, n - 1);
    }
  }
  // Where the line begins and ends is fitted too, so each level is known as well as the level
  // points beside it, or, where there are hardly any, as the end of a straight line through the
  // points between.
  const double between = static_cast<double>(best->to - best->from);
  const auto one_over = [between](std::size_t flat) {
    return 1 / std::max(static_cast<double>(flat), between / 4);
  };
  const double freedom = std::max(1.0, static_cast<double>(n) - 4);
  const double variance =
      best->rest / freedom * inflation * (one_over(best->from) + one_over(n - 1 - best->to));
  const double reach = student_quantile(1 - level / 2, freedom) * std::sqrt(variance);
  best->rise.low = best->rise.size - reach;
  best->rise.high = best->rise.size + reach;
  return best;
}

bool rather_ramp(const Ramp& ramp, double rest, std::size_t steps, double points,
                 double inflation) {
  if (rest <= 0) return false;  // nothing is left to explain
  // A step chooses a place and a level, the first level apart; a ramp chooses two of each, but of
  // places only those far apart, which leaves it hardly more freedom than one step has.
  const double more = 2 * (static_cast<double>(steps) - 1);
  const double count = points / inflation;
  const double gain =
      ramp.rest <= 0 ? std::numeric_limits<double>::infinity() : count * std::log(rest / ramp.rest);
  return gain > -more * std::log(std::max(2.0, count));
}

}  // namespace weir::stats
