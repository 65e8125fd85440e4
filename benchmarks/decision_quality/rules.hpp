// Rules that judge a candidate, by name. README.md describes each. Pure.
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

// weir's own rule, for a gate of k_gate_metrics metrics: k_gate_false_alarm of gates fail falsely,
// and a metric slower by max_drop passes with chance k_missed.
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

// In the order of the tables. "fixed-n" is last: it depends on the scenario (fixed.hpp).
[[nodiscard]] std::vector<std::string> rule_names();
inline constexpr std::string_view k_fixed_n = "fixed-n";

// Absent if no rule has this name, and for fixed-n.
[[nodiscard]] std::optional<Rule> make_rule(std::string_view name, const Limits& limits);

// Logarithms of times, the runs of each side by themselves.
struct Sample {
  std::vector<double> base, candidate;
};
// Takes the next `count` pairs.
[[nodiscard]] Sample draw_sample(Pairs& pairs, std::uint32_t count);

}  // namespace weir::quality
