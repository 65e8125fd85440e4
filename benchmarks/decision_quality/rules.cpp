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

constexpr std::uint32_t k_few = 5;      // runs of each side for a threshold
constexpr std::uint32_t k_tested = 10;  // runs of each side for a test
constexpr double k_level = 0.05;

Rule evidence_rule(std::string name, const Limits& limits, bool strict) {
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

// A rule that takes `count` pairs, no more and no less, and then judges.
template <class Judge>
Rule fixed_rule(std::string name, const Limits& limits, std::uint32_t count, Judge judge) {
  return {std::move(name), [count, cap = limits.cap, judge](Pairs& pairs, Random& own) {
            if (count > cap) return Outcome{Verdict::inconclusive, cap};
            const Sample sample = take(pairs, count);
            return Outcome{judge(sample, own), count};
          }};
}

Verdict fail_if(bool slower) { return slower ? Verdict::fail : Verdict::pass; }

// ln of the mean of the times: what most people average.
double log_mean(const Values& logs) {
  double sum = 0;
  for (const double log : logs) sum += std::exp(log - logs[0]);
  return logs[0] + std::log(sum / static_cast<double>(logs.size()));
}
double log_median(const Values& logs) { return *stats::median(logs); }
double log_least(const Values& logs) { return *std::min_element(logs.begin(), logs.end()); }

using Statistic = double (*)(const Values&);
Rule threshold(std::string name, const Limits& limits, std::uint32_t count, Statistic statistic,
               double most) {
  return fixed_rule(std::move(name), limits, count, [statistic, most](const Sample& s, Random&) {
    return fail_if(statistic(s.candidate) - statistic(s.base) > most);
  });
}

// The threshold on means again, as long as it fails and up to three times.
Rule rerun(const Limits& limits) {
  const double most = effect_of_drop(limits.max_drop);
  return {"rerun3", [most, cap = limits.cap](Pairs& pairs, Random&) {
            constexpr std::uint32_t k_times = 3;
            std::uint32_t used = 0;
            for (std::uint32_t time = 0; time < k_times; ++time) {
              if (used + k_few > cap) return Outcome{Verdict::inconclusive, cap};
              const Sample sample = take(pairs, k_few);
              used += k_few;
              if (log_mean(sample.candidate) - log_mean(sample.base) <= most) {
                return Outcome{Verdict::pass, used};
              }
            }
            return Outcome{Verdict::fail, used};
          }};
}

Verdict judge_by_welch(const Sample& sample, Random&) {
  const Welch test = welch(sample.base, sample.candidate);
  return fail_if(test.t > 0 && 2 * stats::student_cdf(-test.t, test.df) < k_level);
}

Verdict judge_by_ranks(const Sample& sample, Random&) {
  Sample sorted = sample;
  std::sort(sorted.base.begin(), sorted.base.end());
  std::sort(sorted.candidate.begin(), sorted.candidate.end());
  const MannWhitney test = mann_whitney(sorted.base, sorted.candidate);
  return fail_if(test.p.greater < test.p.less && test.p.two_sided() < k_level);
}

// Percentiles of the ratio of medians over resamples of both sides.
Rule bootstrap(const Limits& limits) {
  const double most = effect_of_drop(limits.max_drop);
  const auto judge = [most](const Sample& sample, Random& own) {
    constexpr std::size_t k_resamples = 1000;
    const auto median_of_resample = [&own](const Values& from) {
      std::array<double, k_few> drawn{};
      for (double& value : drawn) value = from[own.below(from.size())];
      std::nth_element(drawn.begin(), drawn.begin() + k_few / 2, drawn.end());
      return drawn[k_few / 2];
    };
    Values ratios(k_resamples);
    for (double& ratio : ratios) {
      const double candidate = median_of_resample(sample.candidate);
      ratio = candidate - median_of_resample(sample.base);
    }
    const auto at = [&ratios](double share) {
      const auto place = static_cast<std::ptrdiff_t>(share * (k_resamples - 1));
      std::nth_element(ratios.begin(), ratios.begin() + place, ratios.end());
      return ratios[static_cast<std::size_t>(place)];
    };
    if (at(k_level / 2) > most) return Verdict::fail;
    return at(1 - k_level / 2) < most ? Verdict::pass : Verdict::inconclusive;
  };
  return fixed_rule("bootstrap", limits, k_few, judge);
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

std::optional<Rule> rule(std::string_view name, const Limits& limits) {
  const double most = effect_of_drop(limits.max_drop);
  if (name == "weir") return evidence_rule("weir", limits, false);
  if (name == "strict") return evidence_rule("strict", limits, true);
  if (name == "mean") return threshold("mean", limits, k_few, log_mean, most);
  if (name == "median") return threshold("median", limits, k_few, log_median, most);
  if (name == "min") return threshold("min", limits, k_few, log_least, most);
  if (name == "welch") return fixed_rule("welch", limits, k_tested, judge_by_welch);
  if (name == "mannwhitney") return fixed_rule("mannwhitney", limits, k_tested, judge_by_ranks);
  if (name == "rerun3") return rerun(limits);
  if (name == "perfgate") return threshold("perfgate", limits, 7, log_median, std::log(1.2));
  if (name == "bootstrap") return bootstrap(limits);
  return std::nullopt;
}

Sample take(Pairs& pairs, std::uint32_t count) {
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
