// Pairs of lines over depths: one round of pairs, one at each depth, makes one.
#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "gate/verdict/depth_times.hpp"

namespace weir::verdict {

unit::Metric fitted_metric(const TimePerToken& of, unit::Scope part) {
  const bool at_zero = part == unit::Scope::at_zero_context;
  return *unit::find_metric(std::string(of.time) +
                            (at_zero ? "_at_zero_context" : "_per_context_token"));
}

double part_of(const stats::SlopeAndIntercept& line, unit::Scope part) {
  return part == unit::Scope::at_zero_context ? line.intercept : line.slope;
}

std::optional<stats::SlopeAndIntercept> line_over(const std::vector<std::int64_t>& depths,
                                                  const std::vector<std::optional<double>>& times) {
  std::vector<stats::Point> points;
  for (std::size_t i = 0; i < depths.size(); ++i) {
    if (!times[i] || !(*times[i] > 0) || !std::isfinite(*times[i])) return std::nullopt;
    points.push_back({static_cast<double>(depths[i]), *times[i]});
  }
  return stats::theil_sen(points);
}

namespace {

using profile::NumberPair;
using profile::PairedMetric;
using profile::PairedRuns;

// The same metric of every depth; empty where one has none.
struct AtDepths {
  std::vector<const PairedMetric*> metrics;
  bool reported = false;  // as a time; else as a rate
};

AtDepths find_times(const std::vector<const PairedRuns*>& members, const TimePerToken& of) {
  for (const char* name : {of.time, of.rate}) {
    AtDepths found{{}, name == of.time};
    for (const PairedRuns* one : members) {
      const auto metric =
          std::find_if(one->metrics.begin(), one->metrics.end(),
                       [&](const PairedMetric& known) { return known.metric.name == name; });
      if (metric != one->metrics.end()) found.metrics.push_back(&*metric);
    }
    if (found.metrics.size() == members.size()) return found;
  }
  return {};
}

struct TwoLines {
  std::optional<stats::SlopeAndIntercept> base, candidate;
  bool base_first = false;
};

// Of the pairs that `at` takes from each depth's metric.
template <class At>
TwoLines lines_of(const std::vector<std::int64_t>& depths, const AtDepths& found, const At& at) {
  const auto line = [&](std::optional<double> NumberPair::*side) {
    std::vector<std::optional<double>> times;
    for (const PairedMetric* metric : found.metrics) {
      const std::optional<double> value = at(*metric).*side;
      times.push_back(value && !found.reported ? std::optional(1 / *value) : value);
    }
    return line_over(depths, times);
  };
  return {line(&NumberPair::base), line(&NumberPair::candidate),
          at(*found.metrics.front()).base_first};
}

NumberPair numbers_of(const TwoLines& lines, unit::Scope part) {
  NumberPair pair;
  if (lines.base) pair.base = part_of(*lines.base, part);
  if (lines.candidate) pair.candidate = part_of(*lines.candidate, part);
  pair.base_first = lines.base_first;
  return pair;
}

// About the size of `part`, for evidence to lay its bets in. Where context costs nearly nothing, a
// hundredth of what a token takes.
double unit_of(const stats::SlopeAndIntercept& warm, double deepest, unit::Scope part) {
  constexpr double k_least_share = 0.01;
  const double least = k_least_share * std::fabs(warm.intercept + warm.slope * deepest);
  return part == unit::Scope::per_context_token ? std::max(std::fabs(warm.slope), least / deepest)
                                                : std::max(std::fabs(warm.intercept), least);
}

}  // namespace

PairedRuns fit_pairs(const DepthGroup& group, std::span<const PairedRuns> runs) {
  const auto members = pick(group, runs);
  PairedRuns fit;
  fit.warm = true;
  fit.pairs = members.front()->pairs;
  for (const PairedRuns* one : members) {
    fit.warm = fit.warm && one->warm;
    fit.pairs = std::min(fit.pairs, one->pairs);
    fit.seconds += one->seconds;
    if (one->error && !fit.error) {
      fit.error = fmt::format("{}: {}", k_needs_every_depth, *one->error);
    }
  }
  for (const TimePerToken& of : k_times) {
    const AtDepths found = find_times(members, of);
    if (found.metrics.empty()) continue;
    const TwoLines warm =
        lines_of(group.depths, found, [](const PairedMetric& metric) { return metric.warm_up; });
    if (!warm.base || !warm.candidate) continue;
    std::vector<TwoLines> rounds;
    for (std::size_t k = 0; k < static_cast<std::size_t>(fit.pairs); ++k) {
      rounds.push_back(lines_of(group.depths, found,
                                [&](const PairedMetric& metric) { return metric.pairs[k]; }));
    }
    for (const unit::Scope part : k_parts) {
      PairedMetric made{fitted_metric(of, part),
                        found.metrics.front()->source,
                        numbers_of(warm, part),
                        {},
                        unit_of(*warm.base, static_cast<double>(group.depths.back()), part)};
      for (const TwoLines& round : rounds) made.pairs.push_back(numbers_of(round, part));
      fit.metrics.push_back(std::move(made));
    }
  }
  return fit;
}

}  // namespace weir::verdict
