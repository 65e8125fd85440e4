// A timed metric of a candidate against its base, from pairs of runs: fail, pass, or not yet.
//
// All numbers are logarithms of what is lower when better (for a rate: -ln), effects are
// theta = ln(candidate / base): 0 is no change, 0.05 about 5 % slower.
//   fail   slower at all (evidence S, null theta <= 0) and slower than `tolerate` (L)
//   pass   less slow than `limit` (W, null theta >= limit)
// after whichever pair first shows it. What is guaranteed, by the coin of each pair alone:
//   nothing changed: P(fail ever) <= false_alarm
//   `limit` slower or more in every slot: P(pass ever) <= missed
//   at most `tolerate` slower in every slot: P(fail ever) <= blamed (strict: <= false_alarm)
// Where the two sides do not spread alike, either decision needs the candidate's fast, typical and
// slow runs and their mean to agree with it (spread.hpp); else the answer is that there is none.
// docs/explanation/decision-rule.md says it in prose; benchmarks/decision_quality measures it.
// Pure.
#pragma once

#include <optional>

#include "gate/stats/evidence.hpp"

namespace weir::stats {

struct PairedRule {
  double tolerate = 0;        // > 0
  double limit = 0;           // > tolerate, < 2.3
  double false_alarm = 1e-3;  // for this metric alone: the gate's, divided over its metrics
  double blamed = 0.01;
  double missed = 0.01;
  bool strict = false;  // fail only by L, at false_alarm
  // On a line: pairs are numbers in units of about their size, which may be negative. Effects are
  // logarithms all the same, and the guarantees hold word for word.
  Scale scale = Scale::logarithmic;
};

// Effects of a rate that drops, and of a time that grows, by `share`.
[[nodiscard]] double effect_of_drop(double share);      // -ln(1 - share)
[[nodiscard]] double effect_of_increase(double share);  // ln(1 + share)

// Spreads that differ so much by chance in 1 of 50 pairs of programs: from here on their difference
// is reported and has to agree with a decision.
inline constexpr double k_suspect_spread = 0.02;

// The fewest pairs that anything can pass with: 8 at `missed` 0.01. No test of n coins has a
// p-value below 2^-n, and the bets need one pair more.
[[nodiscard]] std::size_t fewest_pairs(const PairedRule& rule);

enum class Decision {
  undecided,
  pass,
  fail,
  unlike,  // decided as far as the evidence goes, but the sides spread unlike and disagree with it
};

class PairedTest {
 public:
  explicit PairedTest(const PairedRule& rule);

  // Tests after the pair; the first decision stands.
  void add(const Pair& pair);

  [[nodiscard]] Decision decision() const { return decision_; }
  [[nodiscard]] std::size_t pairs() const { return all_.size(); }
  [[nodiscard]] const std::vector<Pair>& all() const { return all_; }
  // Pairs that the decision took; all pairs so far while there is none.
  [[nodiscard]] std::size_t decided_after() const { return decided_after_; }
  // How many more pairs the nearest decision would take if evidence went on growing as it did;
  // absent while nothing grows. 0 when decided.
  [[nodiscard]] std::optional<double> more_pairs() const;

  // Natural logarithms of the evidences' maxima.
  [[nodiscard]] double log_slower() const { return slower_.max_log_value(); }
  [[nodiscard]] double log_beyond() const { return beyond_.max_log_value(); }
  [[nodiscard]] double log_within() const { return within_.max_log_value(); }

 private:
  PairedRule rule_;
  Evidence slower_, beyond_, within_;
  std::vector<Pair> all_;
  std::size_t decided_after_ = 0;
  // The decision of the evidence, and after how many pairs: spreads that differ may delay it.
  Decision reached_ = Decision::undecided;
  std::size_t reached_after_ = 0;
  Decision decision_ = Decision::undecided;
};

// Returns true for the mirror of fail, at the same levels: faster at all, and by more than
// `tolerate`.
[[nodiscard]] bool improved(std::span<const Pair> pairs, const PairedRule& rule);
// About how many more pairs that would take: 0 if improved already; absent if nothing points there.
[[nodiscard]] std::optional<double> more_pairs_to_improved(std::span<const Pair> pairs,
                                                           const PairedRule& rule);

// Effects that neither side's evidence rejects: covers a constant effect with probability
// 1 - level at any stop. `estimate` is the effect at which both sides have equal evidence. Stopping
// biases it (towards the decision), so show the interval.
struct EffectInterval {
  double estimate = 0, low = 0, high = 0;  // low and high may be infinite
};
// Absent without pairs in which both numbers are finite. Costs some 10 ms for 100 pairs.
[[nodiscard]] std::optional<EffectInterval> effect_interval(std::span<const Pair> pairs,
                                                            const PairedRule& rule,
                                                            double level = 0.05);

}  // namespace weir::stats
