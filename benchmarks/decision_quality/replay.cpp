#include "benchmarks/decision_quality/replay.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <mutex>
#include <thread>
#include <vector>

namespace weir::quality {

void Tally::add(const Outcome& outcome) {
  ++trials;
  ++pairs[outcome.pairs];
  if (outcome.verdict == Verdict::inconclusive || outcome.verdict == Verdict::unlike) {
    ++inconclusive;
    unlike += outcome.verdict == Verdict::unlike ? 1 : 0;
    return;
  }
  if (outcome.verdict == Verdict::fail) {
    ++fail;
  } else {
    ++pass;
  }
  for (std::size_t i = 0; i < k_looks.size(); ++i) {
    if (outcome.pairs <= k_looks[i]) ++decided_within[i];
  }
}

void Tally::add(const Tally& other) {
  trials += other.trials;
  fail += other.fail;
  pass += other.pass;
  inconclusive += other.inconclusive;
  unlike += other.unlike;
  for (std::size_t i = 0; i < k_looks.size(); ++i) decided_within[i] += other.decided_within[i];
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
  std::uint64_t seen = 0;
  for (const auto& [count, times] : pairs) {
    seen += times;
    if (seen * 100 >= trials * 95) return count;
  }
  return 0;
}

void in_parallel(std::uint64_t count, unsigned threads, Tally& sum,
                 const std::function<void(std::uint64_t, Tally&)>& work) {
  constexpr std::uint64_t k_chunk = 16;
  std::atomic<std::uint64_t> next{0};
  std::mutex mutex;
  const auto run = [&] {
    Tally mine;
    for (std::uint64_t from = next.fetch_add(k_chunk); from < count;
         from = next.fetch_add(k_chunk)) {
      for (std::uint64_t at = from; at < std::min(count, from + k_chunk); ++at) work(at, mine);
    }
    const std::lock_guard lock(mutex);
    sum.add(mine);  // sums of whole numbers: their order does not matter
  };
  std::vector<std::thread> others;
  for (unsigned i = 1; i < threads; ++i) others.emplace_back(run);
  run();
  for (std::thread& other : others) other.join();
}

std::uint64_t trial_key(std::uint64_t seed, const Scenario& scenario, double effect,
                        std::uint64_t trial) {
  const std::uint64_t key =
      key_of(key_of(seed, scenario.name), std::bit_cast<std::uint64_t>(effect));
  return key_of(key, trial);
}

Tally replay(const Scenario& scenario, double effect, const Rule& rule, const Replay& settings) {
  constexpr std::uint64_t k_own = 1;
  Tally sum;
  in_parallel(settings.trials, settings.threads, sum, [&](std::uint64_t trial, Tally& tally) {
    const std::uint64_t key = trial_key(settings.seed, scenario, effect, trial);
    const std::unique_ptr<Pairs> pairs = scenario.start(Random(key), effect, settings.coin);
    Random own(key_of(key, k_own));
    tally.add(rule.decide(*pairs, own));
  });
  return sum;
}

}  // namespace weir::quality
