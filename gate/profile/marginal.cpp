// Fits counts over lengths: exact lines, least squares, or each length by itself.
#include "gate/profile/marginal.hpp"

#include <cmath>

#include "gate/base/add_capped.hpp"
#include "gate/base/find.hpp"
#include "gate/base/text.hpp"

namespace weir::profile {
namespace {

using ByLength = std::map<std::int64_t, std::vector<std::int64_t>>;

ByLength group_by_length(std::span<const LengthCount> points) {
  ByLength groups;
  for (const LengthCount& point : points) groups[point.length].push_back(point.count);
  return groups;
}

bool all_equal(const std::vector<std::int64_t>& counts) {
  return std::ranges::adjacent_find(counts, std::not_equal_to<>()) == counts.end();
}

// Returns true if all runs of each length have one count.
bool runs_agree(const ByLength& groups) {
  return std::ranges::all_of(groups, [](const auto& group) { return all_equal(group.second); });
}

std::string_view length_unit(Sweep sweep) { return sweep == Sweep::repeats ? "repeats" : "tokens"; }

unit::Scope slope_scope(Sweep sweep) {
  return sweep == Sweep::repeats ? unit::Scope::per_prefill : unit::Scope::per_token;
}

// Returns max - min, relative to the middle unless that is 0.
double relative_spread(const std::vector<double>& values, double middle) {
  const auto [low, high] = std::ranges::minmax_element(values);
  return middle == 0 ? *high - *low : (*high - *low) / std::fabs(middle);
}

// CPU instructions differ by a few in every run. So we fit a line for each repetition of the sweep,
// and the spread of the slopes is the relative_spread.
bool is_nearly_exact(const std::string& base) { return base == "instructions"; }

// Adds the count at each length (tokens or repeats of a run) as a metric of its own. It is exact
// if all runs of the length agree, else it has samples and a warning.
void add_at_lengths(const CountSeries& series, const ByLength& groups, Sweep sweep, Fit& fit) {
  for (const auto& [length, counts] : groups) {
    const auto metric = unit::count_metric(series.base, unit::Scope::at_length, length);
    const bool varies_always = is_nearly_exact(series.base);
    if (all_equal(counts) && !varies_always) {
      fit.metrics.push_back(exact_measurement(metric, series.source, counts.front()));
      continue;
    }
    fit.metrics.push_back(varying_measurement(metric, series.source,
                                              std::vector<double>(counts.begin(), counts.end())));
    if (varies_always) continue;
    const std::string note =
        fmt::format("{}: {} runs of {} {} disagree ({})", series.base, counts.size(), length,
                    length_unit(sweep), fmt::join(counts, ", "));
    fit.metrics.back().warnings.push_back(note);
    fit.notes.push_back(note);
  }
}

// A line by least squares, for counts that no machine repeats exactly.
struct FittedLine {
  double slope = 0, intercept = 0;
};
// Returns the line through points (x, y) by least squares. The slope is 0 if all x are equal.
FittedLine least_squares(const std::vector<std::pair<double, double>>& points) {
  double x_sum = 0, y_sum = 0;
  for (const auto& [x, y] : points) {
    x_sum += x;
    y_sum += y;
  }
  const double count = static_cast<double>(points.size());
  double x_squares = 0, xy_products = 0;
  for (const auto& [x, y] : points) {
    x_squares += (x - x_sum / count) * (x - x_sum / count);
    xy_products += (x - x_sum / count) * (y - y_sum / count);
  }
  const double slope = x_squares > 0 ? xy_products / x_squares : 0;
  return {slope, y_sum / count - slope * x_sum / count};
}

// Fits one line over the lengths for each repetition of the runs. Adds the slopes and the fixed
// parts as two metrics, whose samples show the spread.
void add_least_squares(const CountSeries& series, const ByLength& groups, Sweep sweep, Fit& fit) {
  std::size_t repetitions = SIZE_MAX;
  for (const auto& [length, counts] : groups) repetitions = std::min(repetitions, counts.size());
  std::vector<double> slopes, intercepts;
  for (std::size_t i = 0; i < repetitions; ++i) {
    std::vector<std::pair<double, double>> points;
    for (const auto& [length, counts] : groups) {
      points.emplace_back(static_cast<double>(length), static_cast<double>(counts[i]));
    }
    const FittedLine line = least_squares(points);
    slopes.push_back(line.slope);
    intercepts.push_back(line.intercept);
  }
  fit.metrics.push_back(varying_measurement(unit::count_metric(series.base, slope_scope(sweep)),
                                            series.source, std::move(slopes)));
  fit.metrics.push_back(varying_measurement(unit::count_metric(series.base, unit::Scope::fixed),
                                            series.source, std::move(intercepts)));
}

// Returns the relative spread of overlapping runs. With enough runs the farthest on each side is
// left out, because a stalled machine says nothing about the engine. It is at least the share of a
// request more or less at the edges of batches.
double batch_spread(std::vector<double> shares, double middle) {
  constexpr std::size_t k_enough = 5;
  constexpr double k_edges = 0.02;
  std::ranges::sort(shares);
  if (shares.size() >= k_enough) shares = {shares.begin() + 1, shares.end() - 1};
  return std::max(relative_spread(shares, middle), middle == 0 ? 0 : k_edges);
}

// Returns the count of the longest runs. A level follows no line over lengths, because engines
// allocate memory in steps.
Measurement measure_longest(const CountSeries& series, const ByLength& groups, unit::Scope scope) {
  const auto metric = unit::count_metric(series.base, scope);
  const auto& counts = groups.rbegin()->second;
  if (all_equal(counts)) return exact_measurement(metric, series.source, counts.front());
  return varying_measurement(metric, series.source,
                             std::vector<double>(counts.begin(), counts.end()));
}

// Returns count / length of each run.
std::vector<double> tokens_shares(const CountSeries& series) {
  return collect<double>(series.points, [](const LengthCount& point) {
    return static_cast<double>(point.count) /
           static_cast<double>(std::max<std::int64_t>(1, point.length));
  });
}

// Measures requests that overlap: they share batches in another way in each run.
Measurement measure_overlapping(const CountSeries& series) {
  Measurement measurement =
      varying_measurement(unit::count_metric(series.base, unit::Scope::per_token), series.source,
                          tokens_shares(series));
  if (measurement.relative_spread) {
    measurement.relative_spread = batch_spread(measurement.samples, *measurement.value());
  }
  return measurement;
}

// Measures a burst of requests. Its batches, and their number, are the same in each run.
Measurement measure_burst(const CountSeries& series, const ByLength& groups) {
  const auto& [tokens, counts] = *groups.begin();
  const auto share = Rational::make(counts.front(), std::max<std::int64_t>(1, tokens));
  if (groups.size() == 1 && all_equal(counts) && share) {
    return exact_measurement(unit::count_metric(series.base, unit::Scope::per_token), series.source,
                             *share);
  }
  return varying_measurement(unit::count_metric(series.base, unit::Scope::per_token), series.source,
                             tokens_shares(series));
}

// Marks kernels whose runs of one length disagree, so that they cannot be compared one by one.
void mark_unsteady(const std::set<std::string>& unsteady, KernelFit& fit) {
  fit.set.runs_disagree = !unsteady.empty();
  if (!fit.set.runs_disagree) return;
  fit.notes.push_back(fmt::format("kernels: runs of the same length disagree about {} of them ({})",
                                  unsteady.size(), text::printable(*unsteady.begin())));
}

// Runs of one length: a name's count, and how many list it.
struct LengthRuns {
  std::int64_t count = 0;  // of the first run that lists the name
  std::size_t listed = 0;  // runs that list it
  bool agree = true;       // these have one count
};
using ListedLengths = std::map<std::int64_t, LengthRuns>;

// Groups the runs that list a name by their lengths.
ListedLengths group_listed(const RunLengths& runs, const RunCounts& counts) {
  ListedLengths groups;
  for (const auto& [run, count] : counts) {
    LengthRuns& group = groups[runs.of_run(run)];
    if (group.listed == 0) group.count = count;
    group.agree = group.agree && group.count == count;
    ++group.listed;
  }
  return groups;
}

// Returns true if all runs of a length counted the same, those that do not list the name 0.
bool runs_agree(const RunLengths& runs, const ListedLengths::value_type& group) {
  const auto& [length, listed] = group;
  return listed.agree && (listed.count == 0 || listed.listed == runs.runs_of_length().at(length));
}
bool runs_agree(const RunLengths& runs, const ListedLengths& groups) {
  return std::ranges::all_of(groups, [&](const auto& group) { return runs_agree(runs, group); });
}

// Returns all kernels that requests ran, prompts included: in all for a single request, per token
// for a burst. Kernels on which runs disagree are marked.
KernelFit fit_requests(const KernelSeries& series, Sweep sweep) {
  const bool is_single = sweep == Sweep::request;
  const RunLengths& runs = series.runs;
  KernelFit fit;
  fit.set.scope = is_single ? unit::Scope::per_request : unit::Scope::per_token;
  std::set<std::string> unsteady;
  for (const auto& [name, counts] : series.counts) {
    const std::int64_t longest = runs.runs_of_length().rbegin()->first;
    const auto rate =
        Rational::make(count_of_run(counts, runs.first_longest()), is_single ? 1 : longest);
    if (rate && *rate != Rational(0)) fit.set.counts[name] = *rate;
    const ListedLengths groups = group_listed(runs, counts);
    const auto group = groups.find(longest);
    const bool has_agreement = group == groups.end() || runs_agree(runs, *group);
    if (!has_agreement || (!is_single && runs.runs_of_length().size() > 1)) unsteady.insert(name);
  }
  mark_unsteady(unsteady, fit);
  return fit;
}

}  // namespace

Measurement exact_measurement(const unit::Metric& metric, const std::string& source,
                              Rational value) {
  return {metric, Nature::exact, source, value, {}, {}, {}};
}

Measurement varying_measurement(const unit::Metric& metric, const std::string& source,
                                std::vector<double> values) {
  Measurement measurement{metric, Nature::nearly_exact, source, {}, std::move(values), {}, {}};
  if (measurement.samples.size() > 1) {
    measurement.relative_spread = relative_spread(measurement.samples, *measurement.value());
  }
  return measurement;
}

// Returns the exact line through the first and last point, if all others lie on it. Nothing if
// they do not, there is one point, or a fraction overflows.
std::optional<Line> line_through(std::span<const ExactPoint> points) {
  if (points.size() < 2) return std::nullopt;
  const ExactPoint &first = points.front(), &last = points.back();
  const auto value_difference = last.value.minus(first.value);
  const auto length_difference = Rational(last.length).minus(first.length);

  if (!value_difference || !length_difference) return std::nullopt;
  const auto per_length = Rational::make(1, length_difference->numerator());
  if (!per_length) return std::nullopt;
  const auto slope = value_difference->times(*per_length);
  if (!slope) return std::nullopt;
  const auto start_growth = slope->times(first.length);
  if (!start_growth) return std::nullopt;
  const auto intercept = first.value.minus(*start_growth);
  if (!intercept) return std::nullopt;
  for (const ExactPoint& point : points) {
    const auto growth = slope->times(point.length);
    if (!growth) return std::nullopt;
    const auto expected = intercept->plus(*growth);
    if (!expected || *expected != point.value) return std::nullopt;
  }
  return Line{*slope, *intercept};
}

// Returns the line on which the counts of all lengths lie exactly; nothing if there is none. A
// length that does not list the name counts 0.
std::optional<Line> exact_line(std::span<const LengthCount> points) {
  const ByLength groups = group_by_length(points);
  if (groups.size() < 2 || !runs_agree(groups)) return std::nullopt;
  return line_through(collect<ExactPoint>(groups, [](const auto& group) {
    return ExactPoint{group.first, group.second.front()};
  }));
}

RunLengths::RunLengths(std::vector<std::int64_t> lengths) : lengths_(std::move(lengths)) {
  double sum = 0;
  for (const std::int64_t length : lengths_) {
    ++runs_of_length_[length];
    sum += static_cast<double>(length);
  }
  mean_ = lengths_.empty() ? 0 : sum / static_cast<double>(lengths_.size());
  for (const std::int64_t length : lengths_) {
    const double deviation = static_cast<double>(length) - mean_;
    squares_ += deviation * deviation;
  }
}

double RunLengths::slope(std::span<const RunCount> counts) const {
  double products = 0;
  for (const auto& [run, count] : counts) {
    products += (static_cast<double>(lengths_[run]) - mean_) * static_cast<double>(count);
  }
  return squares_ > 0 ? products / squares_ : 0;
}

std::size_t RunLengths::first_shortest() const {
  return static_cast<std::size_t>(std::ranges::min_element(lengths_) - lengths_.begin());
}
std::size_t RunLengths::first_longest() const {
  return static_cast<std::size_t>(std::ranges::max_element(lengths_) - lengths_.begin());
}
std::size_t RunLengths::last_longest() const {
  const auto last = std::max_element(lengths_.rbegin(), lengths_.rend());
  return static_cast<std::size_t>(lengths_.rend() - last) - 1;
}

void add_count(RunCounts& counts, std::size_t run, std::int64_t more) {
  if (counts.empty() || counts.back().run != run) counts.push_back({run, 0});
  add_capped(counts.back().count, more);
}

std::int64_t count_of_run(const RunCounts& counts, std::size_t run) {
  const auto entry = std::ranges::lower_bound(counts, run, {}, &RunCount::run);
  return entry == counts.end() || entry->run != run ? 0 : entry->count;
}

// Returns the line over lengths through the counts of one name; nothing if they lie on none. Runs
// that do not list the name counted 0.
std::optional<Line> exact_line(const RunLengths& runs, const RunCounts& counts) {
  const std::size_t lengths = runs.runs_of_length().size();
  const ListedLengths listed = group_listed(runs, counts);
  if (lengths < 2 || !runs_agree(runs, listed)) return std::nullopt;
  const bool all_zero =
      std::ranges::all_of(listed, [](const auto& entry) { return entry.second.count == 0; });
  if (all_zero) return Line{};
  // A line that is 0 at two lengths is 0 at all, and this one is not.
  const std::size_t unlisted_lengths = lengths - listed.size();
  if (unlisted_lengths > 1) return std::nullopt;
  std::vector<ExactPoint> points;
  for (const auto& [length, number_of_runs] : runs.runs_of_length()) {
    const LengthRuns* group = look_up(listed, length);
    points.push_back({length, Rational(group == nullptr ? 0 : group->count)});
  }
  return line_through(points);
}

std::vector<std::int64_t> decode_lengths(std::int64_t tokens) {
  const std::int64_t step = std::max<std::int64_t>(4, std::min<std::int64_t>(8, tokens / 4));
  return {step, 2 * step, 3 * step};
}

std::vector<std::int64_t> instruction_lengths(std::int64_t tokens) {
  constexpr std::int64_t k_first = 4;
  const std::int64_t step = std::clamp<std::int64_t>(2 * tokens, 8, 32);
  return {k_first, k_first + step, k_first + 2 * step};
}

std::vector<std::int64_t> instruction_repeats(std::int64_t prompt_tokens) {
  const std::int64_t step =
      std::clamp<std::int64_t>(64 / std::max<std::int64_t>(1, prompt_tokens), 1, 8);
  return {1, 1 + step, 1 + 2 * step};
}

// Adds the slope and the fixed part of a count as metrics if all runs lie on one line over
// lengths. Otherwise returns false, and notes it if runs of equal length agree.
bool add_exact_line(const CountSeries& series, const ByLength& groups, Sweep sweep, Fit& fit) {
  if (const auto line = exact_line(series.points)) {
    const auto slope = unit::count_metric(series.base, slope_scope(sweep));
    const auto fixed = unit::count_metric(series.base, unit::Scope::fixed);
    fit.metrics.push_back(exact_measurement(slope, series.source, line->slope));
    fit.metrics.push_back(exact_measurement(fixed, series.source, line->intercept));
    return true;
  }
  if (runs_agree(groups)) {
    const auto lengths = collect<std::int64_t>(groups, &ByLength::value_type::first);
    const auto counts =
        collect<std::int64_t>(groups, [](const auto& group) { return group.second.front(); });
    fit.notes.push_back(fmt::format(
        "{}: no straight line over {} {} ({}): each length is compared alone", series.base,
        fmt::join(lengths, ", "), length_unit(sweep), fmt::join(counts, ", ")));
  }
  return false;
}

// Makes metrics of one count over runs of different length. A level has the value of the longest
// runs; requests in one batch a rate per token; others a line, or else a metric for each length.
Fit fit_counts(const CountSeries& series, Sweep sweep) {
  Fit fit;
  const ByLength groups = group_by_length(series.points);
  if (groups.empty()) return fit;

  if (unit::is_level(series.base)) {
    fit.metrics.push_back(measure_longest(series, groups, unit::Scope::whole_run));
    return fit;
  }
  // Requests in one batch share its work, so that only all of them together are counted.
  if (requests_share_batches(sweep)) {
    fit.metrics.push_back(sweep == Sweep::burst ? measure_burst(series, groups)
                                                : measure_overlapping(series));
    return fit;
  }
  if (sweep == Sweep::request) {
    fit.metrics.push_back(measure_longest(series, groups, unit::Scope::per_request));
  }
  if (sweep != Sweep::none && groups.size() > 1) {
    if (is_nearly_exact(series.base)) {
      add_least_squares(series, groups, sweep, fit);
      return fit;
    }
    if (add_exact_line(series, groups, sweep, fit)) return fit;
  }

  add_at_lengths(series, groups, sweep, fit);
  return fit;
}

// Returns the instructions of each function per token or prefill, by least squares: the 40 largest
// with a thousandth of the total or more.
KernelSet fit_functions(const KernelSeries& series, Sweep sweep) {
  constexpr std::size_t k_max_counts = 40;
  constexpr double k_min_share = 0.001;  // share of the total that is worth a line
  KernelSet set;
  set.scope = slope_scope(sweep);
  std::vector<std::pair<double, std::string>> rates;
  double total_rate = 0;
  for (const auto& [name, counts] : series.counts) {
    rates.emplace_back(std::round(series.runs.slope(counts)), name);
    total_rate += rates.back().first;
  }
  std::ranges::sort(rates, [](const auto& a, const auto& b) {
    return std::fabs(a.first) != std::fabs(b.first) ? std::fabs(a.first) > std::fabs(b.first)
                                                    : a.second < b.second;
  });
  for (const auto& [rate, name] : rates) {
    if (set.counts.size() == k_max_counts || std::fabs(rate) < k_min_share * std::fabs(total_rate))
      break;
    if (std::fabs(rate) < 1e15 && rate != 0) {
      set.counts[name] = Rational(static_cast<std::int64_t>(rate));
    }
  }
  return set;
}

// Makes metrics of a count that no two runs repeat. Every metric becomes samples, without notes,
// and is never judged.
Fit fit_sampled(const CountSeries& series, Sweep sweep) {
  Fit fit;
  const ByLength groups = group_by_length(series.points);
  if (unit::is_level(series.base) && !groups.empty()) {
    fit.metrics.push_back(measure_longest(series, groups, unit::Scope::whole_run));
  } else if (sweep == Sweep::none || requests_share_batches(sweep) || groups.size() < 2) {
    add_at_lengths(series, groups, sweep, fit);
  } else {
    add_least_squares(series, groups, sweep, fit);
  }
  for (Measurement& measurement : fit.metrics) {
    if (measurement.exact) measurement.samples = {measurement.exact->value()};
    measurement.exact.reset();
    measurement.relative_spread.reset();
    measurement.warnings.clear();
    measurement.nature = Nature::sampled;
  }
  fit.notes.clear();
  return fit;
}

// Returns true if all points are near one line: an engine whose runs differ by less repeats.
static bool is_near_line(const CountSeries& series) {
  constexpr double k_max_share = 0.005;
  const auto points =
      collect<std::pair<double, double>>(series.points, [](const LengthCount& point) {
        return std::pair(static_cast<double>(point.length), static_cast<double>(point.count));
      });
  const auto [shortest, longest] = std::ranges::minmax(series.points, {}, &LengthCount::length);
  const FittedLine line = least_squares(points);
  const double rise = line.slope * static_cast<double>(longest.length - shortest.length);
  return std::ranges::all_of(points, [&](const auto& point) {
    const double off = point.second - line.intercept - line.slope * point.first;
    return std::fabs(off) <= k_max_share * std::fabs(rise);
  });
}

Fit fit_unsteady(const CountSeries& series, Sweep sweep, bool takes_near_lines) {
  const ByLength groups = group_by_length(series.points);
  if (exact_line(series.points) || (groups.size() == 1 && runs_agree(groups)))
    return fit_counts(series, sweep);
  const bool has_lengths =
      groups.size() > 1 && sweep != Sweep::none && !requests_share_batches(sweep);
  if (!takes_near_lines || !has_lengths || !is_near_line(series)) return fit_sampled(series, sweep);
  Fit fit;
  add_least_squares(series, groups, sweep, fit);
  return fit;
}

Fit fit_imports(const CountSeries& series, Sweep sweep) {
  constexpr double k_least_share = 0.002;
  Fit fit = fit_sampled(series, sweep);
  if (sweep == Sweep::none || group_by_length(series.points).size() < 2) return fit;
  const auto [shortest, longest] = std::ranges::minmax(series.points, {}, &LengthCount::length);
  const std::int64_t most = std::ranges::max(series.points, {}, &LengthCount::count).count;
  for (Measurement& measurement : fit.metrics) {
    if (measurement.metric.scope != slope_scope(sweep)) continue;
    const double rise =
        measurement.value().value_or(0) * static_cast<double>(longest.length - shortest.length);
    const bool is_flat = std::fabs(rise) <= k_least_share * static_cast<double>(most);
    const auto line = is_flat ? std::optional(Line{}) : exact_line(series.points);
    measurement = line
                      ? exact_measurement(measurement.metric, series.source, line->slope)
                      : varying_measurement(measurement.metric, series.source, measurement.samples);
  }
  return fit;
}

// Returns the counts of the longest runs by name, without those of 0.
static KernelSet counts_of_longest(const KernelSeries& series) {
  KernelSet set;
  set.scope = unit::Scope::at_length;
  set.length = series.runs.runs_of_length().rbegin()->first;
  const std::size_t longest = series.runs.first_longest();
  for (const auto& [name, counts] : series.counts) {
    const std::int64_t count = count_of_run(counts, longest);
    if (count != 0) set.counts[name] = count;
  }
  return set;
}

// Returns calls by name per token or prefill: from the exact line, else by least squares to a
// tenth. Runs of one length give the calls of a run.
KernelSet fit_calls(const KernelSeries& series, Sweep sweep) {
  constexpr double k_tenths = 10, k_max_tenths = 1e15;
  if (sweep == Sweep::none || series.runs.runs_of_length().size() < 2)
    return counts_of_longest(series);
  KernelSet set;
  set.scope = slope_scope(sweep);
  for (const auto& [name, counts] : series.counts) {
    auto rate = Rational(0);
    if (const auto line = exact_line(series.runs, counts)) {
      rate = line->slope;
    } else {
      const double tenths = std::round(k_tenths * series.runs.slope(counts));
      const bool is_finite_rate = std::fabs(tenths) < k_max_tenths;
      if (is_finite_rate) {
        rate = Rational::make(static_cast<std::int64_t>(tenths), 10).value_or(rate);
      }
    }
    if (rate != Rational(0)) set.counts[name] = rate;
  }
  return set;
}

// Returns how often each kernel runs per token or prefill, from exact lines over the lengths. If
// one kernel has no such line, all are those of the longest runs.
KernelFit fit_kernels(const KernelSeries& series, Sweep sweep) {
  if (sweep == Sweep::request || sweep == Sweep::burst) return fit_requests(series, sweep);
  KernelFit fit;
  fit.set.scope = slope_scope(sweep);
  const std::string* first_off_line = nullptr;
  const RunLengths& runs = series.runs;
  for (const auto& [name, counts] : series.counts) {
    const auto line = sweep == Sweep::none ? std::nullopt : exact_line(runs, counts);
    if (!line && first_off_line == nullptr) first_off_line = &name;
    // A slope of 0 means that the kernel ran only at the start.
    if (line && line->slope != Rational(0)) fit.set.counts[name] = line->slope;
  }
  if (first_off_line == nullptr) return fit;

  fit.set = counts_of_longest(series);
  std::set<std::string> disagreeing;  // at any length, because one that varies is no line
  for (const auto& [name, counts] : series.counts) {
    if (!runs_agree(runs, group_listed(runs, counts))) disagreeing.insert(name);
  }
  if (sweep != Sweep::none && disagreeing.empty()) {
    fit.notes.push_back(fmt::format(
        "kernels: \"{}\" lies on no straight line: kernels are those at {} {}",
        text::printable(*first_off_line), fit.set.length.value_or(0), length_unit(sweep)));
  }
  mark_unsteady(disagreeing, fit);
  return fit;
}

}  // namespace weir::profile
