// Makes the paired rule of one metric from a limit, and the logarithms that it takes from what
// processes reported. Pure; the scheduler of pairs and the verdict both use it.
#pragma once

#include "gate/stats/paired.hpp"
#include "gate/verdict/verdict.hpp"

namespace weir::verdict {

// Evidence is made of these numbers: ln of a time, -ln of a rate, and for a slope the number in its
// unit. +infinity for a process that did not end, or a number without a logarithm.
[[nodiscard]] stats::Pair rule_pair(const profile::PairedMetric& metric,
                                    const profile::NumberPair& pair);
// All pairs of a metric.
[[nodiscard]] std::vector<stats::Pair> rule_pairs(const profile::PairedMetric& metric);
// The limit on a change for the worse of a time, memory or rate; absent if there is none.
[[nodiscard]] const std::optional<MaxChange>& change_limit(const Limit& limit,
                                                           const unit::Metric& metric);
// The inverse of rule_pair() for one side: the number in the metric's unit.
[[nodiscard]] double number_of(const profile::PairedMetric& metric, double number);
// The relative change of the metric's value for an effect: -0.05 for a rate that drops 5 %.
[[nodiscard]] double effect_to_change(const unit::Metric& metric, double effect);

// The distribution of the runs of one side, in the metric's unit; absent without pairs.
[[nodiscard]] std::optional<RunSpread> run_spread(const profile::PairedMetric& metric,
                                                  std::span<const stats::Pair> pairs,
                                                  double stats::Pair::*side);

// The rule for a limit on how much a time, memory or rate may change (max_drop, max_increase).
// Nothing if `limit` has none or is switched off. Amounts that are plain numbers are divided by the
// base program's warm-up; nothing if that makes no share below 90 %.
[[nodiscard]] std::optional<stats::PairedRule> paired_rule(const Limit& limit,
                                                           const profile::PairedMetric& metric,
                                                           const Policy& policy);

// A budget of at least `seconds`, as people write one: whole minutes from a minute on.
[[nodiscard]] std::string budget_text(double seconds);

}  // namespace weir::verdict
