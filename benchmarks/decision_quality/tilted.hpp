// How often weir fails although nothing changed: too rare to count, so it is sampled where it
// happens. With nothing changed the coin alone decides which program a run belongs to. Here the
// coin follows the evidence S of "slower" instead: of two orders of a pair each comes as often as S
// pays for it, so that a course of the coin is S times as likely as with a fair one, and a fail
// counts 1 / S (importance sampling; S is a martingale of the coin). Pure.
#pragma once

#include <cstdint>

#include "gate/stats/paired.hpp"

#include "benchmarks/decision_quality/scenario.hpp"

namespace weir::quality {

struct Tilted {
  std::uint64_t trials = 0;
  std::uint64_t crossed = 0;  // S reached 1 / false_alarm before or with the decision
  double share = 0;           // of metrics that fail with a fair coin: an estimate
  double error = 0;           // its standard error
  // Of the share, at 95 %: false_alarm × Clopper and Pearson's bound of crossed / trials, since S
  // must cross before a fail and is at least 1 / false_alarm then.
  double upper = 0;
};

// `scenario` must be of one program, `trials` above 0, `rule` not strict.
[[nodiscard]] Tilted tilted_false_fails(const Scenario& scenario, const stats::PairedRule& rule,
                                        std::uint32_t cap, std::uint64_t seed,
                                        std::uint64_t trials);

}  // namespace weir::quality
