// Rules that say fail or pass about a candidate, by name. README.md has each in words. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gate/stats/paired.hpp"

#include "benchmarks/decision_quality/scenario.hpp"

namespace weir::quality {

inline constexpr int k_gate_metrics = 200;  // 40 cells, 5 metrics each
inline constexpr double k_gate_false_alarm = 0.001;
inline constexpr double k_missed = 0.01;

// Drops of the rate, shares: 0 < tolerate < max_drop < 0.9. At most `cap` pairs a trial.
struct Limits {
  double tolerate = 0.05, max_drop = 0.1;
  std::uint32_t cap = 100'000;
};

// weir's own: at k_gate_false_alarm false fails a gate, k_missed missed.
[[nodiscard]] stats::PairedRule paired_rule(const Limits& limits, bool strict);

enum class Verdict : std::uint8_t {
  fail,
  pass,
  inconclusive,
  unlike,  // inconclusive because the sides spread unlike, which more pairs would not change
};
struct Outcome {
  Verdict verdict = Verdict::inconclusive;
  std::uint32_t pairs = 0;
};

// `own` is randomness of the rule, so that all rules see the same runs.
struct Rule {
  std::string name;
  std::function<Outcome(Pairs& pairs, Random& own)> decide;
};

// In the order of the tables, "fixed-n" last: that one is made for a scenario (fixed.hpp).
[[nodiscard]] std::vector<std::string> rule_names();
inline constexpr std::string_view k_fixed_n = "fixed-n";

// Any but fixed-n; absent when there is none of that name.
[[nodiscard]] std::optional<Rule> rule(std::string_view name, const Limits& limits);

// `count` pairs, the base's and the candidate's runs apart. Logarithms.
struct Sample {
  std::vector<double> base, candidate;
};
[[nodiscard]] Sample take(Pairs& pairs, std::uint32_t count);

}  // namespace weir::quality
