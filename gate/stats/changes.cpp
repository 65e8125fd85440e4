// Turns the alerts of the trend rule into changes with sizes, and levels between them.
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

// The value at `at` on the line through the two rows of the table around or next to it. Keys rise
// or fall with the rows.
template <class Key, class Value>
double interpolate(double at, Key key, Value value) {
  const bool is_rising = key(k_false_alarms[0]) < key(k_false_alarms[1]);
  std::size_t i = 0;
  while (i + 2 < k_false_alarms.size()) {
    const double next = key(k_false_alarms[i + 1]);
    const bool is_before_next = is_rising ? at <= next : at > next;
    if (is_before_next) break;
    ++i;
  }
  const auto &a = k_false_alarms[i], &b = k_false_alarms[i + 1];
  return value(a) + (value(b) - value(a)) * (at - key(a)) / (key(b) - key(a));
}
double table_offset(const std::pair<double, double>& row) { return row.first; }
double table_log_share(const std::pair<double, double>& row) { return std::log(row.second); }

// Reads a series: runs the trend rule over it, and measures its changes and the levels between
// them.
class SeriesReader {
 public:
  SeriesReader(std::span<const double> values, const ChangePolicy& policy)
      : scaled_(scaled(values)), policy_(policy) {}

  [[nodiscard]] Changes read() {
    TrendRule rule(policy_.offset);
    for (const double value : scaled_.values) rule.add(value);
    add_changes(rule.alerts());
    add_lines();
    measure_sizes();
    for (const Line& line : lines_) {
      result_.levels.push_back({line.begin, line.end, to_unit(line.first), to_unit(line.last)});
    }
    return std::move(result_);
  }

 private:
  struct Line {
    std::size_t begin = 0, end = 0;
    bool sloped = false;
    double first = 0, last = 0;

    [[nodiscard]] double points() const { return static_cast<double>(end - begin); }
  };

  // Back to the unit of the series.
  [[nodiscard]] double to_unit(double level) const {
    return scaled_.relative ? std::exp(level) : level * scaled_.scale;
  }
  [[nodiscard]] double size_to_unit(double size) const {
    return scaled_.relative ? std::expm1(size) : size * scaled_.scale;
  }

  // Adds a change for each alert. A bend begins a drift, or ends it.
  void add_changes(const std::vector<Alert>& alerts) {
    double slope = 0;
    std::optional<std::size_t> drift;  // the drift that goes on, an index of changes
    for (const Alert& alert : alerts) {
      Change change;
      // A drift may have begun with the series.
      change.index = std::max<std::size_t>(1, alert.place);
      change.end = change.index;
      change.found_at = alert.night;
      change.settled = alert.settled;
      change.relative = scaled_.relative;
      change.confidence = 1 - yearly_false_alarms(policy_.offset + alert.excess);
      if (alert.kind == Alert::Kind::bend) {
        if (drift) result_.changes[*drift].end = alert.place;
        const double slope_before = slope;
        slope += alert.size;
        const bool has_ended = drift && std::abs(slope) < std::abs(slope_before) / 2;
        drift.reset();
        if (has_ended) continue;
        drift = result_.changes.size();
        change.kind = ChangeKind::drift;
        change.end = scaled_.values.size();
      }
      noise_.push_back(alert.noise / (1 - alert.memory));
      result_.changes.push_back(change);
    }
  }

  // The first point is never a change, but a drift may have begun with it.
  static std::size_t first_point(const Change& change) {
    return change.kind == ChangeKind::drift && change.index == 1 ? 0 : change.index;
  }

  // Lays a straight line between neighbouring changes, level unless a drift goes on there.
  void add_lines() {
    std::vector<std::size_t> places{0, scaled_.values.size()};
    for (const Change& change : result_.changes) {
      places.push_back(first_point(change));
      places.push_back(change.end);
    }
    std::ranges::sort(places);
    places.erase(std::unique(places.begin(), places.end()), places.end());
    for (std::size_t i = 0; i + 1 < places.size(); ++i) {
      Line line{places[i], places[i + 1]};
      line.sloped =
          line.points() > 2 && std::ranges::any_of(result_.changes, [&](const Change& item) {
            return first_point(item) <= line.begin && line.begin < item.end;
          });
      fit(line);
      lines_.push_back(line);
    }
  }

  // Fits one line. A level line is the mean of the middle three fifths. A sloped line is fitted by
  // least squares, with points far from the line between the medians of its two halves pulled in.
  void fit(Line& line) const {
    const std::span<const double> points(scaled_.values.data() + line.begin, line.end - line.begin);
    if (!line.sloped) {
      std::vector<double> sorted(points.begin(), points.end());
      std::ranges::sort(sorted);
      const std::size_t cut = sorted.size() / 5;
      double sum = 0;
      for (std::size_t i = cut; i < sorted.size() - cut; ++i) sum += sorted[i] - sorted[cut];
      line.first = sorted[cut] + sum / static_cast<double>(sorted.size() - 2 * cut);
      line.last = line.first;
      return;
    }
    const std::size_t half = points.size() / 2;
    const double low = *median(points.first(half)), high = *median(points.last(half));
    const double count = line.points(), middle = (count - 1) / 2;
    // A first line, through the medians of both halves.
    const double rough_slope = (high - low) / (count - static_cast<double>(half));
    const auto rough_line = [&](double at) {
      return (low + high) / 2 + rough_slope * (at - middle);
    };
    std::vector<double> distances;
    for (std::size_t i = 0; i < points.size(); ++i) {
      distances.push_back(std::abs(points[i] - rough_line(static_cast<double>(i))));
    }
    const double far = 5 * *median(distances);
    double sum = 0, product = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
      const double at = static_cast<double>(i), line_at = rough_line(at);
      const double value = std::clamp(points[i], line_at - far, line_at + far);
      sum += value - points[0];
      product += (at - middle) * (value - points[0]);
    }
    const double slope = product / (count * (count * count - 1) / 12);
    line.first = points[0] + sum / count - slope * middle;
    line.last = line.first + slope * (count - 1);
  }

  // The height of a step: from the line before it to the line after it.
  [[nodiscard]] double step_height(const Change& step) const {
    const auto after = std::ranges::find(lines_, step.index, &Line::begin);
    return after->first - std::prev(after)->last;
  }

  // The heights of all steps on a drift: these are changes of their own.
  [[nodiscard]] double step_heights_on(const Change& drift) const {
    double sum = 0;
    for (const Change& change : result_.changes) {
      const bool on_drift = change.kind == ChangeKind::step && change.index >= drift.index &&
                            change.index < drift.end;
      if (on_drift) sum += step_height(change);
    }
    return sum;
  }

  // Measures each change from the lines before and after it, with an interval.
  void measure_sizes() {
    const double sds = normal_quantile(1 - policy_.interval_level / 2);
    for (std::size_t i = 0; i < result_.changes.size(); ++i) {
      Change& change = result_.changes[i];
      // The end of a sloped line is half as certain as its middle.
      const auto variance = [](const Line& line) { return (line.sloped ? 4 : 1) / line.points(); };
      const auto after_line = std::ranges::find(lines_, first_point(change), &Line::begin);
      auto last = after_line;
      if (change.kind == ChangeKind::drift) {
        while (last + 1 != lines_.end() && last->end < change.end) ++last;
      }
      // A drift begins at the level before it, unless the series begins with it or it follows
      // another drift.
      const bool starts_itself =
          after_line == lines_.begin() ||
          (change.kind == ChangeKind::drift && std::prev(after_line)->sloped);
      const Line& front = starts_itself ? *after_line : *std::prev(after_line);
      const double before = starts_itself ? front.first : front.last;
      const double after = change.kind == ChangeKind::step ? after_line->first
                                                           : last->last - step_heights_on(change);
      const double spread = std::sqrt(variance(front) + variance(*last));
      const double reach = sds * noise_[i] * spread;
      change.before = to_unit(before);
      change.after = to_unit(after);
      change.size = size_to_unit(after - before);
      change.low = size_to_unit(after - before - reach);
      change.high = size_to_unit(after - before + reach);
    }
    std::ranges::stable_sort(result_.changes, {}, &Change::index);
  }

  Scaled scaled_;
  ChangePolicy policy_;
  Changes result_;
  std::vector<double> noise_;  // per change as it was found: sd of a long mean, times its root
  std::vector<Line> lines_;
};

}  // namespace

double yearly_false_alarms(double offset) {
  return std::min(1.0, std::exp(interpolate(offset, table_offset, table_log_share)));
}
double offset_for(double yearly_false_alarms) {
  return interpolate(std::log(yearly_false_alarms), table_log_share, table_offset);
}

// Takes logarithms if all values are above 0; else divides them by the median size of the first
// ten.
Scaled scaled(std::span<const double> values) {
  Scaled result{{values.begin(), values.end()}};
  result.relative = std::ranges::all_of(values, [](double value) { return value > 0; });
  if (result.relative) {
    for (double& value : result.values) value = std::log(value);
    return result;
  }
  std::vector<double> sizes;
  for (const double value : values.first(std::min<std::size_t>(values.size(), 10))) {
    sizes.push_back(std::abs(value));
  }
  const double middle = median(sizes).value_or(0);
  if (middle > 0) result.scale = middle;
  for (double& value : result.values) value /= result.scale;
  return result;
}

Result<Changes> find_changes(std::span<const double> values, const ChangePolicy& policy) {
  WEIR_CHECK(check_numbers(values));
  const bool valid = policy.offset >= -2 && policy.offset <= 4 && policy.interval_level > 0 &&
                     policy.interval_level < 1;
  if (!valid) return fail(Code::internal, "find_changes: a policy outside its ranges");
  return SeriesReader(values, policy).read();
}

// Finds every place at which a count differs from the one before.
Result<Changes> count_changes(std::span<const double> values) {
  WEIR_CHECK(check_numbers(values));
  Changes changes;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i == 0 || values[i] != values[i - 1]) {
      changes.levels.push_back({i, i, values[i], values[i]});
    }
    changes.levels.back().end = i + 1;
    if (i == 0 || values[i] == values[i - 1]) continue;
    Change change;
    change.index = i;
    change.end = i;
    change.found_at = i;
    change.settled = true;
    change.before = values[i - 1];
    change.after = values[i];
    change.relative = change.before > 0;
    const double by = change.after - change.before;
    change.size = change.relative ? by / change.before : by;
    change.low = change.size;
    change.high = change.size;
    change.confidence = 1;
    changes.changes.push_back(change);
  }
  return changes;
}

}  // namespace weir::stats
