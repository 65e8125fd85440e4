// Tests times compared with a base program: verdicts and reasons from pairs.
#include <cmath>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/json.hpp"
#include "gate/verdict/paired_rule.hpp"
#include "gate/verdict/removed.hpp"

#include "tests/verdict/build.hpp"

namespace weir::verdict {
namespace paired_times_test {

using namespace test;
using ::testing::HasSubstr;

constexpr const char* k_rate = "decode_tokens_per_second";

struct Scene {
  double factor = 1;      // rate of the candidate over the base's
  double noise = 0.01;    // standard deviation of the logarithm
  double base_noise = 0;  // 0: the same as `noise`
  int pairs = 60;
  Policy policy{};
  LimitEntry limit = entry({k_rate});

  [[nodiscard]] profile::PairedRuns runs() const {
    std::mt19937_64 random(1);
    std::normal_distribution<double> normal;
    profile::PairedRuns runs;
    runs.warm = true;
    runs.pairs = pairs;
    profile::PairedMetric metric{*unit::find_metric(k_rate), "llama-bench", {100, 100, true}, {}};
    for (int i = 0; i < pairs; ++i) {
      const double base = base_noise > 0 ? base_noise : noise;
      metric.pairs.push_back({100 * std::exp(base * normal(random)),
                              100 * factor * std::exp(noise * normal(random)),
                              (random() & 1U) != 0});
    }
    runs.metrics.push_back(std::move(metric));
    return runs;
  }
  [[nodiscard]] CellVerdict cell(const profile::PairedRuns& runs) const {
    profile::Profile profile = reference();
    std::vector<double> samples;
    for (const auto& pair : runs.metrics.at(0).pairs) samples.push_back(pair.candidate.value_or(1));
    if (samples.empty()) samples = {100};
    add_time(profile, k_rate, samples);
    const auto stored_base = stored(reference());
    return judge_cell(profile, {baseline::choose_baseline(profile, {&stored_base, 1}), runs},
                      {&limit, 1}, policy);
  }
  [[nodiscard]] Judgement verdict() const { return metric(cell(runs()), k_rate); }
};

TEST(PairedTimes, PassWhereTheProgramDidNotChange) {
  const Judgement judgement = Scene{}.verdict();
  EXPECT_EQ(judgement.verdict, Outcome::pass) << judgement.reason;
  EXPECT_LT(*judgement.pairs, 12);
  EXPECT_EQ(judgement.ratios.size(), 60U);
  EXPECT_NEAR(*judgement.change, 0, 0.01);
  EXPECT_LT(*judgement.low, *judgement.high);
  EXPECT_THAT(judgement.reason, HasSubstr("dropped by less than 5 %"));
}

TEST(PairedTimes, FailWhereItIsSurelySlowerThanTolerated) {
  const Judgement judgement = Scene{.factor = 0.9}.verdict();
  EXPECT_EQ(judgement.verdict, Outcome::fail) << judgement.reason;
  EXPECT_NEAR(*judgement.change, -0.1, 0.01);
  EXPECT_THAT(judgement.reason, HasSubstr("dropped by more than 2.5 %, sure after"));
}

TEST(PairedTimes, ImprovedMirrorsFailAndDoesNotBlock) {
  const Scene scene{.factor = 1.2};
  EXPECT_EQ(scene.verdict().verdict, Outcome::improved);
  EXPECT_EQ(scene.cell(scene.runs()).verdict, Outcome::improved);
}

TEST(PairedTimes, InconclusiveTellsWhatItWouldTake) {
  Scene scene{.factor = 0.9, .noise = 0.02, .pairs = 12};
  scene.policy.timed_metrics = 200;
  const Judgement judgement = scene.verdict();
  EXPECT_EQ(judgement.verdict, Outcome::inconclusive);
  ASSERT_TRUE(judgement.more_pairs);
  EXPECT_GT(*judgement.more_pairs, 0);
  EXPECT_THAT(judgement.reason, HasSubstr("not decided after 12 pairs; about"));
  EXPECT_FALSE(judgement.more_seconds) << "nobody says how long a pair takes";
}

TEST(PairedTimes, InconclusiveTellsHowLongItWouldTake) {
  Scene scene{.factor = 0.9, .noise = 0.02, .pairs = 12};
  scene.policy.timed_metrics = 200;
  auto runs = scene.runs();
  runs.seconds = 26;  // 12 pairs and the warm-ups, a pair too: 2 s each
  const Judgement judgement = metric(scene.cell(runs), k_rate);
  ASSERT_TRUE(judgement.more_pairs && judgement.more_seconds);
  EXPECT_DOUBLE_EQ(*judgement.more_seconds, 2.0 * static_cast<double>(*judgement.more_pairs));
  EXPECT_THAT(
      judgement.reason,
      HasSubstr(fmt::format("({}) would settle it", unit::show_duration(*judgement.more_seconds))));
}

TEST(PairedTimes, ACellThatTheBudgetNeverReachedIsNotDecided) {
  const Judgement judgement = Scene{.pairs = 0}.verdict();
  EXPECT_EQ(judgement.verdict, Outcome::inconclusive);
  EXPECT_THAT(judgement.reason, HasSubstr("no pair was run"));
  EXPECT_FALSE(judgement.change);
}

// Returns a cell whose pairs took two seconds each.
CellVerdict cell_of_slow_pairs(const Scene& scene) {
  profile::PairedRuns runs = scene.runs();
  runs.seconds = 2.0 * (scene.pairs + 1);
  return scene.cell(runs);
}

std::string first_gap(std::vector<CellVerdict> cells, std::optional<double> budget_seconds) {
  Policy policy;
  policy.budget_seconds = budget_seconds;
  return judge_gate(std::move(cells), policy).not_judged.at(0);
}

TEST(PairedTimes, TheFirstLineNamesTheBudgetThatWouldDo) {
  const CellVerdict passed = cell_of_slow_pairs({.pairs = 10});
  CellVerdict first = cell_of_slow_pairs({.pairs = 0}), second = first;
  first.cell.prompt = "first";
  second.cell.prompt = "second";
  // 10 pairs were run, 8 each are missing, of 2 s: 52 s, and a tenth more.
  EXPECT_EQ(first_gap({passed, first, second}, 30),
            "throughput not decided in 2 of 3 cells (the budget of 30 s was used up, about 58 s "
            "would do)");
  EXPECT_EQ(first_gap({passed, first, second}, std::nullopt),
            "throughput not decided in 2 of 3 cells")
      << "an interrupted run";

  // More pairs do not decide between runs that spread otherwise.
  CellVerdict unlike = second;
  for (Judgement& judgement : unlike.judgements) judgement.missing_pairs.reset();
  EXPECT_EQ(first_gap({passed, first, unlike}, 30),
            "throughput not decided in 2 of 3 cells (in 1 the budget of 30 s was used up, about "
            "40 s would do)");
  EXPECT_EQ(first_gap({passed, unlike}, 30), "throughput not decided in 1 of 2 cells");

  for (Judgement& judgement : second.judgements) judgement.missing_pairs = 1e9;
  EXPECT_EQ(first_gap({second}, 30),
            "throughput not decided in 1 of 1 cell (the budget of 30 s was used up)")
      << "a month would not do";
}

TEST(PairedTimes, DepthsOfAListNeedABudgetForAllOfThem) {
  CellVerdict decided = cell_of_slow_pairs({.pairs = 10});
  CellVerdict open = decided, line = decided;
  decided.cell.depth = 0;
  open.cell.depth = 256;
  for (Judgement& judgement : open.judgements) {
    if (judgement.metric.name != k_rate) continue;
    judgement.verdict = Outcome::inconclusive;
    judgement.missing_pairs = 5;
  }
  for (Judgement& judgement : line.judgements) judgement.pair_seconds *= 2;
  // 15 pairs of both depths, 4 s each, and a tenth more; the budget cuts the first 10 of them off.
  EXPECT_EQ(first_gap({decided, open, line}, 40),
            "throughput not decided in 1 of 3 cells (the budget of 40 s was used up, about 2 m 0 s "
            "would do)");
}

TEST(PairedTimes, ACellOfWarmUpsAloneHidesNoThroughput) {
  // Warm-ups are no measurements: the profile has no time at all.
  const Scene scene{.pairs = 0};
  const auto stored_base = stored(reference());
  Base base{baseline::choose_baseline(reference(), {&stored_base, 1}), scene.runs()};
  const CellVerdict cell = judge_cell(reference(), base, {&scene.limit, 1}, scene.policy);
  const Judgement judgement = metric(cell, k_rate);
  EXPECT_EQ(judgement.verdict, Outcome::inconclusive);
  EXPECT_THAT(judgement.reason, HasSubstr("no pair was run"));
  EXPECT_EQ(cell.verdict, Outcome::inconclusive);
  EXPECT_THAT(judge_gate({cell}, scene.policy).not_judged,
              testing::Contains("throughput not decided in 1 of 1 cell"));

  // The same with an absolute limit.
  LimitEntry bound = entry({"peak_rss_bytes"});
  bound.max_drop.reset();
  bound.max = Amount{1e9, false};
  base.pairs->metrics[0].metric = unit::find_metric("peak_rss_bytes").value();
  const CellVerdict bounded = judge_cell(reference(), base, {&bound, 1}, scene.policy);
  EXPECT_EQ(metric(bounded, "peak_rss_bytes").verdict, Outcome::inconclusive);

  // Without a limit there is nothing to decide or to show.
  const CellVerdict unlimited = judge_cell(reference(), base, {&scene.limit, 1}, scene.policy);
  EXPECT_EQ(unlimited.verdict, Outcome::pass);
}

TEST(PairedTimes, ANoisierCandidateIsShownAndNotJudged) {
  const Judgement judgement =
      Scene{.factor = 0.95, .noise = 0.3, .base_noise = 0.05, .pairs = 300}.verdict();
  EXPECT_EQ(judgement.verdict, Outcome::inconclusive);
  EXPECT_THAT(judgement.reason, HasSubstr("x as wide as the base's"));
  ASSERT_TRUE(judgement.current_runs);
  EXPECT_GT(judgement.current_runs->fast,
            judgement.current_runs->median);  // a fast rate is a high one
  EXPECT_GT(judgement.current_runs->median, judgement.current_runs->slow);
  ASSERT_TRUE(judgement.spread_ratio);
  EXPECT_NEAR(*judgement.spread_ratio, 6, 1.5);  // 0.3 over 0.05
  EXPECT_FALSE(Scene{}.verdict().spread_ratio) << "alike but for chance";
}

TEST(PairedTimes, FalseAlarmIsDividedOverTheTimedMetricsOfTheGate) {
  Scene single{.factor = 0.9}, many{.factor = 0.9};
  many.policy.timed_metrics = 10000;
  EXPECT_GT(*many.verdict().pairs, *single.verdict().pairs + 5);
}

TEST(PairedTimes, AProcessThatDidNotEndIsInfinitelySlowAndAGapInThePicture) {
  const Scene scene{.pairs = 30};
  auto runs = scene.runs();
  runs.metrics[0].pairs[3].candidate.reset();
  const Judgement judgement = metric(scene.cell(runs), k_rate);
  EXPECT_FALSE(judgement.ratios[3]);
  EXPECT_EQ(judgement.verdict, Outcome::pass);
}

TEST(PairedTimes, ASideThatHangsIsTheCellsError) {
  const Scene scene;
  auto runs = scene.runs();
  runs.error = "timed: the candidate timed out 3 times, the base program never: …";
  const CellVerdict cell = scene.cell(runs);
  EXPECT_EQ(cell.verdict, Outcome::error);
  EXPECT_THAT(cell.reason, HasSubstr("the candidate timed out 3 times"));
}

TEST(PairedTimes, ATimeThatOnlyTheBaseReportsIsNoPass) {
  const Scene scene;
  profile::PairedRuns runs = scene.runs();
  profile::PairedMetric left_out = runs.metrics[0];
  left_out.metric = *unit::find_metric("prefill_tokens_per_second");
  left_out.warm_up.candidate.reset();
  left_out.pairs.clear();
  runs.missing = {left_out};
  const LimitEntry limits[] = {scene.limit, entry({left_out.metric.name})};
  profile::Profile profile = reference();
  add_time(profile, k_rate, {100});
  const auto stored_base = stored(reference());
  const Base base{baseline::choose_baseline(profile, {&stored_base, 1}), runs};
  CellVerdict cell = judge_cell(profile, base, limits, scene.policy);
  EXPECT_EQ(metric(cell, k_rate).verdict, Outcome::pass);
  EXPECT_EQ(metric(cell, left_out.metric.name).verdict, Outcome::error);
  EXPECT_THAT(metric(cell, left_out.metric.name).reason,
              HasSubstr("the base's warm-up gave 100, the candidate's nothing"));
  EXPECT_EQ(cell.verdict, Outcome::error);
  check_removed(profile, base.choice, limits, /*fails=*/true, cell);
  EXPECT_EQ(metric(cell, left_out.metric.name).reason,
            "not measured any more: the baseline holds 100");
  EXPECT_EQ(cell.verdict, Outcome::fail);
  // A number that only later processes give is not one of pairs.
  add_time(profile, left_out.metric.name, {100});
  EXPECT_EQ(judge_cell(profile, base, limits, scene.policy).verdict, Outcome::error);
  // Without a limit nothing is missed.
  LimitEntry off = entry({left_out.metric.name});
  off.mode = Mode::off;
  EXPECT_EQ(judge_cell(reference(), base, {&off, 1}, scene.policy).verdict, Outcome::pass);
}

TEST(PairedTimes, OfOtherWorkAreTheCellsError) {
  const Scene scene;
  profile::PairedRuns runs = scene.runs();
  runs.base_work.prompt_tokens = 32;
  EXPECT_THAT(scene.cell(runs).reason,
              HasSubstr("did not do the same work (prompt tokens: not reported, before 32)"));
  runs.candidate_work.prompt_tokens = 1;
  EXPECT_THAT(scene.cell(runs).reason, HasSubstr("prompt tokens: 1, before 32"));
  runs.candidate_work.prompt_tokens = 32;
  EXPECT_EQ(scene.cell(runs).verdict, Outcome::pass);
}

TEST(PairedTimes, OfAnotherNumberOfRepeatsAreTheCellsError) {
  const Scene scene;
  profile::PairedRuns runs = scene.runs();
  runs.base_work.printed_values[k_rate] = 3;
  EXPECT_THAT(scene.cell(runs).reason, HasSubstr("was printed 3 times by the base and not here"));
  runs.candidate_work.printed_values[k_rate] = 9;
  EXPECT_THAT(scene.cell(runs).reason,
              HasSubstr("was printed 3 times by the base and 9 times here"));
  EXPECT_EQ(scene.cell(runs).verdict, Outcome::error);
  runs.candidate_work.printed_values[k_rate] = 3;
  EXPECT_EQ(scene.cell(runs).verdict, Outcome::pass);
}

// "900 MB/s" is less than "1.1 GB/s".
TEST(PairedTimes, PrintedInAnotherFormThanTheBasesAreTheCellsError) {
  const Scene scene;
  const std::string form = profile::printed_form(k_rate, "GB/s");
  profile::PairedRuns runs = scene.runs();
  runs.base_work.printed_values[form] = 1;
  EXPECT_THAT(scene.cell(runs).reason, HasSubstr(form + ": printed by the base only"));
  EXPECT_EQ(scene.cell(runs).verdict, Outcome::error);
  runs.candidate_work.printed_values[form] = 1;
  EXPECT_EQ(scene.cell(runs).verdict, Outcome::pass);
  runs.base_work.printed_values.clear();
  EXPECT_THAT(scene.cell(runs).reason, HasSubstr(form + ": not printed by the base"));
  runs.candidate_work.printed_values = {{profile::printed_form(k_rate, "tok/s"), 1}};
  EXPECT_EQ(scene.cell(runs).verdict, Outcome::pass);
}

TEST(PairedTimes, OfServersAreOfStartsAndSayHowManyRequestsAPercentileNeeds) {
  const auto judged = [](const char* name, std::int64_t requests) {
    profile::Profile profile = reference();
    profile.requests = requests;
    const auto metric =
        unit::custom_metric(name, unit::Kind::time, unit::Unit::seconds, unit::Better::lower);
    profile.metrics[name].metric = metric;
    profile.metrics[name].samples = {0.1};
    profile::PairedRuns runs;
    runs.warm = true;
    runs.pairs = 12;
    runs.metrics.push_back({metric, "requests", {0.1, 0.1, true}, {}});
    runs.metrics[0].pairs.assign(12, {0.1, 0.1, true});
    LimitEntry limit = entry({name});
    limit.max_increase = Amount{0.1, true};
    const auto stored_base = stored(reference());
    return judge_cell(profile, {baseline::choose_baseline(profile, {&stored_base, 1}), runs},
                      {&limit, 1}, {});
  };
  const std::pair<const char*, std::int64_t> few[] = {{"time_to_first_token_p99_seconds", 99},
                                                      {"end_to_end_latency_p90_seconds", 9}};
  for (const auto& [name, requests] : few) {
    const CellVerdict cell = judged(name, requests);
    ASSERT_EQ(metric(cell, name).warnings.size(), 1U) << name;
    EXPECT_THAT(metric(cell, name).warnings[0], HasSubstr("between the two slowest")) << name;
    EXPECT_THAT(cell.notes, testing::Contains(HasSubstr("12 fresh starts of each server")));
  }
  // k = 100 and 10 are enough. A p50 and gaps have no such note.
  const std::pair<const char*, std::int64_t> enough[] = {{"time_to_first_token_p99_seconds", 100},
                                                         {"time_per_output_token_p90_seconds", 10},
                                                         {"time_to_first_token_seconds", 2},
                                                         {"inter_token_latency_p99_seconds", 4}};
  for (const auto& [name, requests] : enough) {
    EXPECT_THAT(metric(judged(name, requests), name).warnings, testing::IsEmpty()) << name;
  }
}

TEST(PairedTimes, PlainAmountsAreOfTheBasesWarmUp) {
  Scene scene{.factor = 0.9};
  scene.limit.max_drop = Amount{30, false};
  EXPECT_EQ(scene.verdict().verdict, Outcome::pass);
  scene.limit.max_drop = Amount{6, false};
  EXPECT_EQ(scene.verdict().verdict, Outcome::fail);
  scene.limit.max_drop = Amount{95, false};
  EXPECT_EQ(scene.verdict().verdict, Outcome::error);
}

TEST(PairedTimes, ATimeMayBeAllowedToDouble) {
  Scene scene{.factor = 0.7};  // as a rate; as a time 43 % more
  auto runs = scene.runs();
  runs.metrics[0].metric = *unit::find_metric("load_seconds");
  profile::Profile profile = reference();
  add_time(profile, "load_seconds", {70});
  LimitEntry limit = entry({"load_seconds"});
  limit.max_increase = Amount{1.0, true};
  const auto cell = judge_cell(profile, {{}, runs}, {&limit, 1}, {});
  EXPECT_EQ(metric(cell, "load_seconds").verdict, Outcome::pass);
}

TEST(PairedTimes, TheRuleIsSaidInWords) {
  const Scene scene;
  const GateVerdict gate = judge_gate({scene.cell(scene.runs())}, scene.policy);
  EXPECT_THAT(gate.decision_rule,
              HasSubstr("a change of throughput for the worse of 5 % and more passes in at most "
                        "1 of 100"));
  EXPECT_THAT(gate.decision_rule, HasSubstr("2.5 % and less is blamed in at most 1 of 100"));
  EXPECT_THAT(gate.decision_rule, HasSubstr("at most 1 of 1000 gates fails by chance"));
}

TEST(PairedTimes, SurviveTheVerdictFile) {
  const Scene scene{.factor = 0.9, .pairs = 12};
  auto runs = scene.runs();
  runs.metrics[0].pairs[3].candidate.reset();
  const GateVerdict gate = judge_gate({scene.cell(runs)}, scene.policy);
  const auto read = read_fields<GateVerdict>(write_fields(gate), "verdict");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(write_fields(*read), write_fields(gate));
}

TEST(PairedTimes, WhatWasTypedBehindAgainstSurvivesTheVerdictFile) {
  GateVerdict gate;
  for (const Against& against :
       {Against{"origin/main", {}}, Against{"", {"old/bench", "-m", "{model}"}}, Against{}}) {
    gate.against = against;
    const auto read =
        read_fields<GateVerdict>(*parse_json(dump_json(write_fields(gate))), "verdict");
    ASSERT_TRUE(read) << read.error().message;
    ASSERT_TRUE(read->against);
    EXPECT_EQ(read->against->spec, against.spec);
    EXPECT_EQ(read->against->command, against.command);
  }
  gate.against.reset();
  EXPECT_TRUE(write_fields(gate)["against"].is_null());
}

TEST(TimedMetrics, AreThoseWithAGatingLimitThatBothWarmUpsReported) {
  const Scene scene;
  profile::CellFacts facts;
  facts.cell = reference().cell;
  const std::vector<profile::CellFacts> cells{facts, facts};
  auto without = scene.runs();
  without.metrics.clear();
  const std::vector<profile::PairedRuns> runs{scene.runs(), without};
  EXPECT_EQ(timed_metrics(cells, runs, {}), 1);
  LimitEntry shown = entry({k_rate});
  shown.mode = Mode::report;
  EXPECT_EQ(timed_metrics(cells, runs, {&shown, 1}), 0);
}

}  // namespace paired_times_test
}  // namespace weir::verdict
