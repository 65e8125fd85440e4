// From limits in a config to the paired rule of one metric, and from what processes gave to the
// logarithms that it takes. Pure; the scheduler of pairs and the verdict both use it.
#pragma once

#include <optional>
#include <vector>

#include "gate/profile/paired.hpp"
#include "gate/stats/paired.hpp"
#include "gate/verdict/verdict.hpp"

namespace weir::verdict {

// ln of a time, -ln of a rate; +infinity for a process that did not end, or whose number is not
// positive.
[[nodiscard]] double log_of(const unit::Metric& metric, const std::optional<double>& value);
[[nodiscard]] stats::Pair log_pair(const unit::Metric& metric, const profile::NumberPair& pair);
// The relative change of the metric's value that an effect is: -0.05 for a rate that drops 5 %.
[[nodiscard]] double change_of(const unit::Metric& metric, double effect);

// A limit on how much a time, memory or rate may change (max_drop, max_increase); nothing where
// `limit` has none or is switched off. Amounts that are plain numbers are taken of `base`, the
// base program's warm-up; nothing where that makes no share below 90 %.
[[nodiscard]] std::optional<stats::PairedRule> paired_rule(const Limit& limit,
                                                           const unit::Metric& metric,
                                                           const std::optional<double>& base,
                                                           const Policy& policy);

}  // namespace weir::verdict
