#include "gate/verdict/paired_rule.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "gate/stats/spread.hpp"

namespace weir::verdict {

namespace {

constexpr double k_slowest = std::numeric_limits<double>::infinity();

double in_pair(const profile::PairedMetric& metric, const std::optional<double>& value) {
  if (!value || !std::isfinite(*value)) return k_slowest;
  if (metric.line_unit) return *value / *metric.line_unit;
  if (!(*value > 0)) return k_slowest;
  return metric.metric.better == unit::Better::higher ? -std::log(*value) : std::log(*value);
}

}  // namespace

stats::Pair rule_pair(const profile::PairedMetric& metric, const profile::NumberPair& pair) {
  return {in_pair(metric, pair.base), in_pair(metric, pair.candidate)};
}

double number_of(const profile::PairedMetric& metric, double in_pair) {
  if (metric.line_unit) return in_pair * *metric.line_unit;
  return std::exp(metric.metric.better == unit::Better::higher ? -in_pair : in_pair);
}

double change_of(const unit::Metric& metric, double effect) {
  return std::expm1(metric.better == unit::Better::higher ? -effect : effect);
}

std::optional<RunsLie> runs_lie(const profile::PairedMetric& metric,
                                std::span<const stats::Pair> pairs, double stats::Pair::*side) {
  std::vector<double> all;
  for (const stats::Pair& pair : pairs) all.push_back(pair.*side);
  const auto spread = stats::spread_of(all);
  if (!spread) return std::nullopt;
  return RunsLie{number_of(metric, spread->p10), number_of(metric, spread->median),
                 number_of(metric, spread->mean), number_of(metric, spread->p90)};
}

std::optional<stats::PairedRule> paired_rule(const Limit& limit,
                                             const profile::PairedMetric& metric,
                                             const Policy& policy) {
  constexpr double k_most = 0.9;
  const bool higher = metric.metric.better == unit::Better::higher;
  const auto& change = higher ? limit.max_drop : limit.max_increase;
  if (!change || limit.mode == Mode::off) return std::nullopt;
  const auto effect = [&](const Amount& amount) {
    const double share =
        amount.relative ? amount.value : amount.value / metric.warm_up.base.value_or(0);
    return !(share > 0) || (higher && share >= k_most) ? std::numeric_limits<double>::quiet_NaN()
           : higher                                    ? stats::effect_of_drop(share)
                                                       : stats::effect_of_increase(share);
  };
  stats::PairedRule rule;
  rule.tolerate = effect(change->tolerate);
  rule.limit = effect(change->amount);
  if (!(rule.tolerate > 0) || !(rule.limit > rule.tolerate)) return std::nullopt;
  rule.false_alarm =
      policy.false_alarm / static_cast<double>(std::max<std::int64_t>(1, policy.timed_metrics));
  rule.missed = policy.missed;
  rule.strict = policy.strict;
  rule.scale = metric.line_unit ? stats::Scale::line : stats::Scale::logarithm;
  return rule;
}

std::int64_t timed_metrics(std::span<const profile::CellFacts> cells,
                           std::span<const profile::PairedRuns> runs,
                           std::span<const LimitEntry> limits) {
  std::int64_t metrics = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (const profile::PairedMetric& metric : runs[i].metrics) {
      const Limit limit = resolve_limit(cells[i].cell, metric.metric, limits);
      if (limit.mode != Mode::gate) continue;
      metrics += limit.max_drop || limit.max_increase ? 1 : 0;
    }
  }
  return metrics;
}

}  // namespace weir::verdict
