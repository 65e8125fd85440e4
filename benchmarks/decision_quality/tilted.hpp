// How often weir fails although nothing changed. That is too rare to count, so it is estimated by
// importance sampling. If nothing changed, a fair coin decides which program a run belongs to. Here
// the coin is biased towards the evidence S of "slower": each order of a pair is as likely as the S
// that it gives. A sequence of tosses is then S times as likely as with a fair coin, so a fail
// counts 1 / S. (S is a martingale under the fair coin.) Pure.
#pragma once

#include <cstdint>

#include "gate/stats/paired.hpp"

#include "benchmarks/decision_quality/scenario.hpp"

namespace weir::quality {

struct FalseFailEstimate {
  std::uint64_t trials = 0;
  std::uint64_t crossed = 0;  // S reached 1 / false_alarm before or with the decision
  double share = 0;           // estimated share of metrics that fail with a fair coin
  double error = 0;           // its standard error
  // Upper 95 % bound of the share: false_alarm × Clopper and Pearson's bound of crossed / trials.
  // It holds because S must cross before a fail, and is at least 1 / false_alarm when it crosses.
  double upper = 0;
};

// `scenario` must be of one program, `trials` above 0, `rule` not strict.
[[nodiscard]] FalseFailEstimate estimate_false_fails(const Scenario& scenario,
                                                     const stats::PairedRule& rule,
                                                     std::uint32_t cap, std::uint64_t seed,
                                                     std::uint64_t trials);

}  // namespace weir::quality
