// Runs many trials of one rule on one scenario and counts their outcomes.
#include "benchmarks/decision_quality/replay.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <mutex>
#include <thread>
#include <vector>

namespace weir::quality {

// Counts the verdict of one trial, and within how many pairs it was reached. A trial whose sides
// are `unlike` (spread differently) counts as inconclusive, too.
void Tally::add(const Outcome& outcome) {
  ++trials;
  ++pairs[outcome.pairs];
  if (outcome.verdict == Verdict::inconclusive || outcome.verdict == Verdict::unlike) {
    ++inconclusive;
    if (outcome.verdict == Verdict::unlike) ++unlike;
    return;
  }
  if (outcome.verdict == Verdict::fail) {
    ++fail;
  } else {
    ++pass;
  }
  for (std::size_t i = 0; i < k_pair_limits.size(); ++i) {
    if (outcome.pairs <= k_pair_limits[i]) ++decided_within[i];
  }
}

void Tally::add(const Tally& other) {
  trials += other.trials;
  fail += other.fail;
  pass += other.pass;
  inconclusive += other.inconclusive;
  unlike += other.unlike;
  for (std::size_t i = 0; i < k_pair_limits.size(); ++i)
    decided_within[i] += other.decided_within[i];
  for (const auto& [count, times] : other.pairs) pairs[count] += times;
}

double Tally::share(std::uint64_t count) const {
  return trials == 0 ? 0 : static_cast<double>(count) / static_cast<double>(trials);
}

double Tally::pairs_mean() const {
  std::uint64_t sum = 0;
  for (const auto& [count, times] : pairs) sum += count * times;
  return share(sum);
}

std::uint32_t Tally::pairs_p95() const {
  std::uint64_t trials_so_far = 0;
  for (const auto& [count, times] : pairs) {
    trials_so_far += times;
    if (trials_so_far * 100 >= trials * 95) return count;
  }
  return 0;
}

// Calls work(trial, tally) for all trials below `count` on `threads` threads, in chunks. Each
// thread has a tally of its own, which is added to `sum` at its end.
void run_trials(std::uint64_t count, unsigned threads, Tally& sum,
                const std::function<void(std::uint64_t, Tally&)>& work) {
  constexpr std::uint64_t k_chunk = 16;
  std::atomic<std::uint64_t> next{0};
  std::mutex mutex;
  const auto run = [&] {
    Tally tally;
    while (true) {
      const std::uint64_t begin = next.fetch_add(k_chunk);
      if (begin >= count) break;
      const std::uint64_t end = std::min(count, begin + k_chunk);
      for (std::uint64_t trial = begin; trial < end; ++trial) work(trial, tally);
    }
    const std::lock_guard lock(mutex);
    sum.add(tally);  // sums of integers: the order of threads does not matter
  };
  std::vector<std::thread> others;
  for (unsigned i = 1; i < threads; ++i) others.emplace_back(run);
  run();  // this thread works too
  for (std::thread& other : others) other.join();
}

std::uint64_t trial_key(std::uint64_t seed, const Scenario& scenario, double effect,
                        std::uint64_t trial) {
  const std::uint64_t key =
      derive_key(derive_key(seed, scenario.name), std::bit_cast<std::uint64_t>(effect));
  return derive_key(key, trial);
}

// Runs the trials of a rule and returns the tally of verdicts. Rule and runs draw from different
// random numbers, so that every rule sees the same runs.
Tally replay(const Scenario& scenario, double effect, const Rule& rule,
             const ReplaySettings& settings) {
  constexpr std::uint64_t k_rule_stream = 1;  // so that the rule draws from numbers of its own
  Tally sum;
  run_trials(settings.trials, settings.threads, sum, [&](std::uint64_t trial, Tally& tally) {
    const std::uint64_t key = trial_key(settings.seed, scenario, effect, trial);
    const std::unique_ptr<Pairs> pairs = scenario.start(Random(key), effect, settings.coin);
    Random rule_random(derive_key(key, k_rule_stream));
    tally.add(rule.decide(*pairs, rule_random));
  });
  return sum;
}

}  // namespace weir::quality
