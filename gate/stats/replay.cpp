// Replays gates from measured pairs.
#include "gate/stats/replay.hpp"

#include <cassert>
#include <cmath>
#include <limits>
#include <random>

#include "gate/stats/quantile.hpp"
#include "gate/stats/spread.hpp"

namespace weir::stats {
namespace {

// A number in [0, 1), the same on every system: standard distributions differ between libraries.
double uniform(std::mt19937_64& random) { return static_cast<double>(random() >> 11U) * 0x1p-53; }

// ln P(X = k) for X of a binomial distribution, 0 < p < 1.
double log_binomial(std::size_t k, std::size_t n, double p) {
  const auto x = static_cast<double>(k), all = static_cast<double>(n);
  return std::lgamma(all + 1) - std::lgamma(x + 1) - std::lgamma(all - x + 1) + x * std::log(p) +
         (all - x) * std::log1p(-p);
}

// P(at most `hits` of `trials`), for 0 < share < 1. Terms shrink downwards if share > hits /
// trials.
double probability_of_at_most(std::size_t hits, std::size_t trials, double share) {
  double term = std::exp(log_binomial(hits, trials, share));
  double sum = 0;
  for (std::size_t k = hits;; --k) {
    sum += term;
    const auto x = static_cast<double>(k), all = static_cast<double>(trials);
    term *= x / (all - x + 1) * (1 - share) / share;
    if (k == 0 || term <= sum * 1e-17) return sum;
  }
}

}  // namespace

double replay_block(std::size_t pairs) {
  return std::clamp(static_cast<double>(pairs) / 5, 1.0, 8.0);
}

// Simulates one gate of a cell: draws its measured pairs in blocks until every metric is decided,
// at most `max_pairs`. ReplayAs says if the change is removed, set to the limit, or kept.
CellReplay replay_cell(const CellPairs& series, std::span<const PairedRule> rules, ReplayAs change,
                       std::uint64_t seed, std::size_t max_pairs) {
  assert(!series.empty() && series.size() == rules.size() && series.front().size() >= 2);
  const std::size_t length = series.front().size();
  const double jump_probability = 1 / replay_block(length);
  std::vector<PairedTest> tests(rules.begin(), rules.end());
  std::vector<double> removed_change(series.size(), 0), added_change(series.size(), 0);
  for (std::size_t metric = 0; metric < series.size(); ++metric) {
    if (change != ReplayAs::measured) removed_change[metric] = median_difference(series[metric]);
    if (change == ReplayAs::at_limit) added_change[metric] = rules[metric].limit;
  }
  std::mt19937_64 random(seed);
  const auto is_undecided = [](const PairedTest& test) {
    return test.decision() == Decision::undecided;
  };
  CellReplay replay;
  std::size_t pair_index = random() % length;
  while (replay.pairs < max_pairs) {
    // One coin for all metrics: they come from the same two runs.
    const bool is_swapped = change != ReplayAs::measured && (random() >> 63U) != 0;
    for (std::size_t metric = 0; metric < series.size(); ++metric) {
      if (!is_undecided(tests[metric])) continue;
      Pair pair = series[metric][pair_index];
      pair.candidate -= removed_change[metric];
      if (is_swapped) std::swap(pair.base, pair.candidate);
      pair.candidate += added_change[metric];
      tests[metric].add(pair);
    }
    ++replay.pairs;
    if (std::ranges::none_of(tests, is_undecided)) break;
    pair_index = uniform(random) < jump_probability ? random() % length : (pair_index + 1) % length;
  }
  for (const PairedTest& test : tests) {
    replay.decided = replay.decided && !is_undecided(test) && test.decision() != Decision::unlike;
    replay.failed = replay.failed || test.decision() == Decision::fail;
    replay.all_failed = replay.all_failed && test.decision() == Decision::fail;
  }
  return replay;
}

// Returns the standard deviation of candidate - base, estimated from the middle half of the pairs;
// infinite if too many runs timed out, 0 without pairs.
double pair_noise(std::span<const Pair> pairs) {
  std::vector<double> differences;
  for (const Pair& pair : pairs) {
    double difference = pair.candidate - pair.base;
    if (std::isnan(difference)) difference = 0;  // both timed out
    // quantile() interpolates, so a large number stands for infinity.
    if (std::isinf(difference)) difference = std::copysign(1e300, difference);
    differences.push_back(difference);
  }
  const auto low = quantile(differences, 0.25), high = quantile(differences, 0.75);
  if (!low || !high) return 0;
  // The distance of a normal distribution's quartiles: 2 normal_quantile(0.75).
  constexpr double k_quartile_distance = 1.3489795003921634;
  const double noise = (*high - *low) / k_quartile_distance;
  return noise > 1e100 ? std::numeric_limits<double>::infinity() : noise;
}

// Returns the largest share of successes that `hits` of `trials` does not reject at `confidence`
// (Clopper and Pearson's upper limit), by bisection.
double max_share(std::size_t hits, std::size_t trials, double confidence) {
  assert(hits <= trials);
  if (hits == trials) return 1;
  double low = static_cast<double>(hits) / static_cast<double>(trials), high = 1;
  for (int step = 0; step < 60; ++step) {
    const double share = (low + high) / 2;
    const double chance = share < 1 ? probability_of_at_most(hits, trials, share) : 0;
    if (chance > 1 - confidence) {
      low = share;
    } else {
      high = share;
    }
  }
  return high;
}

}  // namespace weir::stats
