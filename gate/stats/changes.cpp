#include "gate/stats/changes.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "gate/stats/quantile.hpp"
#include "gate/stats/trend_rule.hpp"

namespace weir::stats {
namespace {

Result<void> check_numbers(std::span<const double> numbers) {
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (!std::isfinite(numbers[i])) return fail(Code::data, "value {} is not finite", i);
  }
  return {};
}

// Shares of 4 000 series (docs/evidence/change-points.md).
constexpr std::array k_false_alarms{std::pair{-0.8, 0.0520}, std::pair{-0.6, 0.0302},
                                    std::pair{-0.4, 0.0168}, std::pair{-0.2, 0.0090},
                                    std::pair{0.0, 0.0045}};

// The line through the two points of the table that `at` lies between or next to.
template <class Key, class Value>
double along_table(double at, Key key, Value value) {
  std::size_t i = 0;
  while (i + 2 < k_false_alarms.size() &&
         (key(k_false_alarms[i + 1]) < at) == (key(k_false_alarms[0]) < key(k_false_alarms[1]))) {
    ++i;
  }
  const auto &a = k_false_alarms[i], &b = k_false_alarms[i + 1];
  return value(a) + (value(b) - value(a)) * (at - key(a)) / (key(b) - key(a));
}
double offset_of(const std::pair<double, double>& row) { return row.first; }
double log_share_of(const std::pair<double, double>& row) { return std::log(row.second); }

// What the alerts of a series come to: changes with their sizes, and the levels between them.
class Description {
 public:
  Description(std::span<const double> values, const ChangePolicy& policy)
      : scaled_(scaled(values)), policy_(policy) {}

  [[nodiscard]] Changes read() {
    TrendRule rule(policy_.offset);
    for (const double value : scaled_.values) rule.add(value);
    put_changes(rule.alerts());
    put_lines();
    put_sizes();
    for (const Line& line : lines_) {
      found_.levels.push_back({line.begin, line.end, shown(line.first), shown(line.last)});
    }
    return std::move(found_);
  }

 private:
  struct Line {
    std::size_t begin = 0, end = 0;
    bool sloped = false;
    double first = 0, last = 0;

    [[nodiscard]] double points() const { return static_cast<double>(end - begin); }
  };

  [[nodiscard]] double shown(double level) const {
    return scaled_.relative ? std::exp(level) : level * scaled_.scale;
  }
  [[nodiscard]] double shown_size(double size) const {
    return scaled_.relative ? std::expm1(size) : size * scaled_.scale;
  }

  void put_changes(const std::vector<Alert>& alerts) {
    double slope = 0;
    std::optional<std::size_t> open;  // the drift that goes on
    for (const Alert& alert : alerts) {
      Change change;
      // A drift may have begun with the series.
      change.index = change.end = std::max<std::size_t>(1, alert.place);
      change.found = alert.night;
      change.settled = alert.settled;
      change.relative = scaled_.relative;
      change.confidence = 1 - yearly_false_alarms(policy_.offset + alert.excess);
      if (alert.kind == Alert::Kind::bend) {
        if (open) found_.changes[*open].end = alert.place;
        const double before = std::exchange(slope, slope + alert.size);
        const bool ended = open && std::abs(slope) < std::abs(before) / 2;
        open.reset();
        if (ended) continue;
        open = found_.changes.size();
        change.kind = ChangeKind::drift;
        change.end = scaled_.values.size();
      }
      noise_.push_back(alert.noise / (1 - alert.memory));
      found_.changes.push_back(change);
    }
  }

  // The first point is none of a change, but a drift may have begun with it.
  static std::size_t begin_of(const Change& change) {
    return change.kind == ChangeKind::drift && change.index == 1 ? 0 : change.index;
  }

  // A straight line between neighbouring changes, level where no drift is under way.
  void put_lines() {
    std::vector<std::size_t> places{0, scaled_.values.size()};
    for (const Change& change : found_.changes) {
      places.push_back(begin_of(change));
      places.push_back(change.end);
    }
    std::ranges::sort(places);
    places.erase(std::unique(places.begin(), places.end()), places.end());
    for (std::size_t i = 0; i + 1 < places.size(); ++i) {
      Line line{places[i], places[i + 1]};
      line.sloped =
          line.points() > 2 && std::ranges::any_of(found_.changes, [&](const Change& one) {
            return begin_of(one) <= line.begin && line.begin < one.end;
          });
      fit(line);
      lines_.push_back(line);
    }
  }

  // Level: the mean of the middle three fifths. Sloped: least squares of the points, those far from
  // the line between the medians of its two halves pulled in.
  void fit(Line& line) const {
    const std::span<const double> points(scaled_.values.data() + line.begin, line.end - line.begin);
    if (!line.sloped) {
      std::vector<double> sorted(points.begin(), points.end());
      std::ranges::sort(sorted);
      const std::size_t cut = sorted.size() / 5;
      double sum = 0;
      for (std::size_t i = cut; i < sorted.size() - cut; ++i) sum += sorted[i] - sorted[cut];
      line.first = line.last = sorted[cut] + sum / static_cast<double>(sorted.size() - 2 * cut);
      return;
    }
    const std::size_t half = points.size() / 2;
    const double low = *median(points.first(half)), high = *median(points.last(half));
    const double count = line.points(), middle = (count - 1) / 2;
    const double guess = (high - low) / (count - static_cast<double>(half));
    const auto guessed = [&](double at) { return (low + high) / 2 + guess * (at - middle); };
    std::vector<double> off;
    for (std::size_t i = 0; i < points.size(); ++i) {
      off.push_back(std::abs(points[i] - guessed(static_cast<double>(i))));
    }
    const double far = 5 * *median(off);
    double sum = 0, product = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
      const double at = static_cast<double>(i), line_at = guessed(at);
      const double value = std::clamp(points[i], line_at - far, line_at + far);
      sum += value - points[0];
      product += (at - middle) * (value - points[0]);
    }
    const double slope = product / (count * (count * count - 1) / 12);
    line.first = points[0] + sum / count - slope * middle;
    line.last = line.first + slope * (count - 1);
  }

  // What a step moved, from the line before it to the line behind it.
  [[nodiscard]] double jump_of(const Change& step) const {
    const auto behind = std::ranges::find(lines_, step.index, &Line::begin);
    return behind->first - std::prev(behind)->last;
  }

  // What the steps on a drift moved: they tell it themselves.
  [[nodiscard]] double jumps_on(const Change& drift) const {
    double sum = 0;
    for (const Change& one : found_.changes) {
      const bool on_it =
          one.kind == ChangeKind::step && one.index >= drift.index && one.index < drift.end;
      if (on_it) sum += jump_of(one);
    }
    return sum;
  }

  void put_sizes() {
    const double sds = normal_quantile(1 - policy_.interval_level / 2);
    for (std::size_t i = 0; i < found_.changes.size(); ++i) {
      Change& change = found_.changes[i];
      // The end of a sloped line is known half as well as its middle.
      const auto variance = [](const Line& line) { return (line.sloped ? 4 : 1) / line.points(); };
      const auto behind = std::ranges::find(lines_, begin_of(change), &Line::begin);
      auto last = behind;
      if (change.kind == ChangeKind::drift) {
        while (last + 1 != lines_.end() && last->end < change.end) ++last;
      }
      // A drift begins where the level before it was, unless it goes on from another one.
      const bool own = behind == lines_.begin() ||
                       (change.kind == ChangeKind::drift && std::prev(behind)->sloped);
      const Line& front = own ? *behind : *std::prev(behind);
      const double before = own ? front.first : front.last;
      const double after =
          change.kind == ChangeKind::step ? behind->first : last->last - jumps_on(change);
      const double spread = std::sqrt(variance(front) + variance(*last));
      const double reach = sds * noise_[i] * spread;
      change.before = shown(before);
      change.after = shown(after);
      change.size = shown_size(after - before);
      change.low = shown_size(after - before - reach);
      change.high = shown_size(after - before + reach);
    }
    std::ranges::stable_sort(found_.changes, {}, &Change::index);
  }

  Scaled scaled_;
  ChangePolicy policy_;
  Changes found_;
  std::vector<double> noise_;  // of each change as it was found: sd of a long mean, times its root
  std::vector<Line> lines_;
};

}  // namespace

double yearly_false_alarms(double offset) {
  return std::min(1.0, std::exp(along_table(offset, offset_of, log_share_of)));
}
double offset_for(double yearly_false_alarms) {
  return along_table(std::log(yearly_false_alarms), log_share_of, offset_of);
}

Scaled scaled(std::span<const double> values) {
  Scaled made{{values.begin(), values.end()}};
  made.relative = std::ranges::all_of(values, [](double value) { return value > 0; });
  if (made.relative) {
    for (double& value : made.values) value = std::log(value);
    return made;
  }
  std::vector<double> sizes;
  for (const double value : values.first(std::min<std::size_t>(values.size(), 10))) {
    sizes.push_back(std::abs(value));
  }
  const double middle = median(sizes).value_or(0);
  if (middle > 0) made.scale = middle;
  for (double& value : made.values) value /= made.scale;
  return made;
}

Result<Changes> find_changes(std::span<const double> values, const ChangePolicy& policy) {
  WEIR_CHECK(check_numbers(values));
  const bool fits = policy.offset >= -2 && policy.offset <= 4 && policy.interval_level > 0 &&
                    policy.interval_level < 1;
  if (!fits) return fail(Code::internal, "find_changes: a policy outside its ranges");
  return Description(values, policy).read();
}

Result<Changes> count_changes(std::span<const double> values) {
  WEIR_CHECK(check_numbers(values));
  Changes changes;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i == 0 || values[i] != values[i - 1])
      changes.levels.push_back({i, i, values[i], values[i]});
    changes.levels.back().end = i + 1;
    if (i == 0 || values[i] == values[i - 1]) continue;
    Change change;
    change.index = change.end = change.found = i;
    change.settled = true;
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
