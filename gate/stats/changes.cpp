// Turns the alerts of the trend rule into changes with sizes, and levels between them.
#include "gate/stats/changes.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "gate/stats/quantile.hpp"
#include "gate/stats/ramp.hpp"
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

// Interpolates linearly in the table k_false_alarms: returns `value(row)` where `key(row)` would be
// `at`. Keys rise or fall with the rows; beyond the ends the nearest line goes on.
double interpolate(double at, auto key, auto value) {
  const bool is_rising = key(k_false_alarms[0]) < key(k_false_alarms[1]);
  std::size_t row = 0;
  while (row + 2 < k_false_alarms.size()) {
    const double next = key(k_false_alarms[row + 1]);
    const bool is_before_next = is_rising ? at <= next : at > next;
    if (is_before_next) break;
    ++row;
  }
  const auto &a = k_false_alarms[row], &b = k_false_alarms[row + 1];
  return value(a) + (value(b) - value(a)) * (at - key(a)) / (key(b) - key(a));
}
double table_offset(const std::pair<double, double>& row) { return row.first; }
double table_log_share(const std::pair<double, double>& row) { return std::log(row.second); }

// A second change has to explain this much more than one ramp alone, in variances of the noise.
constexpr double k_merge_slack = 18;
// A change that was found as a step is measured as a ramp that explains this much more.
constexpr double k_ramp_slack = 4;
// Points of a level that count for the size of the change next to it.
constexpr std::size_t k_level_points = 240;

// The noise of the points around a change.
struct Noise {
  double sd = 0;        // of what a point does not share with the one before
  double long_run = 0;  // sd of a mean of many points, times the root of their number

  [[nodiscard]] double unit() const { return long_run * long_run; }
};

// Estimates the standard deviation of the noise around a ramp in the long run, with its
// autocorrelation. `before`, the estimate from earlier points, counts as k_points_before more
// points.
double long_run_around(const std::vector<double>& values, const Ramp& ramp, double earlier_noise) {
  constexpr double k_points_before = 20, k_coefficients = 4, k_max_memory = 0.9;
  double squares = 0, products = 0, last = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double residual = values[i] - ramp.at(i);
    squares += residual * residual;
    products += residual * last;
    last = residual;
  }
  const double count = static_cast<double>(values.size());
  if (count <= k_coefficients || squares <= 0) return earlier_noise;
  // Residuals of a fit are less correlated than the noise itself, so that is corrected.
  const double observed_memory = products / squares;
  const double memory = std::clamp(
      observed_memory + (2 + 4 * std::max(0.0, observed_memory)) / count, 0.0, k_max_memory);
  const double variance = squares / (count - k_coefficients) * (1 + memory) / (1 - memory);
  return std::sqrt((count * variance + k_points_before * earlier_noise * earlier_noise) /
                   (count + k_points_before));
}

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
    merge_changes();
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
      noises_.push_back({alert.noise, alert.noise / (1 - alert.memory)});
      result_.changes.push_back(change);
    }
  }

  // The values of [begin, end), with outliers pulled in to three standard deviations from the
  // median of the five points around them.
  [[nodiscard]] std::vector<double> stretch(std::size_t begin, std::size_t end, double sd) const {
    std::vector<double> values, around;
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t first = std::max(begin + 2, i) - 2, last = std::min(end, i + 3);
      around.assign(scaled_.values.begin() + static_cast<std::ptrdiff_t>(first),
                    scaled_.values.begin() + static_cast<std::ptrdiff_t>(last));
      const double middle = *median_in_place(around);
      values.push_back(std::clamp(scaled_.values[i], middle - 3 * sd, middle + 3 * sd));
    }
    return values;
  }

  // The end of the change before the i-th one, and the begin of the one after it.
  [[nodiscard]] std::size_t end_before(std::size_t i) const {
    return i == 0 ? 0 : result_.changes[i - 1].end;
  }
  [[nodiscard]] std::size_t begin_after(std::size_t i) const {
    return i + 1 < result_.changes.size() ? first_point(result_.changes[i + 1])
                                          : scaled_.values.size();
  }
  // The points around the i-th change that count for it: [first_level_point, last_level_point).
  [[nodiscard]] std::size_t first_level_point(std::size_t i) const {
    const std::size_t place = first_point(result_.changes[i]);
    const std::size_t earliest = place > k_level_points ? place - k_level_points : 0;
    return std::min(place, std::max(end_before(i), earliest));
  }
  [[nodiscard]] std::size_t last_level_point(std::size_t i) const {
    return std::min(begin_after(i), result_.changes[i].end + k_level_points);
  }

  // Makes one change of two neighbours where one ramp explains the points nearly as well: the end
  // of a drift looks like a step away from where it would have led.
  void merge_changes() {
    for (std::size_t i = 0; i + 1 < result_.changes.size();) {
      if (!merge_with_next(i)) ++i;
    }
  }
  // Points after the second change has settled do not count, so that they never take it back.
  bool merge_with_next(std::size_t i) {
    Change& change = result_.changes[i];
    const Change& next = result_.changes[i + 1];
    const std::size_t begin = first_level_point(i), split = first_point(next);
    const std::size_t end =
        std::min(last_level_point(i + 1), next.found_at + TrendRule::k_nights_to_revise + 1);
    if (split < begin + 2 || end < split + 2) return false;
    const double sd = noises_[i].sd;
    const Ramp ramp = Ramps(stretch(begin, end, sd)).best();
    const double of_two = Ramps(stretch(begin, split, sd)).best().squares +
                          Ramps(stretch(split, end, sd)).best().squares;
    if (ramp.squares - of_two > k_merge_slack * noises_[i].unit()) return false;
    const bool was_drift = change.kind == ChangeKind::drift || next.kind == ChangeKind::drift;
    if (!ramp.is_step()) {
      const bool goes_on = begin + ramp.end == end;
      change.kind = ChangeKind::drift;
      change.index = begin + ramp.begin;
      change.end = goes_on ? begin_after(i + 1) : begin + ramp.end;
    } else if (was_drift) {
      change.kind = ChangeKind::drift;
      change.end = std::max(change.end, next.end);
    } else {
      change.index = begin + ramp.begin;
      change.end = change.index;
    }
    change.settled = next.settled;
    result_.changes.erase(result_.changes.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    noises_.erase(noises_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    return true;
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

  void measure_sizes() {
    for (Change& change : result_.changes) {
      change.earliest = change.index;
      change.latest = change.index;
    }
    const double sds = normal_quantile(1 - policy_.interval_level / 2);
    for (std::size_t i = 0; i < result_.changes.size(); ++i) {
      if (is_between_levels(i)) {
        measure_by_ramps(i, sds);
      } else {
        measure_by_lines(i, sds);
      }
    }
    std::ranges::stable_sort(result_.changes, {}, &Change::index);
  }
  [[nodiscard]] bool is_between_levels(std::size_t i) const {
    constexpr std::size_t k_points_to_measure = 3;
    const Change& change = result_.changes[i];
    const std::size_t begin = first_point(change), count = scaled_.values.size();
    const std::size_t end = std::max(change.end, begin), next = begin_after(i);
    const bool has_level_before = i == 0 || end_before(i) < begin;
    const bool has_level_after = end < next || (end == count && next == count);
    return has_level_before && has_level_after &&
           last_level_point(i) >= first_level_point(i) + k_points_to_measure;
  }

  // Stores the size of a change, in the scale of the rule, and its interval.
  void set_size(Change& change, double before, double after, double low, double high) const {
    change.before = to_unit(before);
    change.after = to_unit(after);
    change.size = size_to_unit(after - before);
    change.low = size_to_unit(low);
    change.high = size_to_unit(high);
  }

  // Notes the places of all steps that explain the values nearly as well as the best one: Hansen,
  // Econometrica 68, 2000.
  void set_places(Change& change, const Ramps& ramps, std::size_t begin, std::size_t count,
                  const Noise& noise) const {
    std::vector<double> squares(count, std::numeric_limits<double>::infinity());  // by place
    for (std::size_t place = 1; place < count; ++place) {
      squares[place] = ramps.fit(place, place + 1).squares;
    }
    const double least = *std::ranges::min_element(squares);
    const double slack = -2 * std::log(1 - std::sqrt(1 - policy_.interval_level)) * noise.unit();
    for (std::size_t place = 1; place < count; ++place) {
      if (squares[place] > least + slack) continue;
      change.earliest = std::min(change.earliest, begin + place);
      change.latest = std::max(change.latest, begin + place);
    }
  }

  // Measures a change between two levels by all ramps that it may have been. A step is one of a
  // single point; a slow drift may have been found as a step.
  void measure_by_ramps(std::size_t i, double sds) {
    Change& change = result_.changes[i];
    const std::size_t begin = first_level_point(i);
    const std::vector<double> values = stretch(begin, last_level_point(i), noises_[i].sd);
    const Ramps ramps(values);
    const Ramp likeliest = ramps.best();
    Ramp ramp = likeliest;
    Noise noise = noises_[i];
    noise.long_run = long_run_around(values, ramp, noise.long_run);
    if (change.kind == ChangeKind::step) {
      const Ramp step = ramps.fit(change.index - begin, change.index - begin + 1);
      if (step.squares - ramp.squares < k_ramp_slack * noise.unit()) ramp = step;
    }
    if (change.kind == ChangeKind::step) {
      set_places(change, ramps, begin, values.size(), noise);
    }
    const auto [low, high] = ramps.heights(likeliest, sds * sds * noise.unit());
    set_size(change, ramp.before, ramp.after, std::min(low, ramp.height()),
             std::max(high, ramp.height()));
  }

  // Measures a change from the lines before and after it: one of several on a drift.
  void measure_by_lines(std::size_t i, double sds) {
    Change& change = result_.changes[i];
    // The end of a sloped line is half as certain as its middle.
    const auto variance = [](const Line& line) { return (line.sloped ? 4 : 1) / line.points(); };
    const auto after_line = std::ranges::find(lines_, first_point(change), &Line::begin);
    auto last = after_line;
    if (change.kind == ChangeKind::drift) {
      while (last + 1 != lines_.end() && last->end < change.end) ++last;
    }
    // A drift begins at the level before it, unless the series begins with it or it follows another
    // drift.
    const bool starts_itself = after_line == lines_.begin() ||
                               (change.kind == ChangeKind::drift && std::prev(after_line)->sloped);
    const Line& front = starts_itself ? *after_line : *std::prev(after_line);
    const double before = starts_itself ? front.first : front.last;
    const double after =
        change.kind == ChangeKind::step ? after_line->first : last->last - step_heights_on(change);
    const double spread = std::sqrt(variance(front) + variance(*last));
    const double reach = sds * noises_[i].long_run * spread;
    set_size(change, before, after, after - before - reach, after - before + reach);
  }

  Scaled scaled_;
  ChangePolicy policy_;
  Changes result_;
  std::vector<Noise> noises_;  // per change, as it was found
  std::vector<Line> lines_;
};

}  // namespace

double yearly_false_alarms(double offset) {
  return std::min(1.0, std::exp(interpolate(offset, table_offset, table_log_share)));
}
double offset_for(double yearly_false_alarms) {
  return interpolate(std::log(yearly_false_alarms), table_log_share, table_offset);
}

// Returns logarithms if all values are above 0, and sets `relative`. Otherwise divides the values
// by `scale`, the median size of the first ten.
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

// Finds each place at which a count differs from the one before, and the levels between. Counts
// have no noise, so every change is certain. An error if a value is not finite.
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
    change.earliest = i;
    change.latest = i;
    change.end = i;
    change.found_at = i;
    change.settled = true;
    change.before = values[i - 1];
    change.after = values[i];
    change.relative = change.before > 0;
    const double difference = change.after - change.before;
    change.size = change.relative ? difference / change.before : difference;
    change.low = change.size;
    change.high = change.size;
    change.confidence = 1;
    changes.changes.push_back(change);
  }
  return changes;
}

}  // namespace weir::stats
