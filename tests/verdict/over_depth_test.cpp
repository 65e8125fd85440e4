// Tests the line over a prompt's list of depths: the cells of all depths give one cell of the line.
#include "gate/verdict/over_depth.hpp"

#include <cmath>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/stats/paired.hpp"
#include "gate/verdict/paired_rule.hpp"

#include "tests/verdict/build.hpp"

namespace weir::verdict {
namespace over_depth_test {

using namespace test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* k_rate = "decode_tokens_per_second";
constexpr const char* k_zero = "time_per_output_token_seconds_at_zero_context";
constexpr const char* k_slope = "time_per_output_token_seconds_per_context_token";
const std::vector<std::int64_t> k_depths{0, 256, 1024};

std::vector<profile::CellKey> make_keys(const std::vector<std::int64_t>& depths) {
  std::vector<profile::CellKey> keys;
  for (const std::int64_t depth : depths) {
    keys.push_back(reference().cell);
    keys.back().prompt = "long";
    keys.back().depth = depth;
  }
  return keys;
}

struct Depths {
  std::vector<Rational> dispatches{65, 66, 69};
  double zero = 0.010, per_token = 1e-6;  // seconds
  std::vector<std::int64_t> depths = k_depths;

  [[nodiscard]] std::vector<profile::Profile> profiles() const {
    std::vector<profile::Profile> all;
    const auto keys = make_keys(depths);
    for (std::size_t i = 0; i < depths.size(); ++i) {
      profile::Profile profile = reference();
      profile.cell = keys[i];
      profile.placement.state = profile::Placement::State::shown;
      profile.provenance.fingerprint += std::to_string(depths[i]);
      add_count(profile, "dispatches_per_token", dispatches[i]);
      add_time(profile, k_rate, around(1 / (zero + per_token * static_cast<double>(depths[i]))));
      all.push_back(std::move(profile));
    }
    return all;
  }
  [[nodiscard]] profile::Profile fit() const { return add_depth_fits(profiles()).back(); }
};

TEST(OverDepth, CellsThatDifferInDepthAloneMakeOneMoreNamedWithoutSuffix) {
  std::vector<profile::CellKey> keys = make_keys({1024, 0, 256});
  keys.push_back(reference().cell);
  keys.push_back(make_keys({7}).front());
  keys.back().model = "other";  // one depth is no list
  const auto groups = depth_groups(keys);
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].fit.str(), "llama.cpp/tiny-llama/vulkan/long");
  EXPECT_THAT(groups[0].members, ElementsAre(1, 2, 0));
  EXPECT_THAT(groups[0].depths, ElementsAre(0, 256, 1024));
  const auto all = add_depth_fits(Depths{}.profiles());
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all.back().cell, groups[0].fit);
}

TEST(OverDepth, CountsOnALineAreExactAtZeroContextAndPerContextToken) {
  const profile::Profile fit = Depths{}.fit();
  EXPECT_EQ(fit.metrics.at("dispatches_at_zero_context").exact, Rational(65));
  EXPECT_EQ(fit.metrics.at("dispatches_per_context_token").exact, Rational::make(1, 256));
  EXPECT_EQ(fit.metrics.at("barriers_per_context_token").exact, Rational(0));
  EXPECT_FALSE(fit.metrics.contains("dispatches_fixed"));
  EXPECT_THAT(fit.warnings, ElementsAre());
  EXPECT_EQ(fit.counted_runs, 3);
  // A list that does not begin at 0 has a line, too.
  const profile::Profile later = Depths{.dispatches = {66, 69}, .depths = {256, 1024}}.fit();
  EXPECT_EQ(later.metrics.at("dispatches_at_zero_context").exact, Rational(65));
}

TEST(OverDepth, CountsOnNoLineAreToldAndLeftToEachDepth) {
  const profile::Profile fit = Depths{.dispatches = {65, 66, 90}}.fit();
  EXPECT_FALSE(fit.metrics.contains("dispatches_at_zero_context"));
  EXPECT_TRUE(fit.metrics.contains("barriers_at_zero_context"));
  EXPECT_THAT(fit.warnings, ElementsAre(HasSubstr("65, 66, 90 at depths 0, 256, 1024")));
  // The cell of the line does not miss a count that no longer fits: the depths judge it.
  const CellVerdict cell = judge(fit, {stored(Depths{}.fit())});
  EXPECT_EQ(metric(cell, "dispatches_per_context_token").verdict, Outcome::info);
  EXPECT_EQ(metric(cell, "barriers_per_context_token").verdict, Outcome::pass);
}

TEST(OverDepth, ACountThatGrowsFasterWithContextFailsAndOneThatGrowsLessIsImproved) {
  const auto base = stored(Depths{}.fit());
  EXPECT_EQ(judge(Depths{}.fit(), {base}).verdict, Outcome::pass);
  const CellVerdict worse = judge(Depths{.dispatches = {65, 67, 73}}.fit(), {base});
  EXPECT_EQ(metric(worse, "dispatches_per_context_token").verdict, Outcome::fail);
  EXPECT_EQ(metric(worse, "dispatches_at_zero_context").verdict, Outcome::pass);
  const CellVerdict better = judge(Depths{.dispatches = {65, 65, 65}}.fit(), {base});
  EXPECT_EQ(metric(better, "dispatches_per_context_token").verdict, Outcome::improved);
}

TEST(OverDepth, AnotherListOfDepthsIsAnotherCell) {
  const profile::Profile fewer = Depths{.dispatches = {65, 66}, .depths = {0, 256}}.fit();
  const auto stored_base = stored(Depths{}.fit());
  const auto choice = baseline::choose_baseline(fewer, {&stored_base, 1});
  EXPECT_EQ(choice.match, baseline::BaselineChoice::Match::fingerprint);
  EXPECT_THAT(choice.reason, HasSubstr("depths"));
}

TEST(OverDepth, ADepthThatCouldNotBeMeasuredIsAnErrorOfTheLine) {
  auto profiles = Depths{}.profiles();
  profiles[1].errors = {"timed: exit 139"};
  const profile::Profile fit = add_depth_fits(profiles).back();
  EXPECT_THAT(fit.errors, ElementsAre(HasSubstr("long@d256 could not be measured")));
  EXPECT_TRUE(fit.metrics.empty());
}

TEST(OverDepth, TheKthProcessOfEachDepthMakesOneLineOfTimes) {
  const profile::Profile fit = Depths{}.fit();
  ASSERT_EQ(fit.metrics.at(k_zero).samples.size(), 10U);
  EXPECT_NEAR(*fit.metrics.at(k_zero).value(), 0.010, 1e-5);
  EXPECT_NEAR(*fit.metrics.at(k_slope).value(), 1e-6, 1e-9);
  EXPECT_TRUE(fit.metrics.at(k_slope).warnings.empty());
  const profile::Profile flat = Depths{.per_token = 0}.fit();
  EXPECT_THAT(flat.metrics.at(k_slope).warnings,
              ElementsAre(HasSubstr("not seen above the noise")));
}

TEST(OverDepth, TimesAreComparedWithStoredLinesAndASlopeWithinTheNoiseDecidesNothing) {
  const auto base = stored(Depths{}.fit());
  const CellVerdict worse = judge(Depths{.per_token = 1.5e-6}.fit(), {base});
  EXPECT_EQ(metric(worse, k_slope).verdict, Outcome::fail) << metric(worse, k_slope).reason;
  EXPECT_NE(metric(worse, k_zero).verdict, Outcome::fail) << metric(worse, k_zero).reason;
  profile::Profile noisy = Depths{}.fit();
  noisy.metrics.at(k_slope).samples[3] = -1e-7;
  const Judgement judgement = metric(judge(noisy, {base}), k_slope);
  EXPECT_EQ(judgement.verdict, Outcome::inconclusive);
  EXPECT_THAT(judgement.reason, HasSubstr("within the noise"));
}

// --- compared with a base program

struct Rounds {
  double zero = 1, slope = 1;  // times of the candidate over the base's
  double slot = 1.08;          // slowdown of a pair's second process
  bool coin = true, shared_coin = true;
  double per_token = 1e-5;  // seconds of the base, which takes 10 ms without context
  double noise = 0.01;
  int rounds = 60;

  [[nodiscard]] profile::PairedRuns fit(std::uint64_t seed) const {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal;
    std::vector<profile::PairedRuns> runs(k_depths.size());
    const auto rate = [&](std::size_t i, bool candidate, bool second, double drift) {
      const double context = static_cast<double>(k_depths[i]);
      const double time =
          0.010 * (candidate ? zero : 1) + per_token * (candidate ? slope : 1) * context;
      return 1 / (time * (second ? slot : 1) * std::exp(drift + noise * normal(random)));
    };
    for (std::size_t i = 0; i < runs.size(); ++i) {
      runs[i].warm = true;
      runs[i].pairs = rounds;
      runs[i].metrics.push_back({*unit::find_metric(k_rate),
                                 "llama-bench",
                                 {rate(i, false, false, 0), rate(i, true, false, 0), true},
                                 {}});
    }
    double drift = 0;
    for (int k = 0; k < rounds; ++k) {
      bool base_first = !coin || (random() & 1U) != 0;
      for (std::size_t i = 0; i < runs.size(); ++i) {
        drift += 0.01 * normal(random);
        if (!shared_coin && coin) base_first = (random() & 1U) != 0;
        runs[i].metrics[0].pairs.push_back(
            {rate(i, false, !base_first, drift), rate(i, true, base_first, drift), base_first});
      }
    }
    return fit_pairs(depth_groups(make_keys(k_depths)).front(), runs);
  }
  // Decides the metric `name`; `level` is both false_alarm and missed.
  [[nodiscard]] stats::Decision decided(std::uint64_t seed, const char* name,
                                        double level = 0.001) const {
    const profile::PairedRuns runs = fit(seed);
    Policy policy;
    policy.false_alarm = policy.missed = level;
    for (const profile::PairedMetric& metric : runs.metrics) {
      if (metric.metric.name != name) continue;
      const Limit limit = resolve_limit(reference().cell, metric.metric, {});
      stats::PairedTest test(paired_rule(limit, metric, policy).value());
      for (const profile::NumberPair& pair : metric.pairs) test.add(rule_pair(metric, pair));
      return test.decision();
    }
    return stats::Decision::unlike;
  }
};

TEST(OverDepthBesideABase, ARoundOfPairsIsAPairOfLines) {
  const profile::PairedRuns runs = Rounds{.zero = 2, .slope = 3, .slot = 1, .noise = 0}.fit(1);
  ASSERT_EQ(runs.metrics.size(), 2U);
  EXPECT_EQ(runs.pairs, 60);
  const profile::PairedMetric& slope = runs.metrics[1];
  EXPECT_EQ(slope.metric.name, k_slope);
  EXPECT_NEAR(*slope.warm_up.base, 1e-5, 1e-12);
  EXPECT_NEAR(*slope.warm_up.candidate, 3e-5, 1e-12);
  EXPECT_NEAR(*slope.line_unit, 1e-5, 1e-12);
  EXPECT_EQ(slope.pairs.size(), 60U);
}

TEST(OverDepthBesideABase, WhereContextCostsNothingTheUnitIsAHundredthOfAToken) {
  const auto runs = Rounds{.slot = 1, .per_token = 0, .noise = 0}.fit(1);
  EXPECT_NEAR(*runs.metrics[1].line_unit, 0.01 * 0.010 / 1024, 1e-12);
}

TEST(OverDepthBesideABase, AProcessThatDidNotEndMakesItsLineInfinitelySlow) {
  std::vector<profile::PairedRuns> runs(2);
  for (profile::PairedRuns& depth_runs : runs) {
    depth_runs.warm = true;
    depth_runs.pairs = 1;
    depth_runs.metrics.push_back(
        {*unit::find_metric(k_rate), "x", {100, 100, true}, {{100, 100, true}}});
  }
  runs[1].metrics[0].pairs[0].candidate.reset();
  const auto fit = fit_pairs(depth_groups(make_keys({0, 64})).front(), runs);
  EXPECT_TRUE(fit.metrics[0].pairs[0].base);
  EXPECT_FALSE(fit.metrics[0].pairs[0].candidate);
  EXPECT_TRUE(std::isinf(rule_pair(fit.metrics[0], fit.metrics[0].pairs[0]).candidate));
  runs[1].error = "timed: the candidate failed in 2 of its processes";
  EXPECT_TRUE(fit_pairs(depth_groups(make_keys({0, 64})).front(), runs).error);
}

TEST(OverDepthBesideABase, FindsWhatGrewAndPassesWhatDidNot) {
  EXPECT_EQ(Rounds{}.decided(1, k_zero), stats::Decision::pass);
  EXPECT_EQ(Rounds{}.decided(1, k_slope), stats::Decision::pass);
  EXPECT_EQ(Rounds{.slope = 1.2}.decided(1, k_slope), stats::Decision::fail);
  EXPECT_EQ(Rounds{.slope = 1.2}.decided(1, k_zero), stats::Decision::pass);
  EXPECT_EQ(Rounds{.zero = 1.2}.decided(1, k_zero), stats::Decision::fail);
}

TEST(OverDepthBesideABase, IsShownWithItsChangeAndItsInterval) {
  profile::Profile fit = Depths{}.fit();
  const auto stored_base = stored(fit);
  const Rounds rounds{.slope = 1.2};
  const CellVerdict cell =
      judge_cell(fit, {baseline::choose_baseline(fit, {&stored_base, 1}), rounds.fit(1)}, {}, {});
  const Judgement& judgement = metric(cell, k_slope);
  EXPECT_EQ(judgement.verdict, Outcome::fail) << judgement.reason;
  EXPECT_NEAR(*judgement.change, 0.2, 0.05);
  EXPECT_LT(*judgement.low, 0.2);
  EXPECT_GT(*judgement.high, 0.2);
  EXPECT_NEAR(judgement.baseline_runs->median, 1e-5, 3e-6) << "in seconds, whatever the drift";
}

// Nothing changed, the second process of a pair is 8 % slower, and the machine drifts. Seeds are
// fixed.
TEST(OverDepthBesideABase, BlamesNoMoreOftenThanItSaysWithOneCoinOrOneForEachDepth) {
  constexpr int k_trials = 300;
  constexpr double k_level = 0.05;
  for (const bool shared_coin : {true, false}) {
    for (const char* name : {k_zero, k_slope}) {
      int failed = 0;
      for (int trial = 0; trial < k_trials; ++trial) {
        const Rounds rounds{.shared_coin = shared_coin, .noise = 0.03, .rounds = 25};
        failed += rounds.decided(static_cast<std::uint64_t>(trial), name, k_level) ==
                          stats::Decision::fail
                      ? 1
                      : 0;
      }
      // 5 % of 300 are 15; 3 standard errors more are 26.
      EXPECT_LE(failed, 26) << name << (shared_coin ? ", one coin" : ", a coin each");
    }
  }
}

TEST(OverDepthBesideABase, PassesWhatGrewByTheLimitNoMoreOftenThanItSays) {
  constexpr int k_trials = 300;
  constexpr double k_level = 0.05;
  for (const char* name : {k_zero, k_slope}) {
    int passed = 0;
    for (int trial = 0; trial < k_trials; ++trial) {
      const Rounds rounds{.zero = 1.1, .slope = 1.1, .noise = 0.03, .rounds = 25};
      passed +=
          rounds.decided(static_cast<std::uint64_t>(trial), name, k_level) == stats::Decision::pass
              ? 1
              : 0;
    }
    EXPECT_LE(passed, 26) << name;  // as above
  }
}

TEST(OverDepthBesideABase, WithoutTheCoinASlowerSecondPlaceIsBlamedOnTheCandidate) {
  const Rounds fixed{.slot = 1.2, .coin = false};
  EXPECT_EQ(fixed.decided(1, k_zero), stats::Decision::fail);
  EXPECT_EQ(fixed.decided(1, k_slope), stats::Decision::fail);
}

}  // namespace over_depth_test
}  // namespace weir::verdict
