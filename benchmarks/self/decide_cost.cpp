// Measures the cost of the sequential test: one pair of 10 000 metrics (limit: 200 ms), and 100
// pairs of 1 000 metrics (limit: 2 s on one core).
#include <memory>
#include <random>
#include <vector>

#include <benchmark/benchmark.h>

#include "gate/stats/paired.hpp"

namespace {

using namespace weir;

stats::PairedRule make_rule() {
  stats::PairedRule rule;
  rule.tolerate = stats::effect_of_drop(0.025);
  rule.limit = stats::effect_of_drop(0.05);
  rule.false_alarm = 1e-7;
  return rule;
}

// A pair so noisy that no test is decided early, so every pair is evaluated.
stats::Pair noisy_pair(std::mt19937_64& random) {
  std::normal_distribution<double> noise(0, 0.5);
  return {noise(random), noise(random)};
}

// Measures adding one more pair to the tests of 10 000 metrics, which have 8 pairs before.
void one_look_over_10000_metrics(benchmark::State& state) {
  constexpr std::size_t k_metrics = 10'000;
  std::mt19937_64 random(1);
  std::vector<stats::PairedTest> tests(k_metrics, stats::PairedTest(make_rule()));
  for (int pair = 0; pair < 8; ++pair) {
    for (stats::PairedTest& test : tests) test.add(noisy_pair(random));
  }
  std::vector<stats::Pair> next;
  for (std::size_t i = 0; i < k_metrics; ++i) next.push_back(noisy_pair(random));
  for (auto _ : state) {
    for (std::size_t i = 0; i < k_metrics; ++i) tests[i].add(next[i]);
  }
}
BENCHMARK(one_look_over_10000_metrics)->Unit(benchmark::kMillisecond)->Iterations(5);

// Measures adding 100 pairs to the tests of 1 000 metrics.
void hundred_pairs_of_1000_metrics(benchmark::State& state) {
  std::mt19937_64 random(2);
  std::vector<stats::Pair> pairs;
  for (int i = 0; i < 100 * 1000; ++i) pairs.push_back(noisy_pair(random));
  for (auto _ : state) {
    std::size_t at = 0;
    for (int metric = 0; metric < 1000; ++metric) {
      stats::PairedTest test(make_rule());
      for (int pair = 0; pair < 100; ++pair) {
        test.add(pairs[at]);
        ++at;
      }
      benchmark::DoNotOptimize(test.decision());
    }
  }
}
BENCHMARK(hundred_pairs_of_1000_metrics)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
