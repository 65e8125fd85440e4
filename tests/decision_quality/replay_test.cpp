// Tests of replaying rules on noises.
#include "benchmarks/decision_quality/replay.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "benchmarks/decision_quality/noise.hpp"

namespace weir::quality {
namespace replay_test {

constexpr Limits k_limits{0.05, 0.1, 10'000};

bool same(const Tally& a, const Tally& b) {
  return a.trials == b.trials && a.fail == b.fail && a.pass == b.pass && a.pairs == b.pairs &&
         a.decided_within == b.decided_within;
}

TEST(Replay, DependsOnTheSeedAndNotOnTheThreads) {
  const Scenario floor = *noise("floor");
  for (const char* name : {"weir", "bootstrap"}) {
    const Rule of_name = *make_rule(name, k_limits);
    const double effect = stats::effect_of_drop(0.1);
    const Tally alone = replay(floor, effect, of_name, {7, 100, 1, Coin::fair});
    EXPECT_TRUE(same(alone, replay(floor, effect, of_name, {7, 100, 3, Coin::fair}))) << name;
    EXPECT_EQ(alone.trials, 100U);
  }
  const Rule weir = *make_rule("weir", k_limits);
  EXPECT_FALSE(same(replay(floor, 0.1, weir, {7, 100, 1, Coin::fair}),
                    replay(floor, 0.1, weir, {8, 100, 1, Coin::fair})));
}

TEST(Replay, FindsFalseAlarmsWithoutTheCoinAndNoneWithIt) {
  const Scenario slot2 = *noise("slot2");
  const Rule weir = *make_rule("weir", k_limits);
  EXPECT_GT(replay(slot2, 0, weir, {1, 200, 1, Coin::off}).fail, 60U);
  EXPECT_EQ(replay(slot2, 0, weir, {1, 200, 1, Coin::fair}).fail, 0U);
}

TEST(Noise, AllNamesAreKnownAndFinite) {
  for (const std::string& name : noise_names()) {
    const auto scenario = noise(name);
    ASSERT_TRUE(scenario) << name;
    EXPECT_EQ(scenario->name, name);
    const auto pairs = scenario->start(Random(1), 0.1, Coin::fair);
    for (int i = 0; i < 1000; ++i) {
      const stats::Pair pair = pairs->next();
      ASSERT_TRUE(std::isfinite(pair.base) && std::isfinite(pair.candidate)) << name;
    }
  }
  EXPECT_FALSE(noise("loud"));
}

// Spellings of tables, and of people in a hurry.
TEST(Noise, IsFoundByAnySpellingThatMeansOne) {
  const struct {
    const char *spelling, *name;
  } cases[] = {
      {"normal 1 %", "normal-1"},
      {"normal1", "normal-1"},
      {"Normal 5%", "normal-5"},
      {"normal_20", "normal-20"},
      {"lognormal .3", "lognormal-0.3"},
      {"lognormal 0.3", "lognormal-0.3"},
      {"lognormal03", "lognormal-0.3"},
      {"lognormal", "lognormal-0.3"},
      {"floor 15 %", "floor"},
      {"spike", "spikes"},
      {"bimodal slow", "bimodal-slow"},
      {"bimodal_fast", "bimodal-fast"},
      {"AR(1)", "ar1"},
      {"slot 2", "slot2"},
      {"noisier", "noisier"},
      {"noisier candidate", "noisier"},
      {"noisier-f", "noisier-floor"},
  };
  for (const auto& test_case : cases) {
    const auto name = find_noise_name(test_case.spelling);
    ASSERT_TRUE(name) << test_case.spelling << ": " << name.error().message;
    EXPECT_EQ(*name, test_case.name) << test_case.spelling;
  }
  for (const std::string& name : noise_names()) EXPECT_EQ(*find_noise_name(name), name);
}

TEST(Noise, ThatIsNoneOrSeveralIsRefusedWithAllNames) {
  // "normal 2 %" must not become normal-20, nor "normal .1" normal-1.
  for (const char* spelling : {"", " %", "loud", "normal", "bimodal", "normal 2 %", "normal .1",
                               "lognormal 0", "normal 100", "0"}) {
    const auto name = find_noise_name(spelling);
    ASSERT_FALSE(name) << spelling << " is " << *name;
    EXPECT_EQ(name.error().code, Code::usage);
    for (const std::string& noise_name : noise_names()) {
      EXPECT_NE(name.error().message.find(noise_name), std::string::npos) << name.error().message;
    }
  }
}

// Median of candidate - base over many pairs is the effect, where noise is alike on both sides.
TEST(Noise, GivesTheCandidateTheEffect) {
  for (const std::string& name : noise_names()) {
    const Scenario scenario = *noise(name);
    if (!scenario.same_program) continue;
    const auto pairs = scenario.start(Random(2), 0.5, Coin::fair);
    constexpr std::size_t k_pairs = 20'000;
    std::vector<double> differences;
    for (std::size_t i = 0; i < k_pairs; ++i) {
      const stats::Pair pair = pairs->next();
      differences.push_back(pair.candidate - pair.base);
    }
    std::nth_element(differences.begin(), differences.begin() + k_pairs / 2, differences.end());
    EXPECT_NEAR(differences[k_pairs / 2], 0.5, 0.02) << name;
  }
}

TEST(Rules, AllNamesButFixedNAreKnown) {
  for (const std::string& name : rule_names()) {
    EXPECT_EQ(make_rule(name, k_limits).has_value(), name != k_fixed_n) << name;
  }
}

// Pairs with one and the same ratio, without noise.
class Constant final : public Pairs {
 public:
  explicit Constant(double ratio) : ratio_(ratio) {}
  stats::Pair next() override {
    ++taken;
    return {0.001 * (taken % 7), 0.001 * (taken % 5) + ratio_};
  }
  int taken = 0;

 private:
  double ratio_;
};

TEST(Rules, FailWhatIsMuchSlowerPassWhatIsNotAndTakeTheirPairs) {
  struct Case {
    const char* name;
    int pairs_of_fail, pairs_of_pass;
  };
  for (const auto& [name, pairs_of_fail, pairs_of_pass] :
       {Case{"mean", 5, 5}, Case{"median", 5, 5}, Case{"min", 5, 5}, Case{"welch", 10, 10},
        Case{"mannwhitney", 10, 10}, Case{"rerun3", 15, 5}, Case{"perfgate", 7, 7},
        Case{"bootstrap", 5, 5}}) {
    for (const bool slower : {true, false}) {
      Constant pairs(slower ? 0.3 : 0);
      Random own(1);
      const Outcome outcome = make_rule(name, k_limits)->decide(pairs, own);
      EXPECT_EQ(outcome.verdict, slower ? Verdict::fail : Verdict::pass) << name;
      EXPECT_EQ(pairs.taken, slower ? pairs_of_fail : pairs_of_pass) << name;
      EXPECT_EQ(outcome.pairs, static_cast<std::uint32_t>(pairs.taken)) << name;
    }
  }
}

TEST(Rules, StayOpenAtTheCap) {
  Limits few = k_limits;
  few.cap = 4;
  for (const std::string& name : rule_names()) {
    if (name == k_fixed_n) continue;
    Constant pairs(0.3);
    Random own(1);
    const Outcome outcome = make_rule(name, few)->decide(pairs, own);
    EXPECT_EQ(outcome.verdict, Verdict::inconclusive) << name;
    EXPECT_EQ(outcome.pairs, 4U) << name;
  }
}

TEST(Tally, CountsAndFindsThePercentile) {
  Tally tally;
  for (std::uint32_t i = 1; i <= 100; ++i) tally.add({Verdict::pass, i});
  tally.add({Verdict::inconclusive, 10'000});
  tally.add({Verdict::unlike, 5});
  EXPECT_EQ(tally.trials, 102U);
  EXPECT_EQ(tally.inconclusive, 2U);
  EXPECT_EQ(tally.unlike, 1U);
  EXPECT_EQ(tally.decided_within[0], 10U);  // the open one after 5 pairs is not decided
  EXPECT_EQ(tally.decided_within[3], 100U);
  EXPECT_EQ(tally.pairs_p95(), 96U);  // 97 of 102
  EXPECT_NEAR(tally.pairs_mean(), (5050 + 10'000 + 5) / 102.0, 1e-12);
}

}  // namespace replay_test
}  // namespace weir::quality
