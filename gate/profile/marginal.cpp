#include "gate/profile/marginal.hpp"

#include <cmath>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"

namespace weir::profile {
namespace {

using ByLength = std::map<std::int64_t, std::vector<std::int64_t>>;

ByLength by_length(std::span<const LengthCount> points) {
  ByLength groups;
  for (const LengthCount& point : points) groups[point.length].push_back(point.count);
  return groups;
}

bool all_equal(const std::vector<std::int64_t>& counts) {
  return std::ranges::adjacent_find(counts, std::not_equal_to<>()) == counts.end();
}

// Each length has one count.
bool agree(const ByLength& groups) {
  return std::ranges::all_of(groups, [](const auto& group) { return all_equal(group.second); });
}

std::string_view what_varies(Sweep sweep) { return sweep == Sweep::repeats ? "repeats" : "tokens"; }

unit::Scope slope_scope(Sweep sweep) {
  return sweep == Sweep::repeats ? unit::Scope::per_prefill : unit::Scope::per_token;
}

double spread(const std::vector<double>& values, double middle) {
  const auto [low, high] = std::ranges::minmax_element(values);
  return middle == 0 ? *high - *low : (*high - *low) / std::fabs(middle);
}

// CPU instructions differ by a few in every run, so one line is fitted for each repetition of the
// sweep, and how far the slopes lie apart is their repeatability.
bool repeats_only_nearly(const std::string& base) { return base == "instructions"; }

// Each length alone: exact where its runs agree, nearly exact with its repeatability where not.
void add_at_lengths(const CountSeries& series, const ByLength& groups, Sweep sweep, Fit& fit) {
  for (const auto& [length, counts] : groups) {
    const auto metric = unit::count_metric(series.base, unit::Scope::at_length, length);
    const bool nearly = repeats_only_nearly(series.base);
    if (all_equal(counts) && !nearly) {
      fit.metrics.push_back(exact_measurement(metric, series.source, counts.front()));
      continue;
    }
    fit.metrics.push_back(varying_measurement(metric, series.source,
                                              std::vector<double>(counts.begin(), counts.end())));
    if (nearly) continue;
    const std::string note =
        fmt::format("{}: {} runs of {} {} disagree ({})", series.base, counts.size(), length,
                    what_varies(sweep), fmt::join(counts, ", "));
    fit.metrics.back().warnings.push_back(note);
    fit.notes.push_back(note);
  }
}

// Slope and intercept by least squares, for counts that no machine repeats exactly.
struct Sloped {
  double slope = 0, intercept = 0;
};
Sloped least_squares(const std::vector<std::pair<double, double>>& points) {
  double x_sum = 0, y_sum = 0;
  for (const auto& [x, y] : points) {
    x_sum += x;
    y_sum += y;
  }
  const double n = static_cast<double>(points.size());
  double xx = 0, xy = 0;
  for (const auto& [x, y] : points) {
    xx += (x - x_sum / n) * (x - x_sum / n);
    xy += (x - x_sum / n) * (y - y_sum / n);
  }
  const double slope = xx > 0 ? xy / xx : 0;
  return {slope, y_sum / n - slope * x_sum / n};
}

std::vector<std::pair<double, double>> in_plane(const std::vector<LengthCount>& points) {
  return collect<std::pair<double, double>>(points, [](const LengthCount& point) {
    return std::pair(static_cast<double>(point.length), static_cast<double>(point.count));
  });
}

void add_least_squares(const CountSeries& series, const ByLength& groups, Sweep sweep, Fit& fit) {
  std::size_t repetitions = SIZE_MAX;
  for (const auto& [length, counts] : groups) repetitions = std::min(repetitions, counts.size());
  std::vector<double> slopes, intercepts;
  for (std::size_t i = 0; i < repetitions; ++i) {
    std::vector<std::pair<double, double>> points;
    for (const auto& [length, counts] : groups) {
      points.emplace_back(static_cast<double>(length), static_cast<double>(counts[i]));
    }
    const Sloped line = least_squares(points);
    slopes.push_back(line.slope);
    intercepts.push_back(line.intercept);
  }
  fit.metrics.push_back(varying_measurement(unit::count_metric(series.base, slope_scope(sweep)),
                                            series.source, std::move(slopes)));
  fit.metrics.push_back(varying_measurement(unit::count_metric(series.base, unit::Scope::fixed),
                                            series.source, std::move(intercepts)));
}

// How far apart runs lie, the farthest on each side left out where there are enough of them: a
// machine that stood still while requests were to meet says nothing about the engine. At least as
// far as the rounds of batches that a request more or less at the edges makes.
double spread_of_batches(std::vector<double> shares, double middle) {
  constexpr std::size_t k_enough = 5;
  constexpr double k_edges = 0.02;
  std::ranges::sort(shares);
  if (shares.size() >= k_enough) shares = {shares.begin() + 1, shares.end() - 1};
  return std::max(spread(shares, middle), middle == 0 ? 0 : k_edges);
}

// What is there at once is no line over lengths, as engines take memory in steps: the most is that
// of the longest runs.
Measurement at_longest(const CountSeries& series, const ByLength& groups, unit::Scope scope) {
  const auto metric = unit::count_metric(series.base, scope);
  const auto& counts = groups.rbegin()->second;
  if (all_equal(counts)) return exact_measurement(metric, series.source, counts.front());
  return varying_measurement(metric, series.source,
                             std::vector<double>(counts.begin(), counts.end()));
}

std::vector<double> shares_of(const CountSeries& series) {
  return collect<double>(series.points, [](const LengthCount& point) {
    return static_cast<double>(point.count) /
           static_cast<double>(std::max<std::int64_t>(1, point.length));
  });
}

// Of requests that overlap: how they share batches differs from run to run.
Measurement shares_of_tokens(const CountSeries& series) {
  Measurement measured = varying_measurement(
      unit::count_metric(series.base, unit::Scope::per_token), series.source, shares_of(series));
  if (measured.repeatability) {
    measured.repeatability = spread_of_batches(measured.samples, *measured.value());
  }
  return measured;
}

// Of a held burst: batches are the same in each run, and so is their number.
Measurement share_of_held(const CountSeries& series, const ByLength& groups) {
  const auto& [tokens, counts] = *groups.begin();
  const auto share = Rational::make(counts.front(), std::max<std::int64_t>(1, tokens));
  if (groups.size() == 1 && all_equal(counts) && share) {
    return exact_measurement(unit::count_metric(series.base, unit::Scope::per_token), series.source,
                             *share);
  }
  return varying_measurement(unit::count_metric(series.base, unit::Scope::per_token), series.source,
                             shares_of(series));
}

void note_unsteady(const std::set<std::string>& unsteady, KernelFit& fit) {
  fit.set.varies = !unsteady.empty();
  if (!fit.set.varies) return;
  fit.notes.push_back(fmt::format(
      "kernels: runs of the same length disagree about {} of them ({}): they are not gated",
      unsteady.size(), text::printable(*unsteady.begin())));
}

// All that requests ran, their prompts included: of one alone in all, of a burst for each token.
KernelFit fit_requests(const KernelSeries& series, Sweep sweep) {
  const bool alone = sweep == Sweep::request;
  KernelFit fit;
  fit.set.scope = alone ? unit::Scope::per_request : unit::Scope::per_token;
  std::set<std::string> unsteady;
  for (const auto& [name, points] : series) {
    const ByLength groups = by_length(points);
    const auto& [length, counts] = *groups.rbegin();
    const auto share = Rational::make(counts.front(), alone ? 1 : length);
    if (share && *share != Rational(0)) fit.set.counts[name] = *share;
    if (!all_equal(counts) || (!alone && groups.size() > 1)) unsteady.insert(name);
  }
  note_unsteady(unsteady, fit);
  return fit;
}

}  // namespace

Measurement exact_measurement(const unit::Metric& metric, const std::string& source,
                              Rational value) {
  return {metric, Nature::exact, source, value, {}, {}, {}};
}

Measurement varying_measurement(const unit::Metric& metric, const std::string& source,
                                std::vector<double> values) {
  Measurement measured{metric, Nature::nearly_exact, source, {}, std::move(values), {}, {}};
  if (measured.samples.size() > 1) {
    measured.repeatability = spread(measured.samples, *measured.value());
  }
  return measured;
}

std::optional<Line> line_through(std::span<const ExactPoint> points) {
  if (points.size() < 2) return std::nullopt;
  const ExactPoint &first = points.front(), &last = points.back();
  const auto rise = last.value.minus(first.value);
  const auto run = Rational(last.length).minus(first.length);
  const auto per = run ? Rational::make(1, run->numerator()) : std::nullopt;
  const auto slope = rise && per ? rise->times(*per) : std::nullopt;
  const auto below = slope ? slope->times(first.length) : std::nullopt;
  const auto intercept = below ? first.value.minus(*below) : std::nullopt;
  if (!intercept) return std::nullopt;
  for (const ExactPoint& point : points) {
    const auto risen = slope->times(point.length);
    const auto expected = risen ? intercept->plus(*risen) : std::nullopt;
    if (!expected || *expected != point.value) return std::nullopt;
  }
  return Line{*slope, *intercept};
}

std::optional<Line> exact_line(std::span<const LengthCount> points) {
  const ByLength groups = by_length(points);
  if (groups.size() < 2 || !agree(groups)) return std::nullopt;
  return line_through(collect<ExactPoint>(groups, [](const auto& group) {
    return ExactPoint{group.first, group.second.front()};
  }));
}

std::vector<std::int64_t> decode_lengths(std::int64_t tokens) {
  const std::int64_t n = std::max<std::int64_t>(4, std::min<std::int64_t>(8, tokens / 4));
  return {n, 2 * n, 3 * n};
}

std::vector<std::int64_t> instruction_lengths(std::int64_t tokens) {
  constexpr std::int64_t k_first = 4;
  const std::int64_t apart = std::clamp<std::int64_t>(2 * tokens, 8, 32);
  return {k_first, k_first + apart, k_first + 2 * apart};
}

std::vector<std::int64_t> instruction_repeats(std::int64_t prompt_tokens) {
  const std::int64_t apart =
      std::clamp<std::int64_t>(64 / std::max<std::int64_t>(1, prompt_tokens), 1, 8);
  return {1, 1 + apart, 1 + 2 * apart};
}

Fit fit_counts(const CountSeries& series, Sweep sweep) {
  Fit fit;
  const ByLength groups = by_length(series.points);
  if (groups.empty()) return fit;
  if (unit::is_level(series.base)) {
    fit.metrics.push_back(at_longest(series, groups, unit::Scope::whole));
    return fit;
  }
  if (shares_batches(sweep)) {
    fit.metrics.push_back(sweep == Sweep::held ? share_of_held(series, groups)
                                               : shares_of_tokens(series));
    return fit;
  }
  if (sweep == Sweep::request) {
    fit.metrics.push_back(at_longest(series, groups, unit::Scope::per_request));
  }
  if (sweep != Sweep::none && groups.size() > 1) {
    if (repeats_only_nearly(series.base)) {
      add_least_squares(series, groups, sweep, fit);
      return fit;
    }
    if (const auto line = exact_line(series.points)) {
      const auto slope = unit::count_metric(series.base, slope_scope(sweep));
      const auto fixed = unit::count_metric(series.base, unit::Scope::fixed);
      fit.metrics.push_back(exact_measurement(slope, series.source, line->slope));
      fit.metrics.push_back(exact_measurement(fixed, series.source, line->intercept));
      return fit;
    }
    if (agree(groups)) {
      const auto lengths = collect<std::int64_t>(groups, &ByLength::value_type::first);
      const auto counts =
          collect<std::int64_t>(groups, [](const auto& group) { return group.second.front(); });
      fit.notes.push_back(fmt::format(
          "{}: no straight line over {} {} ({}): each length is compared alone", series.base,
          fmt::join(lengths, ", "), what_varies(sweep), fmt::join(counts, ", ")));
    }
  }
  add_at_lengths(series, groups, sweep, fit);
  return fit;
}

KernelSet fit_functions(const KernelSeries& series, Sweep sweep) {
  constexpr std::size_t k_most = 40;
  constexpr double k_least_share = 0.001;  // of all, to be worth a line
  KernelSet set;
  set.scope = slope_scope(sweep);
  std::vector<std::pair<double, std::string>> rates;
  double all = 0;
  for (const auto& [name, points] : series) {
    rates.emplace_back(std::round(least_squares(in_plane(points)).slope), name);
    all += rates.back().first;
  }
  std::ranges::sort(rates, [](const auto& a, const auto& b) {
    return std::fabs(a.first) != std::fabs(b.first) ? std::fabs(a.first) > std::fabs(b.first)
                                                    : a.second < b.second;
  });
  for (const auto& [rate, name] : rates) {
    if (set.counts.size() == k_most || std::fabs(rate) < k_least_share * std::fabs(all)) break;
    if (std::fabs(rate) < 1e15 && rate != 0) {
      set.counts[name] = Rational(static_cast<std::int64_t>(rate));
    }
  }
  return set;
}

Fit fit_sampled(const CountSeries& series, Sweep sweep) {
  Fit fit;
  const ByLength groups = by_length(series.points);
  if (unit::is_level(series.base) && !groups.empty()) {
    fit.metrics.push_back(at_longest(series, groups, unit::Scope::whole));
  } else if (sweep == Sweep::none || shares_batches(sweep) || groups.size() < 2) {
    add_at_lengths(series, groups, sweep, fit);
  } else {
    add_least_squares(series, groups, sweep, fit);
  }
  for (Measurement& measured : fit.metrics) {
    if (measured.exact) measured.samples = {measured.exact->value()};
    measured.exact.reset();
    measured.repeatability.reset();
    measured.warnings.clear();
    measured.nature = Nature::sampled;
  }
  fit.notes.clear();
  return fit;
}

KernelSet fit_calls(const KernelSeries& series, Sweep sweep) {
  constexpr double k_tenths = 10, k_most = 1e15;
  KernelSet set;
  set.scope = slope_scope(sweep);
  for (const auto& [name, points] : series) {
    auto rate = Rational(0);
    if (const auto line = exact_line(points)) {
      rate = line->slope;
    } else {
      const double slope = std::round(k_tenths * least_squares(in_plane(points)).slope);
      const auto tenths = std::fabs(slope) < k_most
                              ? Rational::make(static_cast<std::int64_t>(slope), 10)
                              : std::nullopt;
      rate = tenths.value_or(rate);
    }
    if (rate != Rational(0)) set.counts[name] = rate;
  }
  return set;
}

KernelFit fit_kernels(const KernelSeries& series, Sweep sweep) {
  if (sweep == Sweep::request || sweep == Sweep::held) return fit_requests(series, sweep);
  KernelFit fit;
  fit.set.scope = slope_scope(sweep);
  const std::string* crooked = nullptr;
  for (const auto& [name, points] : series) {
    const auto line = sweep == Sweep::none ? std::nullopt : exact_line(points);
    if (!line && crooked == nullptr) crooked = &name;
    // What ran only while loading is not work per token.
    if (line && line->slope != Rational(0)) fit.set.counts[name] = line->slope;
  }
  if (crooked == nullptr) return fit;

  fit.set.counts.clear();
  fit.set.scope = unit::Scope::at_length;
  std::set<std::string> unsteady;  // at any length: what is no line may be one that varies
  for (const auto& [name, points] : series) {
    const ByLength groups = by_length(points);
    const auto& [length, counts] = *groups.rbegin();
    fit.set.length = length;
    if (counts.front() != 0) fit.set.counts[name] = counts.front();
    if (!agree(groups)) unsteady.insert(name);
  }
  if (sweep != Sweep::none && unsteady.empty()) {
    fit.notes.push_back(
        fmt::format("kernels: \"{}\" lies on no straight line: kernels are those at {} {}",
                    text::printable(*crooked), fit.set.length.value_or(0), what_varies(sweep)));
  }
  note_unsteady(unsteady, fit);
  return fit;
}

}  // namespace weir::profile
