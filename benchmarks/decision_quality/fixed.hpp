// The best that a number of pairs fixed in advance can do at weir's error rates, and a rule of it.
//
// A test of "at most `tolerate` slower" at the gate's false alarm over its metrics fails; whatever
// it does not fail passes. So that a drop of `max_drop` passes at most `missed`, the power there
// must be 1 - missed: the number of pairs is the smallest on a ladder (10, times the square root of
// 2, ...) for which one of three tests has it on this very scenario, found by replaying it:
// Mann-Whitney, Welch's t on logarithms, the difference of medians over its standard error. Nobody
// has such a table for a machine; it is the measure for the rules that go without.
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

// Absent when no step of the ladder up to limits.cap is enough. `settings.trials` is ignored.
[[nodiscard]] std::optional<FixedN> find_fixed_n(const Scenario& scenario, const Limits& limits,
                                                 const Replay& settings);

// Without a `fixed`: inconclusive after limits.cap pairs.
[[nodiscard]] Rule fixed_rule_of(const std::optional<FixedN>& fixed, const Limits& limits);

[[nodiscard]] const char* name_of(FixedTest test);

}  // namespace weir::quality
