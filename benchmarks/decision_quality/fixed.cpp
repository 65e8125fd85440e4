// Searches the smallest fixed number of pairs that reaches weir's error rates.
#include "benchmarks/decision_quality/fixed.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "gate/stats/quantile.hpp"
#include "gate/stats/stored.hpp"

#include "benchmarks/decision_quality/classic.hpp"

namespace weir::quality {
namespace {

constexpr double k_alpha = k_gate_false_alarm / k_gate_metrics;
constexpr FixedTest k_tests[] = {FixedTest::mann_whitney, FixedTest::welch, FixedTest::median};
constexpr std::uint64_t k_search_trials = 4000;

// Returns true if the test shows that the candidate is slower by more than `shift`, a logarithm.
// The samples are sorted.
bool shows_slowdown(FixedTest test, const Sample& sorted, double shift) {
  switch (test) {
    case FixedTest::mann_whitney:
      return mann_whitney(sorted.base, sorted.candidate, shift).p.greater <= k_alpha;
    case FixedTest::welch: {
      const Welch result = welch(sorted.base, sorted.candidate, shift);
      return result.t > 0 && stats::student_cdf(-result.t, result.df) <= k_alpha;
    }
    case FixedTest::median:
      break;
  }
  const double base_error = stats::median_standard_error(sorted.base);
  const double candidate_error = stats::median_standard_error(sorted.candidate);
  if (base_error == 0 || candidate_error == 0) return false;  // ties: the error is not known
  const double error = std::hypot(base_error, candidate_error);
  const double difference = *stats::median(sorted.candidate) - *stats::median(sorted.base) - shift;
  return difference > error * stats::normal_quantile(1 - k_alpha);
}

Sample draw_sorted(Pairs& pairs, std::uint32_t count) {
  Sample sample = draw_sample(pairs, count);
  std::sort(sample.base.begin(), sample.base.end());
  std::sort(sample.candidate.begin(), sample.candidate.end());
  return sample;
}

}  // namespace

// Returns the least number of pairs with which a test misses at most k_missed of the candidates
// that are slower by max_drop. Nullopt if limits.cap is reached first.
std::optional<FixedN> find_fixed_n(const Scenario& scenario, const Limits& limits,
                                   const ReplaySettings& settings) {
  constexpr std::string_view k_search = "search";  // keeps these trials apart from those reported
  const double tolerate = stats::effect_of_drop(limits.tolerate);
  const double limit = stats::effect_of_drop(limits.max_drop);
  const auto may_miss = static_cast<std::uint64_t>(k_missed * static_cast<double>(k_search_trials));
  for (int step = 0;; ++step) {
    const auto pair_count =
        static_cast<std::uint32_t>(std::lround(k_ladder_start * std::pow(2.0, step / 2.0)));
    if (pair_count > limits.cap) return std::nullopt;
    for (const FixedTest test : k_tests) {
      // Trials are skipped once the test has missed too often. The count of misses passes may_miss
      // or not in any order of trials, so the result does not depend on the threads.
      std::atomic<std::uint64_t> missed{0};
      Tally unused;  // run_trials wants one
      run_trials(k_search_trials, settings.threads, unused, [&](std::uint64_t trial, Tally&) {
        if (missed.load(std::memory_order_relaxed) > may_miss) return;
        const std::uint64_t key =
            trial_key(derive_key(settings.seed, k_search), scenario, limit, trial);
        const auto pairs = scenario.start(Random(key), limit, settings.coin);
        if (!shows_slowdown(test, draw_sorted(*pairs, pair_count), tolerate)) ++missed;
      });
      if (missed <= may_miss) return FixedN{pair_count, test};
    }
  }
}

// Returns the rule that takes fixed->pairs pairs and fails if the test shows a slower candidate.
// Without `fixed` it is always inconclusive.
Rule make_fixed_n_rule(const std::optional<FixedN>& fixed, const Limits& limits) {
  if (!fixed) {
    const Outcome inconclusive{Verdict::inconclusive, limits.cap};
    return {std::string(k_fixed_n), [inconclusive](Pairs&, Random&) { return inconclusive; }};
  }
  const double tolerate = stats::effect_of_drop(limits.tolerate);
  return {std::string(k_fixed_n), [fixed = *fixed, tolerate](Pairs& pairs, Random&) {
            const Sample sorted = draw_sorted(pairs, fixed.pairs);
            const bool slower = shows_slowdown(fixed.test, sorted, tolerate);
            return Outcome{slower ? Verdict::fail : Verdict::pass, fixed.pairs};
          }};
}

const char* test_name(FixedTest test) {
  switch (test) {
    case FixedTest::mann_whitney:
      return "Mann-Whitney";
    case FixedTest::welch:
      return "Welch";
    case FixedTest::median:
      break;
  }
  return "median";
}

}  // namespace weir::quality
