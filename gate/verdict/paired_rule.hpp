// From limits in a config to the paired rule of one metric, and from what processes gave to the
// logarithms that it takes. Pure; the scheduler of pairs and the verdict both use it.
#pragma once

#include "gate/stats/paired.hpp"
#include "gate/verdict/verdict.hpp"

namespace weir::verdict {

// What evidence is made of: ln of a time, -ln of a rate; of what may be negative the number in its
// unit. +infinity for a process that did not end, or whose logarithm there is none of.
[[nodiscard]] stats::Pair rule_pair(const profile::PairedMetric& metric,
                                    const profile::NumberPair& pair);
// All of a metric's.
[[nodiscard]] std::vector<stats::Pair> rule_pairs(const profile::PairedMetric& metric);
// The limit on a change for the worse of a time, memory or rate; absent where there is none.
[[nodiscard]] const std::optional<MaxChange>& change_in(const Limit& limit,
                                                        const unit::Metric& metric);
// Back to the metric's unit.
[[nodiscard]] double number_of(const profile::PairedMetric& metric, double in_pair);
// The relative change of the metric's value that an effect is: -0.05 for a rate that drops 5 %.
[[nodiscard]] double change_of(const unit::Metric& metric, double effect);

// Where the runs of one side lie, in the metric's unit; absent without pairs.
[[nodiscard]] std::optional<RunSpread> run_spread(const profile::PairedMetric& metric,
                                                  std::span<const stats::Pair> pairs,
                                                  double stats::Pair::*side);

// A limit on how much a time, memory or rate may change (max_drop, max_increase); nothing where
// `limit` has none or is switched off. Amounts that are plain numbers are taken of the base
// program's warm-up; nothing where that makes no share below 90 %.
[[nodiscard]] std::optional<stats::PairedRule> paired_rule(const Limit& limit,
                                                           const profile::PairedMetric& metric,
                                                           const Policy& policy);

}  // namespace weir::verdict
