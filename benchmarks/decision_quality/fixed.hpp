// The best rule with a number of pairs fixed in advance, at weir's error rates.
//
// The rule fails if a test rejects "at most `tolerate` slower", at the gate's false alarm divided
// by its metrics; otherwise it passes. A drop of `max_drop` may pass with chance `missed`, so the
// test needs a power of 1 - missed there. The number of pairs is the smallest on a ladder (10, then
// times the square root of 2 each) with which one of three tests has that power on this very
// scenario, measured by replaying it: Mann-Whitney, Welch's t on logarithms, the difference of
// medians over its standard error. Nobody knows these numbers for a real machine; they are the
// yardstick for rules that work without them.
#pragma once

#include <optional>

#include "benchmarks/decision_quality/replay.hpp"

namespace weir::quality {

enum class FixedTest { mann_whitney, welch, median };

struct FixedN {
  std::uint32_t pairs = 0;
  FixedTest test = FixedTest::mann_whitney;
};

inline constexpr std::uint32_t k_ladder_start = 10;

// Absent if no step of the ladder up to limits.cap is enough. `settings.trials` is ignored.
[[nodiscard]] std::optional<FixedN> find_fixed_n(const Scenario& scenario, const Limits& limits,
                                                 const ReplaySettings& settings);

// Without `fixed` the rule is always inconclusive, after limits.cap pairs.
[[nodiscard]] Rule make_fixed_n_rule(const std::optional<FixedN>& fixed, const Limits& limits);

[[nodiscard]] const char* test_name(FixedTest test);

}  // namespace weir::quality
