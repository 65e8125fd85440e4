// What deciding costs: one look over 10 000 timed metrics (limit: 200 ms), and all looks of 100
// pairs x 1 000 metrics (limit: 2 s on one core).
#include <memory>
#include <random>
#include <vector>

#include <benchmark/benchmark.h>

#include "gate/stats/paired.hpp"

namespace {

using namespace weir;

stats::PairedRule rule() {
  stats::PairedRule rule;
  rule.tolerate = stats::effect_of_drop(0.025);
  rule.limit = stats::effect_of_drop(0.05);
  rule.false_alarm = 1e-7;
  return rule;
}

// So noisy that nothing is decided early: every pair is looked at.
stats::Pair noisy(std::mt19937_64& random) {
  std::normal_distribution<double> noise(0, 0.5);
  return {noise(random), noise(random)};
}

void one_look_over_10000_metrics(benchmark::State& state) {
  constexpr std::size_t k_metrics = 10'000;
  std::mt19937_64 random(1);
  std::vector<stats::PairedTest> tests(k_metrics, stats::PairedTest(rule()));
  for (int pair = 0; pair < 8; ++pair) {
    for (stats::PairedTest& test : tests) test.add(noisy(random));
  }
  std::vector<stats::Pair> next;
  for (std::size_t i = 0; i < k_metrics; ++i) next.push_back(noisy(random));
  for (auto _ : state) {
    for (std::size_t i = 0; i < k_metrics; ++i) tests[i].add(next[i]);
  }
}
BENCHMARK(one_look_over_10000_metrics)->Unit(benchmark::kMillisecond)->Iterations(5);

void hundred_pairs_of_1000_metrics(benchmark::State& state) {
  std::mt19937_64 random(2);
  std::vector<stats::Pair> pairs;
  for (int i = 0; i < 100 * 1000; ++i) pairs.push_back(noisy(random));
  for (auto _ : state) {
    std::size_t at = 0;
    for (int metric = 0; metric < 1000; ++metric) {
      stats::PairedTest test(rule());
      for (int pair = 0; pair < 100; ++pair) test.add(pairs[at++]);
      benchmark::DoNotOptimize(test.decision());
    }
  }
}
BENCHMARK(hundred_pairs_of_1000_metrics)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
