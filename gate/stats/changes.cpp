#include "gate/stats/changes.hpp"

#include <cmath>

#include "gate/stats/change_search.hpp"
#include "gate/stats/quantile.hpp"

namespace weir::stats {
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

// Of a first look's chance of a false change, so much is for looks at every beginning of the
// points, which see what came and went; the rest for all points at once.
constexpr double k_share_of_beginnings = 0.1;
constexpr double k_year = 365;
// Points count at most so many spreads away from their level when shapes are compared.
constexpr double k_far = 3;
// A level is taken from so many points where there are.
constexpr std::size_t k_level = 5;

Result<void> check_numbers(std::span<const double> values, const char* what) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) return fail(Code::data, "{} {} is not a finite number", what, i);
  }
  return {};
}

Result<void> check(std::span<const double> values, std::span<const double> days,
                   const ChangePolicy& policy) {
  WEIR_CHECK(check_numbers(values, "value"));
  WEIR_CHECK(check_numbers(days, "day"));
  if (!days.empty() && days.size() != values.size()) {
    return fail(Code::data, "{} values, but {} days", values.size(), days.size());
  }
  if (!std::ranges::is_sorted(days)) return fail(Code::data, "days fall");
  const auto is_chance = [](double p) { return p > 0 && p < 1; };
  if (!is_chance(policy.false_alarm) || !is_chance(policy.interval_level) || policy.series == 0 ||
      !(policy.memory.value_or(0) >= 0 && policy.memory.value_or(0) <= 0.95)) {
    return fail(Code::internal, "find_changes: a policy outside its ranges");
  }
  return {};
}

// One series on the scale its levels are compared on.
class ChangeShapes {
 public:
  ChangeShapes(std::span<const double> values, std::span<const double> days,
               const ChangePolicy& policy)
      : values_(values.begin(), values.end()), days_(days.begin(), days.end()), policy_(policy) {
    relative_ = std::ranges::all_of(values, [](double value) { return value > 0; });
    if (relative_) {
      for (double& value : values_) value = std::log(value);
    }
    if (days_.empty()) {
      days_.resize(values_.size());
      std::iota(days_.begin(), days_.end(), 0.0);
    }
  }

  [[nodiscard]] Changes of(std::span<const Found> found, const Memory& memory) {
    memory_ = memory;
    Changes changes;
    changes.memory = memory.of_next();
    pull_in(found);
    for (std::size_t i = 0; i < found.size();) i = put_next(found, i, changes.changes);
    put_steps(changes.changes);
    put_levels(changes);
    return changes;
  }

 private:
  [[nodiscard]] std::size_t size() const { return values_.size(); }
  [[nodiscard]] std::span<const double> part(std::size_t begin, std::size_t end) const {
    return std::span<const double>(values_).subspan(begin, end - begin);
  }
  [[nodiscard]] double shown(double level) const { return relative_ ? std::exp(level) : level; }
  [[nodiscard]] double shown_size(double size) const { return relative_ ? std::expm1(size) : size; }
  [[nodiscard]] double inflation_of(std::size_t before, std::size_t after) const {
    return inflation(memory_, static_cast<double>(before), static_cast<double>(after));
  }

  // `near_`: the values, those far from the level of their segment pulled in.
  void pull_in(std::span<const Found> found) {
    std::vector<double> levels(size()), off;
    std::size_t begin = 0;
    for (std::size_t i = 0; i <= found.size(); ++i) {
      const std::size_t end = i < found.size() ? found[i].place : size();
      if (begin == end) continue;
      const double level = *median(part(begin, end));
      std::fill(levels.begin() + static_cast<std::ptrdiff_t>(begin),
                levels.begin() + static_cast<std::ptrdiff_t>(end), level);
      begin = end;
    }
    for (std::size_t i = 0; i < size(); ++i) off.push_back(std::abs(values_[i] - levels[i]));
    constexpr double k_spread_of_median = 1.4826;  // of a normal distribution
    const double far = k_far * k_spread_of_median * median(off).value_or(0);
    near_ = values_;
    if (far == 0) return;
    for (std::size_t i = 0; i < size(); ++i) {
      near_[i] = std::clamp(near_[i], levels[i] - far, levels[i] + far);
    }
  }

  // The longest run of changes in one direction, from `i` on, that one drift explains better; else
  // the step. Returns the first change that is not yet told.
  std::size_t put_next(std::span<const Found> found, std::size_t i, std::vector<Change>& changes) {
    const std::size_t begin =
        changes.empty() ? 0 : std::max(changes.back().index, changes.back().end);
    std::size_t last = i + 1;
    const bool up = found[i].up;
    while (last < found.size() && found[last].up == up) ++last;
    for (std::size_t end = last; end > i; --end) {
      // A single step with few points behind it is not told from a drift yet.
      if (end == i + 1 && size() - found[i].place < k_news) break;
      if (const auto drift = drift_of(found.subspan(0, end), i, begin,
                                      end < found.size() ? found[end].place : size())) {
        changes.push_back(*drift);
        return end;
      }
    }
    Change step;
    step.index = step.end = found[i].place;
    step.confidence = confidence_of(found[i]);
    changes.push_back(step);
    return i + 1;
  }

  // The drift that replaces the changes from `first` on, over the points [begin, end).
  [[nodiscard]] std::optional<Change> drift_of(std::span<const Found> found, std::size_t first,
                                               std::size_t begin, std::size_t end) const {
    const std::span<const double> near(near_.data() + begin, end - begin);
    const std::span<const double> days(days_.data() + begin, end - begin);
    double rest = 0, confidence = 0;
    std::size_t from = begin;
    for (std::size_t i = first; i <= found.size(); ++i) {
      const std::size_t to = i < found.size() ? found[i].place : end;
      double sum = 0, squares = 0;
      for (std::size_t k = from; k < to; ++k) sum += near_[k] - near_[begin];
      const double mean =
          near_[begin] + sum / static_cast<double>(std::max<std::size_t>(1, to - from));
      for (std::size_t k = from; k < to; ++k) squares += (near_[k] - mean) * (near_[k] - mean);
      rest += squares;
      from = to;
      if (i < found.size()) confidence = std::max(confidence, confidence_of(found[i]));
    }
    const std::size_t half = std::max<std::size_t>(1, near.size() / 2);
    const double wider = inflation_of(half, half);
    const auto ramp = nearest_ramp(near, days, wider, policy_.interval_level);
    if (!ramp || (ramp->rise.size > 0) != found[first].up) return std::nullopt;
    if (!rather_ramp(*ramp, rest, found.size() - first, static_cast<double>(near.size()), wider)) {
      return std::nullopt;
    }
    Change drift;
    drift.kind = ChangeKind::drift;
    drift.index = begin + ramp->from + 1;
    drift.end = begin + ramp->to + 1;
    drift.confidence = confidence;
    set(drift, ramp->level, ramp->level + ramp->rise.size, ramp->rise);
    return drift;
  }

  [[nodiscard]] double confidence_of(const Found& found) const {
    const double points = static_cast<double>(found.points);
    const double chance = found.place < policy_.first_look
                              ? chance_once(found.distance, points)
                              : k_year * chance_nightly(found.distance, points);
    return 1 - std::min(1.0, chance);
  }

  void set(Change& change, double before, double after, const Difference& by) const {
    change.before = shown(before);
    change.after = shown(after);
    change.relative = relative_;
    change.size = shown_size(by.size);
    change.low = shown_size(by.low);
    change.high = shown_size(by.high);
  }

  // The levels beside a step reach to the changes before and behind it, or take what part of a
  // drift is nearest.
  void put_steps(std::vector<Change>& changes) const {
    for (std::size_t i = 0; i < changes.size(); ++i) {
      Change& change = changes[i];
      if (change.kind != ChangeKind::step) continue;
      std::size_t begin = i == 0 ? 0 : changes[i - 1].end;
      if (change.index - begin < k_level && i > 0) {
        begin = std::max(changes[i - 1].index, change.index > k_level ? change.index - k_level : 0);
      }
      std::size_t end = i + 1 < changes.size() ? changes[i + 1].index : size();
      if (end <= change.index) end = std::min(size(), change.index + 1);
      const Centre before = centre_of(part(begin, change.index));
      const Centre after = centre_of(part(change.index, end));
      set(change, before.level, after.level,
          difference_of(before, after, inflation_of(change.index - begin, end - change.index),
                        policy_.interval_level));
    }
  }

  void put_levels(Changes& changes) const {
    std::size_t begin = 0;
    const auto put_flat = [&](std::size_t end) {
      if (end <= begin) return;
      const double level = shown(centre_of(part(begin, end)).level);
      changes.levels.push_back({begin, end, level, level});
      begin = end;
    };
    for (const Change& change : changes.changes) {
      put_flat(change.index);
      if (change.kind == ChangeKind::step) continue;
      changes.levels.push_back({begin, change.end, change.before, change.after});
      begin = change.end;
    }
    put_flat(size());
  }

  std::vector<double> values_, days_, near_;
  ChangePolicy policy_;
  Memory memory_;
  bool relative_ = false;
};

}  // namespace

Centre centre_of(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
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

Result<Changes> find_changes(std::span<const double> values, std::span<const double> days,
                             const ChangePolicy& policy) {
  WEIR_CHECK(check(values, days, policy));
  const std::vector<Order> orders = orders_of(values);
  const double p = policy.false_alarm / static_cast<double>(policy.series);
  const std::size_t first = std::min(policy.first_look, values.size());
  Memory memory;
  memory.told = policy.memory.value_or(-1);
  Places places;
  if (first > 0) {
    const double each = k_share_of_beginnings * p / static_cast<double>(first);
    look_nightly(orders, 0, first, each, places, memory);
    places = look_once(orders, first, (1 - k_share_of_beginnings) * p, places, memory);
  }
  look_nightly(orders, first, values.size(), p / k_year, places, memory);
  const std::vector<Found> found = settled(orders, std::move(places), memory);
  return ChangeShapes(values, days, policy).of(found, memory);
}

Result<Changes> count_changes(std::span<const double> values) {
  WEIR_CHECK(check_numbers(values, "value"));
  Changes changes;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i == 0 || values[i] != values[i - 1])
      changes.levels.push_back({i, i, values[i], values[i]});
    changes.levels.back().end = i + 1;
    if (i == 0 || values[i] == values[i - 1]) continue;
    Change change;
    change.index = change.end = i;
    change.before = values[i - 1];
    change.after = values[i];
    change.relative = change.before > 0;
    const double by = change.after - change.before;
    change.size = change.relative ? by / change.before : by;
    change.low = change.high = change.size;
    change.confidence = 1;
    changes.changes.push_back(change);
  }
  return changes;
}

}  // namespace weir::stats
