// The decision rules that are compared: weir's sequential test, and fixed-size tests and
// thresholds.
#include "benchmarks/decision_quality/rules.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <utility>

#include "gate/stats/quantile.hpp"

#include "benchmarks/decision_quality/classic.hpp"

namespace weir::quality {
namespace {

using stats::effect_of_drop;
using Values = std::vector<double>;

constexpr std::uint32_t k_threshold_runs = 5;  // runs of each side for a threshold
constexpr std::uint32_t k_test_runs = 10;      // runs of each side for a test
constexpr double k_level = 0.05;

// Returns weir's own rule: takes pairs until the sequential test has decided, at most `limits.cap`.
Rule sequential_rule(std::string name, const Limits& limits, bool strict) {
  return {std::move(name),
          [rule = paired_rule(limits, strict), cap = limits.cap](Pairs& pairs, Random&) {
            stats::PairedTest test(rule);
            while (test.decision() == stats::Decision::undecided && test.pairs() < cap) {
              test.add(pairs.next());
            }
            const auto used = static_cast<std::uint32_t>(test.pairs());
            switch (test.decision()) {
              case stats::Decision::fail:
                return Outcome{Verdict::fail, used};
              case stats::Decision::pass:
                return Outcome{Verdict::pass, used};
              case stats::Decision::unlike:
                return Outcome{Verdict::unlike, used};
              case stats::Decision::undecided:
                break;
            }
            return Outcome{Verdict::inconclusive, used};
          }};
}

// A rule that takes exactly `count` pairs and then calls judge(sample, own). It is inconclusive if
// the cap does not allow so many pairs.
template <class Judge>
Rule fixed_count_rule(std::string name, const Limits& limits, std::uint32_t count, Judge judge) {
  return {std::move(name), [count, cap = limits.cap, judge](Pairs& pairs, Random& own) {
            if (count > cap) return Outcome{Verdict::inconclusive, cap};
            const Sample sample = draw_sample(pairs, count);
            return Outcome{judge(sample, own), count};
          }};
}

Verdict fail_if(bool slower) { return slower ? Verdict::fail : Verdict::pass; }

// Returns ln of the mean time; `logs` are logarithms of times.
double log_mean(const Values& logs) {
  double sum = 0;
  for (const double log : logs) sum += std::exp(log - logs[0]);
  return logs[0] + std::log(sum / static_cast<double>(logs.size()));
}
double log_median(const Values& logs) { return *stats::median(logs); }
double log_min(const Values& logs) { return *std::min_element(logs.begin(), logs.end()); }

using Statistic = double (*)(const Values&);
// Fails if the candidate's statistic exceeds the base's by more than `limit`; both are logarithms.
Rule threshold_rule(std::string name, const Limits& limits, std::uint32_t count,
                    Statistic statistic, double limit) {
  const auto judge = [statistic, limit](const Sample& sample, Random&) {
    return fail_if(statistic(sample.candidate) - statistic(sample.base) > limit);
  };
  return fixed_count_rule(std::move(name), limits, count, judge);
}

// Returns the rule of a threshold on means, run again while it fails, at most three times in all.
Rule rerun_rule(const Limits& limits) {
  const double limit = effect_of_drop(limits.max_drop);
  return {"rerun3", [limit, cap = limits.cap](Pairs& pairs, Random&) {
            constexpr std::uint32_t k_attempts = 3;
            std::uint32_t used = 0;
            for (std::uint32_t attempt = 0; attempt < k_attempts; ++attempt) {
              if (used + k_threshold_runs > cap) return Outcome{Verdict::inconclusive, cap};
              const Sample sample = draw_sample(pairs, k_threshold_runs);
              used += k_threshold_runs;
              if (log_mean(sample.candidate) - log_mean(sample.base) <= limit) {
                return Outcome{Verdict::pass, used};
              }
            }
            return Outcome{Verdict::fail, used};
          }};
}

// Fails if Welch's t test finds the candidate slower at k_level (two-sided).
Verdict judge_by_welch(const Sample& sample, Random&) {
  const Welch test = welch(sample.base, sample.candidate);
  return fail_if(test.t > 0 && 2 * stats::student_cdf(-test.t, test.df) < k_level);
}

// The same by Mann and Whitney's test.
Verdict judge_by_ranks(const Sample& sample, Random&) {
  Sample sorted = sample;
  std::sort(sorted.base.begin(), sorted.base.end());
  std::sort(sorted.candidate.begin(), sorted.candidate.end());
  const MannWhitney test = mann_whitney(sorted.base, sorted.candidate);
  return fail_if(test.p.greater < test.p.less && test.p.two_sided() < k_level);
}

// Draws k_threshold_runs values with replacement and returns their median.
double median_of_resample(const Values& values, Random& random) {
  std::array<double, k_threshold_runs> resample{};
  for (double& value : resample) value = values[random.below(values.size())];
  const auto middle = resample.begin() + k_threshold_runs / 2;
  std::nth_element(resample.begin(), middle, resample.end());
  return *middle;
}

// Returns the rule of a bootstrap interval of candidate over base, by the medians of 1000 resamples
// of both. Fails if all of it is above the limit, passes if all of it is below.
Rule bootstrap_rule(const Limits& limits) {
  const double limit = effect_of_drop(limits.max_drop);
  const auto judge = [limit](const Sample& sample, Random& random) {
    constexpr std::size_t k_resamples = 1000;
    Values log_ratios(k_resamples);
    for (double& log_ratio : log_ratios) {
      const double candidate = median_of_resample(sample.candidate, random);
      log_ratio = candidate - median_of_resample(sample.base, random);
    }
    const auto quantile = [&log_ratios](double share) {
      const auto place = static_cast<std::ptrdiff_t>(share * (k_resamples - 1));
      std::nth_element(log_ratios.begin(), log_ratios.begin() + place, log_ratios.end());
      return log_ratios[static_cast<std::size_t>(place)];
    };
    if (quantile(k_level / 2) > limit) return Verdict::fail;
    return quantile(1 - k_level / 2) < limit ? Verdict::pass : Verdict::inconclusive;
  };
  return fixed_count_rule("bootstrap", limits, k_threshold_runs, judge);
}

}  // namespace

stats::PairedRule paired_rule(const Limits& limits, bool strict) {
  stats::PairedRule rule;
  rule.tolerate = effect_of_drop(limits.tolerate);
  rule.limit = effect_of_drop(limits.max_drop);
  rule.false_alarm = k_gate_false_alarm / k_gate_metrics;
  rule.missed = k_missed;
  rule.strict = strict;
  return rule;
}

// Returns the names of all rules, in the order of the tables.
std::vector<std::string> rule_names() {
  return {"weir",
          "strict",
          "mean",
          "median",
          "min",
          "welch",
          "mannwhitney",
          "rerun3",
          "perfgate",
          "bootstrap",
          std::string(k_fixed_n)};
}

// Returns the rule of this name; nullopt for fixed-n and unknown names.
std::optional<Rule> make_rule(std::string_view name, const Limits& limits) {
  const double limit = effect_of_drop(limits.max_drop);
  if (name == "weir") return sequential_rule("weir", limits, /*strict=*/false);
  if (name == "strict") return sequential_rule("strict", limits, /*strict=*/true);
  if (name == "mean") return threshold_rule("mean", limits, k_threshold_runs, log_mean, limit);
  if (name == "median") {
    return threshold_rule("median", limits, k_threshold_runs, log_median, limit);
  }
  if (name == "min") return threshold_rule("min", limits, k_threshold_runs, log_min, limit);
  if (name == "welch") return fixed_count_rule("welch", limits, k_test_runs, judge_by_welch);
  if (name == "mannwhitney") {
    return fixed_count_rule("mannwhitney", limits, k_test_runs, judge_by_ranks);
  }
  if (name == "rerun3") return rerun_rule(limits);
  if (name == "perfgate") return threshold_rule("perfgate", limits, 7, log_median, std::log(1.2));
  if (name == "bootstrap") return bootstrap_rule(limits);
  return std::nullopt;
}

Sample draw_sample(Pairs& pairs, std::uint32_t count) {
  Sample sample;
  sample.base.reserve(count);
  sample.candidate.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const stats::Pair pair = pairs.next();
    sample.base.push_back(pair.base);
    sample.candidate.push_back(pair.candidate);
  }
  return sample;
}

}  // namespace weir::quality
