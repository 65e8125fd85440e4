// Tests verdicts on times compared with stored samples.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/verdict/build.hpp"

namespace weir::verdict {
namespace times_test {

using namespace test;
using profile::Profile;
using ::testing::HasSubstr;

constexpr const char* k_rate = "decode_tokens_per_second";

Profile timed(double rate) {
  Profile profile = reference();
  return add_time(profile, k_rate, around(rate));
}

Judgement judged(double rate, const LimitEntry& limit) {
  return metric(judge(timed(rate), {stored(timed(100))}, {limit}), k_rate);
}

LimitEntry may_drop(double share) {
  LimitEntry limit = entry({k_rate});
  limit.max_drop = Amount{share, true};
  return limit;
}

// One stored run: the interval is about -8.3 % … +9.0 % around the ratio (stats/stored_test.cpp).
TEST(Times, FailOnlyWhenTheWholeIntervalIsBeyondTheLimit) {
  struct Case {
    double rate, limit;
    Outcome want;
  };
  for (const auto& [rate, limit, want] :
       {Case{100, 0.10, Outcome::pass}, Case{100, 0.05, Outcome::inconclusive},
        Case{95, 0.10, Outcome::inconclusive}, Case{80, 0.10, Outcome::fail},
        Case{84, 0.10, Outcome::inconclusive}, Case{70, 0.20, Outcome::fail},
        Case{120, 0.05, Outcome::pass}}) {
    const Judgement verdict = judged(rate, may_drop(limit));
    EXPECT_EQ(verdict.verdict, want) << rate << " under " << limit << ": " << verdict.reason;
    EXPECT_NEAR(*verdict.change, rate / 100 - 1, 1e-9);
    EXPECT_EQ(verdict.samples, 10);
    EXPECT_EQ(verdict.baseline_sessions, 1);
    EXPECT_LT(*verdict.low, *verdict.change);
    EXPECT_GT(*verdict.high, *verdict.change);
  }
  EXPECT_THAT(
      judged(100, may_drop(0.05)).reason,
      HasSubstr("the interval includes the limit (1 stored run; runs are assumed to differ by "
                "3 %); about 4 more stored runs would decide (weir baseline accept)"));
}

// Memory without noise: the processes of the stored run show what runs may differ by.
TEST(Times, OfMemoryAreHeldToTheSpreadThatStoredProcessesShow) {
  const auto judged_memory = [](std::vector<double> before, std::vector<double> now) {
    Profile old = reference(), current = reference();
    add_time(old, "peak_rss_bytes", std::move(before));
    add_time(current, "peak_rss_bytes", std::move(now));
    LimitEntry limit = entry({"peak_rss_bytes"});
    limit.max_increase = Amount{0.05, true};
    return metric(judge(current, {stored(old)}, {limit}), "peak_rss_bytes").verdict;
  };
  const std::vector<double> quiet(5, 400e6), loud = {390e6, 400e6, 410e6, 395e6, 405e6};
  EXPECT_EQ(judged_memory(quiet, quiet), Outcome::pass);
  EXPECT_EQ(judged_memory(quiet, std::vector<double>(5, 418e6)), Outcome::inconclusive);
  EXPECT_EQ(judged_memory(quiet, std::vector<double>(5, 440e6)), Outcome::fail);
  EXPECT_EQ(judged_memory(loud, loud), Outcome::inconclusive);
  EXPECT_EQ(judged_memory({400e6, 400e6}, quiet), Outcome::inconclusive) << "too few processes";
}

// Twenty stored runs within 0.4 % of 100 replace the assumption about the first one.
TEST(Times, FailBeyondTheLimitByLittleWhereManyRunsAreStored) {
  baseline::Baseline base = stored(timed(99.6));
  for (int i = 1; i < 20; ++i) {
    base = baseline::accept(timed(99.6 + 0.8 * i / 19), base, {});
  }
  const auto judged_by_all = [&](double rate, double drop) {
    return metric(judge(timed(rate), {base}, {may_drop(drop)}), k_rate);
  };
  const Judgement slower = judged_by_all(93.6, 0.05);
  EXPECT_EQ(slower.verdict, Outcome::fail) << slower.reason;
  EXPECT_EQ(slower.baseline_sessions, 20);
  EXPECT_EQ(judged_by_all(99, 0.05).verdict, Outcome::pass);
  // At the limit no number decides: the candidate itself is one run.
  EXPECT_THAT(
      judged_by_all(95, 0.05).reason,
      HasSubstr(
          "even 20 stored runs would hardly decide it; runs of a base program beside it would"));
}

// Greedy decoding with a fixed seed: runs do not differ, so 2 % worse is 2 % worse.
TEST(Times, HoldTheQualityOfAnswersWithoutAssumingThatSessionsDiffer) {
  const auto profile_with = [](double perplexity) {
    Profile profile = reference();
    return add_time(profile, "perplexity", std::vector<double>(10, perplexity));
  };
  const std::vector<baseline::Baseline> base{stored(profile_with(6.5))};
  EXPECT_EQ(metric(judge(profile_with(6.5), base), "perplexity").verdict, Outcome::pass);
  EXPECT_EQ(metric(judge(profile_with(6.55), base), "perplexity").verdict, Outcome::pass);
  EXPECT_EQ(metric(judge(profile_with(6.63), base), "perplexity").verdict, Outcome::fail);
}

TEST(Times, TakePlainAmountsOfWhatIsStored) {
  LimitEntry limit = entry({k_rate});
  limit.max_drop = Amount{20, false};  // 20 tok/s of 100
  EXPECT_EQ(judged(100, limit).verdict, Outcome::pass);
  EXPECT_EQ(judged(70, limit).verdict, Outcome::fail);
}

TEST(Times, ThatShouldBeLowMayNotRise) {
  Profile before = reference(), after = reference();
  add_time(before, "time_to_first_token_seconds", around(0.100));
  add_time(after, "time_to_first_token_seconds", around(0.150));
  LimitEntry limit = entry({"time_to_first_token_seconds"});
  limit.max_increase = Amount{0.10, true};
  EXPECT_EQ(metric(judge(after, {stored(before)}, {limit}), "time_to_first_token_seconds").verdict,
            Outcome::fail);
  EXPECT_EQ(metric(judge(before, {stored(after)}, {limit}), "time_to_first_token_seconds").verdict,
            Outcome::pass);
}

TEST(Times, AreNewOnAnotherMachineAndDoNotLiftTheCellAboveItsCounts) {
  Profile elsewhere = timed(50);
  elsewhere.provenance.machine_class = "machine-b";
  CellVerdict cell = judge(elsewhere, {stored(timed(100))});
  EXPECT_EQ(metric(cell, k_rate).verdict, Outcome::new_);
  EXPECT_THAT(metric(cell, k_rate).reason, HasSubstr("other machine classes"));
  EXPECT_EQ(cell.verdict, Outcome::pass);
  EXPECT_EQ(metric(judge(timed(50), {stored(reference())}), k_rate).reason,
            "no timed samples are stored");
  EXPECT_EQ(judge(timed(50), {}).verdict, Outcome::new_) << "with its counts";
}

// A run by others: without pairs, on a machine of their choice.
TEST(Times, ThatHaveToBeComparedAreInconclusiveWithoutSamples) {
  Policy policy;
  policy.require_times = true;
  Profile elsewhere = timed(50);
  elsewhere.provenance.machine_class = "machine-b";
  const auto judgement = [&](const Profile& candidate, const Profile& base) {
    return metric(judge(candidate, {stored(base)}, {}, policy), k_rate);
  };
  EXPECT_EQ(judgement(elsewhere, timed(100)).verdict, Outcome::inconclusive);
  EXPECT_EQ(judgement(elsewhere, timed(100)).reason,
            "nothing to compare with: the run has no pairs with the base, and stored samples are "
            "of other machine classes; measure with --against, or judge counts alone");
  EXPECT_EQ(judgement(timed(50), reference()).verdict, Outcome::inconclusive);
  Profile older = reference();
  add_time(older, "prefill_tokens_per_second", around(100));
  EXPECT_EQ(judgement(timed(50), older).verdict, Outcome::new_) << "samples older than the metric";
  LimitEntry off = entry({k_rate});
  off.mode = Mode::report;
  EXPECT_EQ(metric(judge(elsewhere, {stored(timed(100))}, {off}, policy), k_rate).verdict,
            Outcome::info);
}

TEST(Times, OfFewerDecisionsThanCountsMakeTheCellInconclusive) {
  EXPECT_EQ(judge(timed(100), {stored(timed(100))}).verdict, Outcome::inconclusive);
}

TEST(Times, WithoutALimitAreOnlyTold) {
  Profile before = timed(100), after = timed(100);
  add_time(before, "peak_rss_bytes", around(1e9));
  add_time(after, "peak_rss_bytes", around(2e9));
  const Judgement memory = metric(judge(after, {stored(before)}), "peak_rss_bytes");
  EXPECT_EQ(memory.verdict, Outcome::info);
  EXPECT_NEAR(*memory.change, 1, 1e-9);
}

TEST(Times, HavePlainLimitsWithoutABaseline) {
  const auto at_least = [](double least) {
    LimitEntry limit = entry({k_rate});
    limit.min = Amount{least, false};
    return std::vector{limit};
  };
  const auto verdict = [&](double least) {
    return metric(judge(timed(100), {stored(timed(100))}, at_least(least)), k_rate).verdict;
  };
  EXPECT_EQ(verdict(120), Outcome::fail);
  EXPECT_EQ(verdict(100), Outcome::inconclusive) << "the samples lie on both sides";
  const Judgement alone = metric(judge(timed(100), {}, at_least(50)), k_rate);
  EXPECT_EQ(alone.verdict, Outcome::pass);
  EXPECT_THAT(alone.warnings,
              testing::ElementsAre(HasSubstr("its change is not judged: no baseline")))
      << "the default max_drop has nothing to judge by";
  EXPECT_EQ(metric(judge(timed(100), {}, at_least(120)), k_rate).verdict, Outcome::fail);
}

TEST(Times, ThatBreakTwoLimitsNameBothAndElseTheBrokenOne) {
  LimitEntry both = entry({k_rate});
  both.min = Amount{90, false};
  LimitEntry bound = both;
  bound.mode = Mode::off;
  const auto judged = [&](double now, const LimitEntry& limit) {
    return metric(judge(timed(now), {stored(timed(100))}, {limit}), k_rate);
  };
  const Judgement two = judged(50, both);
  EXPECT_EQ(two.verdict, Outcome::fail);
  EXPECT_THAT(two.reason, AllOf(HasSubstr("is below min 90"), HasSubstr("may drop 5 %")));
  const Judgement one = judged(50, bound);
  EXPECT_EQ(one.verdict, Outcome::fail);
  EXPECT_THAT(one.reason, AllOf(HasSubstr("is below min 90"), Not(HasSubstr("may drop"))));
  EXPECT_EQ(judged(95, bound).verdict, Outcome::pass) << "its change is not judged";
}

TEST(Times, BesideOneThatAPlainNumberHoldsMayBeNew) {
  Profile after;
  after.cell = timed(100).cell;
  after.timed_runs = 10;
  add_time(after, k_rate, around(100));
  add_time(after, "load_seconds", around(1.5));
  LimitEntry limit = entry({"load_seconds"});
  limit.max = Amount{2, false};
  const CellVerdict cell = judge(after, {}, {limit});
  EXPECT_EQ(metric(cell, k_rate).verdict, Outcome::new_);
  EXPECT_EQ(cell.verdict, Outcome::pass);
}

TEST(Times, ThatAreStoredAndNoLongerMeasuredAreAnError) {
  Profile after = timed(100);
  after.metrics.erase(k_rate);
  const CellVerdict cell = judge(after, {stored(timed(100))});
  EXPECT_EQ(metric(cell, k_rate).verdict, Outcome::error);
  Profile counts_only = reference();
  EXPECT_EQ(judge(counts_only, {stored(timed(100))}).verdict, Outcome::pass);
}

TEST(Times, ThatAreNoPositiveNumbersAreAnError) {
  Profile after = reference();
  add_time(after, k_rate, {0, 0, 0});
  EXPECT_EQ(metric(judge(after, {stored(timed(100))}), k_rate).verdict, Outcome::error);
}

// A server may answer each request too late to be good.
TEST(Times, OfNoGoodRequestAtAllFail) {
  Profile before = reference(), after = reference();
  add_time(before, "goodput_requests_per_second", {2, 2, 2});
  add_time(after, "goodput_requests_per_second", {0, 0, 0});
  LimitEntry limit = entry({"goodput_requests_per_second"});
  limit.max_drop = Amount{0.10, true};
  const Judgement verdict =
      metric(judge(after, {stored(before)}, {limit}), "goodput_requests_per_second");
  EXPECT_EQ(verdict.verdict, Outcome::fail);
  EXPECT_THAT(verdict.reason, HasSubstr("it is 0"));
}

TEST(Times, SayWhatTheyWouldBeInReportMode) {
  LimitEntry limit = may_drop(0.10);
  limit.mode = Mode::report;
  limit.reason = "shared runner";
  const Judgement verdict = judged(70, limit);
  EXPECT_EQ(verdict.verdict, Outcome::info);
  EXPECT_THAT(verdict.reason,
              HasSubstr("reported, not gated: shared runner (would be fail: \u221230.0 %"));
}

}  // namespace times_test
}  // namespace weir::verdict
