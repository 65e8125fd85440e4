// Tests verdicts on counts, kernels, placement and the same work.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/verdict/build.hpp"

namespace weir::verdict {
namespace counts_test {

using namespace test;
using profile::Placement;
using profile::Profile;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(Counts, PassWhenNothingChanged) {
  const CellVerdict cell = judge(reference(), {stored(reference())});
  EXPECT_EQ(cell.verdict, Outcome::pass);
  EXPECT_EQ(cell.base, "same device class");
  EXPECT_EQ(cell.judgement_of("kernels").verdict, Outcome::pass);
  EXPECT_EQ(cell.judgement_of("placement").verdict, Outcome::pass);
  EXPECT_EQ(metric(cell, "dispatches_per_token").verdict, Outcome::pass);
  EXPECT_EQ(metric(cell, "dispatches_fixed").verdict, Outcome::info)
      << "no limit: counts as nothing";
  EXPECT_EQ(cell.metrics().back().metric.name, "dispatches_fixed")
      << "what is only told comes last";
}

// Without a limit none may fail, so a run under looser limits is judged by the base's.
TEST(Counts, OfFailedRequestsAreJudgedByAShareOfAllOrByANumber) {
  struct Case {
    double failed;
    std::optional<Amount> limit;
    Outcome want;
  };
  for (const Case& c :
       {Case{0, std::nullopt, Outcome::pass}, Case{1, std::nullopt, Outcome::fail},
        Case{2, Amount{0.01, true}, Outcome::pass}, Case{3, Amount{0.01, true}, Outcome::fail},
        Case{3, Amount{3, false}, Outcome::pass}, Case{4, Amount{3, false}, Outcome::fail}}) {
    Profile load = reference();
    add_nearly(load, "failed_requests", {c.failed});
    load.requests = 200 - static_cast<std::int64_t>(c.failed);
    LimitEntry limit = entry({"failed_requests"});
    limit.max = c.limit;
    const CellVerdict cell = judge(load, {stored(reference())}, {limit});
    EXPECT_EQ(metric(cell, "failed_requests").verdict, c.want) << c.failed;
  }
}

TEST(Counts, FailInEitherDirectionUnlessTheWorkIsSeenToHaveStayed) {
  struct Case {
    std::int64_t now;
    Placement::State before, after;
    Outcome want;
    const char* reason;
  };
  using State = Placement::State;
  const Case k_cases[] = {
      {77, State::seen, State::seen, Outcome::fail, "65 to 77 (+12), must not change"},
      {77, State::shown, State::shown, Outcome::fail, "must not change"},
      {53, State::seen, State::seen, Outcome::fail, "nothing here sees where the work went"},
      {53, State::shown, State::seen, Outcome::fail, "nothing here sees"},
      {53, State::seen, State::shown, Outcome::fail, "nothing here sees"},
      {53, State::shown, State::shown, Outcome::improved,
       "65 to 53 (-12), with all work where it was"},
      {53, State::ran_elsewhere, State::shown, Outcome::improved, "with all work where it was"},
      {65, State::seen, State::unknown, Outcome::pass, ""},
  };
  for (const Case& test_case : k_cases) {
    Profile before = reference(), after = reference();
    before.placement.state = test_case.before;
    if (test_case.before == State::ran_elsewhere) before.placement.cpu_ops = {{"SWIGLU", 6}};
    after.placement.state = test_case.after;
    add_count(after, "dispatches_per_token", test_case.now);
    const CellVerdict cell = judge(after, {stored(before)});
    EXPECT_EQ(metric(cell, "dispatches_per_token").verdict, test_case.want)
        << test_case.now << test_case.reason;
    EXPECT_THAT(metric(cell, "dispatches_per_token").reason, HasSubstr(test_case.reason));
  }
}

// Counts go from 690/690/18 to 690/690/1: the device got the same work, whoever waits for it.
TEST(Counts, OfWaitsImproveWhereTheDeviceGotTheSameWork) {
  const struct {
    std::map<std::string, std::int64_t> now;  // base: 65 dispatches, 46 barriers, 1 sync
    Outcome syncs;
    const char* reason;
  } cases[] = {
      {{}, Outcome::improved, "18 to 1 (-17), with the same work on the device: accept it"},
      {{{"copies_per_token", 2}}, Outcome::fail, "nothing here sees"},
      {{{"dispatches_per_token", 64}}, Outcome::fail, "nothing here sees"},
      {{{"dispatches_per_token", 66}}, Outcome::fail, "nothing here sees"},
      {{{"barriers_per_token", 45}}, Outcome::fail, "nothing here sees"},
      {{{"barriers_fixed", 4}}, Outcome::improved, "same work on the device"},
  };
  for (const auto& c : cases) {
    Profile before = reference(), after = reference();
    add_count(before, "syncs_per_token", 18);
    for (const auto& [name, value] : c.now) add_count(after, name, value);
    const Judgement syncs = metric(judge(after, {stored(before)}), "syncs_per_token");
    EXPECT_EQ(syncs.verdict, c.syncs) << c.reason;
    EXPECT_THAT(syncs.reason, HasSubstr(c.reason));
  }
  // An engine that reports that it ran on the CPU did not improve.
  Profile before = reference(), after = reference();
  add_count(before, "syncs_per_token", 18);
  after.placement.state = Placement::State::ran_elsewhere;
  EXPECT_EQ(metric(judge(after, {stored(before)}), "syncs_per_token").verdict, Outcome::fail);
}

TEST(Counts, ThatImproveInACellThatFailsAreNotToBeAccepted) {
  Profile before = reference(), after = reference();
  before.placement.state = after.placement.state = Placement::State::shown;
  add_count(after, "dispatches_per_token", 60);
  add_count(after, "barriers_per_token", 50);
  const CellVerdict cell = judge(after, {stored(before)});
  EXPECT_EQ(cell.verdict, Outcome::fail);
  EXPECT_EQ(metric(cell, "dispatches_per_token").verdict, Outcome::improved);
  EXPECT_THAT(metric(cell, "dispatches_per_token").reason, ::testing::Not(HasSubstr("accept")));
}

TEST(Counts, TellWhatChangedInNumbers) {
  Profile after = reference();
  add_count(after, "dispatches_per_token", 77);
  add_count(after, "barriers_per_token", *Rational::make(93, 2));
  const CellVerdict cell = judge(after, {stored(reference())});
  const Judgement& dispatches = metric(cell, "dispatches_per_token");
  EXPECT_EQ(dispatches.baseline, 65);
  EXPECT_EQ(dispatches.current, 77);
  EXPECT_DOUBLE_EQ(*dispatches.change, 12.0 / 65);
  EXPECT_EQ(dispatches.nature, profile::Nature::exact);
  EXPECT_EQ(metric(cell, "barriers_per_token").current_text, "93/2");
  EXPECT_EQ(metric(cell, "barriers_per_token").verdict, Outcome::fail)
      << "half a barrier is a change";
  EXPECT_EQ(cell.verdict, Outcome::fail);
}

TEST(Counts, HaveNoRelativeChangeFromZero) {
  Profile before = reference(), after = reference();
  add_count(before, "copies_per_token", 0);
  add_count(after, "copies_per_token", 2);
  const CellVerdict cell = judge(after, {stored(before)});
  EXPECT_EQ(metric(cell, "copies_per_token").verdict, Outcome::fail);
  EXPECT_FALSE(metric(cell, "copies_per_token").change);
}

TEST(Counts, FailByThePlainNumbersOfALimitEvenWithoutABaseline) {
  LimitEntry range = entry({"syncs_per_token"});
  range.min = Amount{1, false};
  range.max = Amount{3, false};
  for (const auto& [value, with_base, want] :
       {std::tuple(4, false, Outcome::fail), std::tuple(0, false, Outcome::fail),
        std::tuple(2, false, Outcome::new_), std::tuple(1, true, Outcome::pass),
        std::tuple(2, true, Outcome::fail)}) {  // still exact: all matching limits apply
    Profile after = reference();
    add_count(after, "syncs_per_token", value);
    std::vector<baseline::Baseline> baselines;
    if (with_base) baselines.push_back(stored(reference()));
    EXPECT_EQ(metric(judge(after, baselines, {range}), "syncs_per_token").verdict, want) << value;
  }
}

TEST(Counts, MayMoveWithinAnAllowance) {
  LimitEntry loose = entry({"dispatches_per_token"});
  loose.exact = false;
  loose.max_increase = Amount{0.2, true};  // 13 of 65
  loose.max_decrease = Amount{5, false};
  for (const auto& [value, want] :
       {std::pair(78, Outcome::pass), std::pair(79, Outcome::fail), std::pair(60, Outcome::pass),
        std::pair(59, Outcome::fail), std::pair(65, Outcome::pass)}) {
    Profile after = reference();
    add_count(after, "dispatches_per_token", value);
    EXPECT_EQ(metric(judge(after, {stored(reference())}, {loose}), "dispatches_per_token").verdict,
              want)
        << value;
  }
}

// All matching limits apply: a tolerance does not weaken `exact`.
TEST(Counts, ObeyEveryKindOfLimitThatMatches) {
  LimitEntry both = entry({"*_per_token"});
  both.max_increase = Amount{0.002, true};
  both.max_decrease = Amount{5, false};
  struct Case {
    std::int64_t now;
    Outcome want;
    const char* reason;
  };
  for (const auto& [now, want, reason] :
       {Case{66, Outcome::fail, "must not change"}, Case{65, Outcome::pass, ""},
        Case{60, Outcome::improved, "accept it"}, Case{59, Outcome::fail, "may fall 5"}}) {
    Profile before = reference(), after = reference();
    before.placement.state = after.placement.state = Placement::State::shown;
    add_count(after, "dispatches_per_token", now);
    const CellVerdict cell = judge(after, {stored(before)}, {both});
    EXPECT_EQ(metric(cell, "dispatches_per_token").verdict, want) << now;
    EXPECT_THAT(metric(cell, "dispatches_per_token").reason, HasSubstr(reason)) << now;
  }
  // A change of 0.4 % is within the default of a count that nearly repeats, and beyond the entry's
  // limit.
  Profile before = reference(), after = reference();
  add_nearly(before, "instructions_per_token", {1000});
  add_nearly(after, "instructions_per_token", {1004});
  const Judgement judgement =
      metric(judge(after, {stored(before)}, {both}), "instructions_per_token");
  EXPECT_EQ(judgement.verdict, Outcome::fail);
  EXPECT_THAT(judgement.reason, HasSubstr("may rise 0.2 %"));
}

// The default is 3 times the 1 % that the baseline's processes spread over, or half a per cent if
// they are closer.
TEST(Counts, SayByHowMuchTheyMayVaryWhereTheyOnlyNearlyRepeat) {
  Profile exact = reference(), tight = reference(), wide = reference();
  add_count(exact, "instructions_per_token", 1000);
  add_nearly(tight, "instructions_per_token", {1000, 1000.5, 1001});
  add_nearly(wide, "instructions_per_token", {995, 1000, 1005});
  const auto words = [](const Profile& before, const Profile& after) {
    return metric(judge(after, {stored(before)}), "instructions_per_token").limit.words();
  };
  EXPECT_EQ(words(exact, exact), "must not change");
  EXPECT_EQ(words(exact, wide), "must not change");
  EXPECT_EQ(words(tight, tight), "may vary by 0.5 %");
  EXPECT_EQ(words(wide, tight), "may vary by 3 %");
  EXPECT_EQ(metric(judge(wide, {}), "instructions_per_token").limit.words(), "may vary by 3 %");
}

TEST(Counts, ThatNearlyRepeatMayMoveByThreeTimesTheirRepeatabilityOrHalfAPercent) {
  Profile tight = reference(), wide = reference();
  add_nearly(tight, "instructions_per_token", {1000, 1000.5, 1001});  // 0.1 %: so 0.5 % holds
  add_nearly(wide, "instructions_per_token", {990, 1000, 1010});      // 2 %: so 6 % holds
  struct Case {
    const Profile* base;
    double now;
    Outcome want;
  };
  for (const auto& [base, now, want] :
       {Case{&tight, 1005, Outcome::pass}, Case{&tight, 1006, Outcome::fail},
        Case{&tight, 996, Outcome::pass}, Case{&tight, 990, Outcome::fail},
        Case{&wide, 1059, Outcome::pass}, Case{&wide, 1061, Outcome::fail}}) {
    Profile after = reference();
    add_nearly(after, "instructions_per_token", {now});
    EXPECT_EQ(metric(judge(after, {stored(*base)}), "instructions_per_token").verdict, want) << now;
  }
}

Profile with_functions(double instructions, std::map<std::string, Rational> functions) {
  Profile profile = reference();
  add_nearly(profile, "instructions_per_token", {instructions, instructions, instructions});
  profile.functions = profile::KernelSet{unit::Scope::per_token, {}, false, std::move(functions)};
  return profile;
}

TEST(Counts, OfInstructionsThatGrewNameTheFunctionsThatChanged) {
  const Profile before =
      with_functions(100'000, {{"dot", 80'000}, {"norm", 10'000}, {"gone", 1'000}, {"steady", 9}});
  const Profile after =
      with_functions(110'000, {{"dot", 89'600}, {"norm", 10'050}, {"new", 5'000}, {"steady", 9}});
  const CellVerdict cell = judge(after, {stored(before)});
  EXPECT_EQ(cell.verdict, Outcome::fail);
  EXPECT_THAT(metric(cell, "instructions_per_token").reason,
              "100000 to 110000 (+10000), may vary by 0.5 %");
  std::vector<std::string> names;
  for (const Changed& function : cell.functions) names.push_back(function.name);
  EXPECT_THAT(names, testing::ElementsAre("dot", "gone", "new"))
      << "a twentieth of a per cent of all explains nothing";
  EXPECT_TRUE(judge(before, {stored(before)}).functions.empty());
  // Ten times as much: a function with 1 % of the old sum may still be there, below the smallest
  // stored share.
  const Profile much = with_functions(1'000'000, {{"dot", 990'000}});
  const CellVerdict worse = judge(much, {stored(before)});
  names.clear();
  for (const Changed& function : worse.functions) names.push_back(function.name);
  EXPECT_THAT(names, testing::ElementsAre("dot", "norm"));
}

TEST(Counts, OfInstructionsCountedInTwoWaysDoNotJudgeEachOther) {
  Profile before = with_functions(100'000, {}), after = with_functions(150'000, {});
  before.metrics["instructions_per_token"].source = "perf";
  const Judgement judgement = metric(judge(after, {stored(before)}), "instructions_per_token");
  EXPECT_EQ(judgement.verdict, Outcome::new_);
  EXPECT_THAT(judgement.reason, HasSubstr("counted by perf, this run by valgrind"));
}

TEST(Counts, OfAProbeAreNotReplacedByTheEnginesOwnWord) {
  struct Case {
    const char *base, *now;
    std::int64_t dispatches;
    Outcome want;
  };
  for (const Case& c : {Case{"vulkan", "llama-bench", 65, Outcome::error},
                        {"vulkan", "instrument", 65, Outcome::error},
                        {"ggml", "instrument", 65, Outcome::error},
                        {"host", "generic", 65, Outcome::error},
                        {"vulkan", "generic", 64, Outcome::error},
                        {"vulkan", "vulkan", 65, Outcome::pass},
                        {"generic", "llama-bench", 65, Outcome::pass},
                        {"instrument", "generic", 65, Outcome::pass},
                        {"generic", "vulkan", 65, Outcome::pass}}) {
    Profile before = reference(), after = reference();
    before.metrics["dispatches_per_token"].source = c.base;
    add_count(after, "dispatches_per_token", c.dispatches).metrics["dispatches_per_token"].source =
        c.now;
    const CellVerdict cell = judge(after, {stored(before)});
    const Judgement& judgement = metric(cell, "dispatches_per_token");
    EXPECT_EQ(judgement.verdict, c.want) << c.base << c.now;
    EXPECT_EQ(cell.verdict, c.want) << c.base << c.now;
    if (c.want == Outcome::pass) continue;
    EXPECT_EQ(
        judgement.reason,
        fmt::format("could not be measured: {} counted 65 in the baseline and nothing in this "
                    "run; the engine's own {} does not replace it",
                    c.base, c.dispatches));
  }
}

// A plain bound does not take the engine's word either; without a limit it is shown.
TEST(Counts, OfTheEnginesOwnWordFulfilNoBoundOnAProbesCount) {
  Profile before = reference(), after = reference();
  after.metrics["syncs_per_token"].source = "generic";
  LimitEntry bound = entry({"syncs_per_token"});
  bound.exact = false;
  EXPECT_EQ(metric(judge(after, {stored(before)}, {bound}), "syncs_per_token").verdict,
            Outcome::info);
  bound.max = Amount{1, false};
  EXPECT_EQ(metric(judge(after, {stored(before)}, {bound}), "syncs_per_token").verdict,
            Outcome::error);
}

// A bound holds in every process: the median would hide one of three.
TEST(Counts, StayWithinMaxAndMinInEveryProcess) {
  struct Case {
    std::vector<double> samples;
    std::optional<Amount> max, min;
    std::string reason;
  };
  for (const Case& c :
       {Case{{10, 1000, 10}, Amount{12, false}, {}, "1000 in a process is above max 12"},
        Case{{10, 2, 10}, {}, Amount{5, false}, "2 in a process is below min 5"},
        Case{{10, 12, 10}, Amount{12, false}, Amount{10, false}, ""}}) {
    Profile after = reference();
    profile::Measurement& count = after.metrics["syncs_per_token"];
    count.exact.reset();
    count.samples = c.samples;
    LimitEntry bound = entry({"syncs_per_token"});
    bound.exact = false;
    bound.max = c.max;
    bound.min = c.min;
    const Judgement judgement =
        metric(judge(after, {stored(reference())}, {bound}), "syncs_per_token");
    EXPECT_EQ(judgement.verdict, c.reason.empty() ? Outcome::pass : Outcome::fail);
    EXPECT_EQ(judgement.reason, c.reason);
  }
}

TEST(Counts, OfInstructionsAreSkippedWhereThisMachineCanNotCountThem) {
  const Profile before = with_functions(100'000, {});
  Profile after = reference();
  EXPECT_EQ(metric(judge(after, {stored(before)}), "instructions_per_token").verdict,
            Outcome::error)
      << "not asked for any more is no reason";
  after.instructions_skip_reason =
      "instructions are not counted: a virtual machine without counters";
  const CellVerdict cell = judge(after, {stored(before)});
  EXPECT_EQ(metric(cell, "instructions_per_token").verdict, Outcome::skipped);
  EXPECT_EQ(cell.verdict, Outcome::pass);
  EXPECT_THAT(cell.notes, testing::Contains(HasSubstr("virtual machine")));
}

TEST(Counts, OfOneProbeThatThisMachineCanNotTakeExcuseNoOther) {
  const Profile before = with_functions(100'000, {});
  Profile after = reference();
  after.host_skip_reason = "system calls are not counted: ptrace is forbidden";
  const CellVerdict cell = judge(after, {stored(before)});
  EXPECT_EQ(metric(cell, "instructions_per_token").verdict, Outcome::error);
  EXPECT_THAT(cell.notes, testing::Contains(HasSubstr("ptrace is forbidden")));
}

// Marks of an engine: a kind that never happened has no count.
TEST(Counts, OfMarksAreNoneWhereOthersOfTheirsAreThere) {
  const auto marked = [](std::map<std::string, int> counts) {
    Profile profile = reference();
    for (const auto& [name, count] : counts) {
      add_count(profile, name, Rational(count));
      profile.metrics[name].source = "instrument";
    }
    return profile;
  };
  const Profile without = marked({{"graphs_per_token", 1}});
  const Profile with = marked({{"graphs_per_token", 1}, {"copies_per_token", 2}});
  const Judgement first = metric(judge(with, {stored(without)}), "copies_per_token");
  EXPECT_EQ(first.verdict, Outcome::fail);
  EXPECT_EQ(first.baseline, 0);
  const Judgement gone = metric(judge(without, {stored(with)}), "copies_per_token");
  EXPECT_EQ(gone.verdict, Outcome::fail) << "it fell, and where the work ran is not known";
  EXPECT_EQ(gone.current, 0) << "not: could not be measured";
  Profile by_probe = with;
  by_probe.metrics["copies_per_token"].source = "vulkan";
  EXPECT_EQ(metric(judge(by_probe, {stored(without)}), "copies_per_token").verdict, Outcome::new_)
      << "a probe that stands before an API counts every kind";
}

TEST(Counts, OfMemoryMayRiseByOnePercentAndFall) {
  struct Case {
    std::int64_t now;
    Outcome want;
  };
  Profile before = reference();
  add_count(before, "device_memory_peak_bytes", 7'000'000);
  for (const auto& [now, want] : {Case{7'000'000, Outcome::pass}, Case{7'070'000, Outcome::pass},
                                  Case{7'070'001, Outcome::fail}, Case{3'500'000, Outcome::pass}}) {
    Profile after = reference();
    add_count(after, "device_memory_peak_bytes", now);
    const CellVerdict cell = judge(after, {stored(before)});
    EXPECT_EQ(metric(cell, "device_memory_peak_bytes").verdict, want) << now;
    EXPECT_EQ(cell.verdict, want) << now;
  }
}

// Older baselines hold no memory. A count that was always taken is new if it is missing.
TEST(Counts, ThatABaselineIsOlderThanAreInformation) {
  Profile after = reference();
  add_count(after, "device_memory_peak_bytes", 7'000'000);
  add_count(after, "pipelines_per_token", 0);
  Policy strict;
  strict.require_baseline = true;
  const CellVerdict cell = judge(after, {stored(reference())}, {}, strict);
  for (const char* name : {"device_memory_peak_bytes", "pipelines_per_token"}) {
    EXPECT_EQ(metric(cell, name).verdict, Outcome::info) << name;
    EXPECT_THAT(metric(cell, name).reason, HasSubstr("the baseline is older")) << name;
  }
  EXPECT_EQ(cell.verdict, Outcome::pass);
  after.metrics["pipelines_per_token"].source = "cuda";
  EXPECT_EQ(metric(judge(after, {stored(reference())}), "pipelines_per_token").verdict,
            Outcome::new_)
      << "another probe than the baseline's";
}

TEST(Counts, ThatNoLongerRepeatFailWhereTheyWereExact) {
  Profile after = reference();
  add_nearly(after, "dispatches_per_token", {65, 65, 66});
  const CellVerdict cell = judge(after, {stored(reference())});
  EXPECT_EQ(metric(cell, "dispatches_per_token").verdict, Outcome::fail);
  EXPECT_THAT(metric(cell, "dispatches_per_token").reason, HasSubstr("now it varies: 65 to 66"));
}

TEST(Counts, OfTheProcessesOfARoleMustNotRise) {
  for (const char* name : {"processes", "rank:processes"}) {
    Profile before = reference(), after = reference();
    add_count(before, name, 1);
    add_count(after, name, 3);
    const Judgement more = metric(judge(after, {stored(before)}), name);
    EXPECT_EQ(more.verdict, Outcome::fail);
    EXPECT_EQ(more.reason, "1 to 3 (+2), must not change");
    EXPECT_EQ(metric(judge(before, {stored(before)}), name).verdict, Outcome::pass);
    const CellVerdict older = judge(after, {stored(reference())});
    EXPECT_EQ(older.verdict, Outcome::pass) << "a baseline of an older weir stays valid";
    EXPECT_THAT(metric(older, name).reason, HasSubstr("older than this count"));
  }
}

// Adds a count of a further role, as a probe that has one counts it.
Profile& add_of_role(Profile& profile, const std::string& name, Rational value) {
  add_count(profile, name, value).metrics[name].source = "vulkan@draft";
  return profile;
}

TEST(Counts, OfARoleThatTheBaseDidNotPlayAreNoneInARunAndNewInAStoredBaseline) {
  Profile after = reference();
  for (const char* name : {"draft:dispatches_per_token", "draft:syncs_at_8", "draft:processes"})
    add_of_role(after, name, 5);
  add_of_role(after, "draft:copies_per_token", 0);
  const CellVerdict beside =
      judge_cell(after, {baseline::choose_run(after, reference())}, LimitTable(), {});
  for (const char* name : {"draft:dispatches_per_token", "draft:syncs_at_8", "draft:processes"}) {
    EXPECT_EQ(metric(beside, name).verdict, Outcome::fail) << name;
    EXPECT_EQ(metric(beside, name).reason, "0 to 5 (+5), must not change");
  }
  EXPECT_EQ(metric(beside, "draft:copies_per_token").verdict, Outcome::pass);
  const CellVerdict against_stored = judge(after, {stored(reference())});
  EXPECT_EQ(against_stored.verdict, Outcome::new_);
  EXPECT_EQ(metric(against_stored, "draft:dispatches_per_token").verdict, Outcome::new_);
}

TEST(Counts, OfARoleThatAnOlderRunCountedAreNewWhereItLacksThem) {
  Profile before = reference(), after = reference();
  add_of_role(before, "draft:dispatches_per_token", 5);
  add_of_role(after, "draft:dispatches_per_token", 5);
  add_of_role(after, "draft:syncs_per_token", 2);
  const auto judge_beside = [&] {
    return judge_cell(after, {baseline::choose_run(after, before)}, LimitTable(), {});
  };
  EXPECT_EQ(judge_beside().verdict, Outcome::new_);
  add_of_role(before, "draft:processes", 1);
  add_of_role(after, "draft:processes", 1);
  EXPECT_EQ(metric(judge_beside(), "draft:syncs_per_token").verdict, Outcome::fail);
}

TEST(Counts, OfARoleAtALengthAreComparedWithTheLineOfThatRole) {
  Profile before = reference(), after = reference();
  add_of_role(before, "draft:dispatches_per_token", 5);
  add_of_role(before, "draft:dispatches_fixed", 1);
  add_of_role(after, "draft:dispatches_at_8", 65 * 8 + 65);  // the line of the first role
  const CellVerdict cell = judge(after, {stored(before)});
  EXPECT_EQ(metric(cell, "draft:dispatches_at_8").verdict, Outcome::fail);
  EXPECT_EQ(metric(cell, "draft:dispatches_at_8").baseline, 41);
  add_of_role(after, "draft:dispatches_at_8", 41);
  EXPECT_EQ(judge(after, {stored(before)}).verdict, Outcome::pass);
}

// With a second process, waits for futexes are no longer counted as exact.
TEST(Counts, ThatMayVaryAndDoNotPass) {
  Profile after = reference();
  add_nearly(after, "dispatches_per_token", {65, 65, 65});
  EXPECT_EQ(metric(judge(after, {stored(reference())}), "dispatches_per_token").verdict,
            Outcome::pass);
}

// Slopes that are fitted to equal counts differ in the last digits.
TEST(Counts, ThatDifferByRoundingDoNotVary) {
  Profile after = reference();
  add_nearly(after, "dispatches_per_token", {65.5, 65.5, 65.5 + 1e-13});
  const CellVerdict cell = judge(after, {stored(reference())});
  EXPECT_EQ(metric(cell, "dispatches_per_token").verdict, Outcome::fail);
  EXPECT_EQ(metric(cell, "dispatches_per_token").reason, "65 to 65.5 (+0.5), must not change");
}

TEST(Counts, ThatNoLongerRepeatStayWithinAnAllowanceInEachProcess) {
  LimitEntry limit = entry({"dispatches_per_token"});
  limit.exact = false;
  limit.max_increase = Amount{0.05, true};
  for (const auto& [most, verdict] : {std::pair(90, Outcome::fail), {67, Outcome::pass}}) {
    Profile after = reference();
    add_nearly(after, "dispatches_per_token", {65, 65, static_cast<double>(most)});
    const Judgement judged =
        metric(judge(after, {stored(reference())}, {limit}), "dispatches_per_token");
    EXPECT_EQ(judged.verdict, verdict);
    EXPECT_THAT(judged.reason, HasSubstr(fmt::format("now it varies: 65 to {}", most)));
  }
}

// All values of both sides decide. The numbers of processes follow from the splits of so many
// values: 1 of 286 for 3 against 10, 1 of 252 for 5 against 5.
TEST(Counts, ThatVariedInTheBaselineAreComparedByRank) {
  const std::vector<double> ten_below = {63, 63, 64, 63, 63, 64, 63, 63, 63, 63};
  const struct {
    std::vector<double> before, now;
    Outcome verdict;
    const char* reason;
  } cases[] = {
      {{64, 64, 63}, {80}, Outcome::fail, "64 to 80 (+16), in the baseline it is 63 to 64"},
      {{64, 64, 63}, {65}, Outcome::inconclusive, "about --processes 10 would decide"},
      {{64, 64, 63}, {63}, Outcome::inconclusive, "about --processes 5 would decide"},
      {{64, 64, 63}, std::vector<double>(10, 65), Outcome::fail, "now 65 in 10"},
      {{64, 64, 63}, {64, 63, 63, 64, 63, 64, 63}, Outcome::pass, "now 63 to 64 in 7"},
      {ten_below, {64, 64, 64, 64, 63, 64, 64, 64, 64, 64}, Outcome::fail, "63 to 64 (+1)"},
      {ten_below, ten_below, Outcome::pass, "2 of 10 runs, now 63 to 64 in 10"},
      {{60, 80, 70}, {81}, Outcome::inconclusive, "a change by 6.7"},
  };
  LimitEntry exact = entry({"syncs_at_16"});
  exact.exact = true;
  for (const auto& test_case : cases) {
    Profile before = reference(), after = reference();
    add_nearly(before, "syncs_at_16", test_case.before);
    add_nearly(after, "syncs_at_16", test_case.now);
    for (const std::vector<LimitEntry>& limits : {std::vector<LimitEntry>{}, {exact}}) {
      const CellVerdict cell = judge(after, {stored(before)}, limits);
      EXPECT_EQ(metric(cell, "syncs_at_16").verdict, test_case.verdict) << test_case.reason;
      EXPECT_THAT(metric(cell, "syncs_at_16").reason, HasSubstr(test_case.reason));
      EXPECT_EQ(metric(cell, "syncs_at_16").limit.words(), "must not change");
    }
  }
}

TEST(Counts, ThatAgreeNowAreAsManyValuesAsProcessesCountedThem) {
  Profile before = reference(), after = reference();
  add_nearly(before, "syncs_at_16", {63, 64, 63, 63, 64});
  add_count(after, "syncs_at_16", 65);
  after.metrics["syncs_at_16"].source = "valgrind";
  after.counted_runs = 3;  // of three lengths
  EXPECT_EQ(metric(judge(after, {stored(before)}), "syncs_at_16").verdict, Outcome::inconclusive);
  after.counted_runs = 15;
  EXPECT_EQ(metric(judge(after, {stored(before)}), "syncs_at_16").verdict, Outcome::fail);
}

// A base that was counted in this run may agree by chance, and vary as the candidate does.
TEST(Counts, ThatVaryBesideABaseThatAgreesFailOnlyIfThatIsNoChance) {
  for (const auto& [odd, verdict] : {std::pair(2, Outcome::inconclusive), {7, Outcome::fail}}) {
    Profile before = reference(), after = reference();
    before.counted_runs = after.counted_runs = 30;
    add_count(before, "syncs_at_16", 63);
    before.metrics["syncs_at_16"].source = "valgrind";
    std::vector<double> values(10, 63);
    for (int i = 0; i < odd; ++i) values[static_cast<std::size_t>(i)] = i % 2 == 0 ? 62 : 64;
    add_nearly(after, "syncs_at_16", values);
    after.kernels->runs_disagree = true;
    const CellVerdict cell =
        judge_cell(after, {baseline::choose_run(after, before)}, std::vector<LimitEntry>{}, {});
    EXPECT_EQ(metric(cell, "syncs_at_16").verdict, verdict);
    EXPECT_EQ(cell.judgement_of("kernels").verdict, Outcome::inconclusive);
  }
}

// A file of an older weir has only the median and the spread.
TEST(Counts, ThatVariedStayWithinTheSpreadWhereNoRangeIsStored) {
  Profile before = reference(), after = reference();
  add_nearly(before, "syncs_at_16", {64, 64, 63});
  before.metrics["syncs_at_16"].samples = {64};
  add_count(after, "syncs_at_16", 65);
  after.metrics["syncs_at_16"].source = "valgrind";
  const CellVerdict cell = judge(after, {stored(before)});
  EXPECT_EQ(metric(cell, "syncs_at_16").verdict, Outcome::pass);
  EXPECT_EQ(metric(cell, "syncs_at_16").limit.words(), "may vary by 4.7 %");
}

TEST(Counts, AreAnErrorWhenTheBaselineHoldsThemAndTheRunDoesNot) {
  Profile after = reference();
  after.metrics.erase("syncs_per_token");
  after.metrics.erase("dispatches_fixed");  // no limit needs it
  CellVerdict cell = judge(after, {stored(reference())});
  EXPECT_EQ(cell.verdict, Outcome::error);
  EXPECT_EQ(metric(cell, "syncs_per_token").verdict, Outcome::error);
  EXPECT_THAT(metric(cell, "syncs_per_token").reason, HasSubstr("could not be measured"));
  LimitEntry removed = entry({"syncs_per_token"});
  removed.exact = false;
  EXPECT_EQ(judge(after, {stored(reference())}, {removed}).verdict, Outcome::pass);
}

TEST(Counts, AreNewWithoutABaselineAndAnErrorWhereOneIsRequired) {
  for (const bool required : {false, true}) {
    Policy policy;
    policy.require_baseline = required;
    const CellVerdict cell = judge(reference(), {}, {}, policy);
    EXPECT_EQ(cell.verdict, required ? Outcome::error : Outcome::new_);
    EXPECT_THAT(metric(cell, "dispatches_per_token").reason, HasSubstr("no baseline is stored"));
  }
  Profile changed = reference();
  changed.provenance.fingerprint_parts["arguments"] = "b2";
  changed.provenance.fingerprint = "beef";
  add_count(changed, "dispatches_per_token", 99);
  const CellVerdict cell = judge(changed, {stored(reference())});
  EXPECT_EQ(cell.verdict, Outcome::new_) << "another fingerprint is another cell, never a fail";
  EXPECT_THAT(metric(cell, "dispatches_per_token").reason,
              HasSubstr("stored with other settings: arguments changed"));
  EXPECT_EQ(metric(cell, "dispatches_per_token").baseline, 65) << "shown beside";
}

TEST(Counts, OfTheNearestClassPassWhenEqualAndAreNewOtherwise) {
  baseline::Baseline near = stored(reference());
  near.device_class = "vulkan-10005-0-d-2-0a";
  CellVerdict cell = judge(reference(), {near});
  EXPECT_EQ(cell.verdict, Outcome::pass);
  EXPECT_EQ(cell.base, "nearest: vulkan-10005-0-d-2-0a");
  EXPECT_THAT(cell.notes, ElementsAre(HasSubstr("the nearest device class")));
  Profile after = reference();
  add_count(after, "dispatches_per_token", 66);
  after.kernels->counts["add"] = 1;
  cell = judge(after, {near});
  EXPECT_EQ(metric(cell, "dispatches_per_token").verdict, Outcome::new_);
  EXPECT_EQ(metric(cell, "dispatches_per_token").baseline, 65);
  EXPECT_EQ(metric(cell, "barriers_per_token").verdict, Outcome::pass);
  EXPECT_EQ(cell.judgement_of("kernels").verdict, Outcome::new_);
  EXPECT_EQ(cell.verdict, Outcome::new_);
}

TEST(Counts, AtLengthsAreComparedWithALine) {
  // The base has 65 + 65 n. The candidate has 585, 1105 and 1700 at 8, 16, 24: the last is 75 too
  // many.
  Profile after = reference();
  after.metrics.erase("dispatches_per_token");
  after.metrics.erase("dispatches_fixed");
  add_count(after, "dispatches_at_8", 585);
  add_count(after, "dispatches_at_16", 1105);
  add_count(after, "dispatches_at_24", 1700);
  CellVerdict cell = judge(after, {stored(reference())});
  EXPECT_EQ(metric(cell, "dispatches_at_8").verdict, Outcome::pass);
  EXPECT_EQ(metric(cell, "dispatches_at_24").verdict, Outcome::fail);
  EXPECT_EQ(metric(cell, "dispatches_at_24").baseline, 1625);
  EXPECT_EQ(metric(cell, "dispatches_per_token").metric.name, "") << "told at its lengths, once";
  // Base and candidate swapped.
  cell = judge(reference(), {stored(after)});
  EXPECT_EQ(metric(cell, "dispatches_at_16").verdict, Outcome::pass);
  EXPECT_EQ(metric(cell, "dispatches_at_24").verdict, Outcome::fail);
  EXPECT_EQ(metric(cell, "dispatches_at_24").current, 1625);
  EXPECT_EQ(metric(cell, "dispatches_per_token").verdict, Outcome::info);
}

TEST(Counts, AreShownAndNotGatedInReportMode) {
  LimitEntry report = entry({});
  report.mode = Mode::report;
  report.reason = "new, being observed";
  Profile after = reference();
  add_count(after, "dispatches_per_token", 77);
  after.kernels->counts["add"] = 12;
  after.placement = {Placement::State::ran_elsewhere, "on the CPU", {}};
  const CellVerdict cell = judge(after, {stored(reference())}, {report});
  EXPECT_EQ(metric(cell, "dispatches_per_token").verdict, Outcome::info);
  EXPECT_THAT(metric(cell, "dispatches_per_token").reason,
              HasSubstr("reported, not gated: new, being observed (would be fail: 65 to 77"));
  EXPECT_EQ(metric(cell, "barriers_per_token").reason, "reported, not gated: new, being observed");
  EXPECT_EQ(cell.judgement_of("kernels").verdict, Outcome::info);
  EXPECT_EQ(cell.judgement_of("placement").verdict, Outcome::info);
  EXPECT_EQ(cell.verdict, Outcome::pass);
  EXPECT_THAT(cell.notes, ElementsAre(HasSubstr("nothing was judged")));
}

TEST(Kernels, TakeTheVerdictOfTheDispatchesWhereThoseChanged) {
  Profile before = reference(), after = reference();
  before.placement.state = after.placement.state = Placement::State::shown;
  after.kernels->counts = {{"mul_mat", 53}};
  add_count(after, "dispatches_per_token", 53);
  CellVerdict cell = judge(after, {stored(before)});
  EXPECT_EQ(cell.judgement_of("kernels").verdict, Outcome::improved);
  EXPECT_EQ(cell.verdict, Outcome::improved);
  ASSERT_EQ(cell.judgement_of("kernels").changed.size(), 1U);
  EXPECT_EQ(cell.judgement_of("kernels").changed[0].name, "rms_norm_mul");
  EXPECT_EQ(cell.judgement_of("kernels").changed[0].baseline, Rational(12));
  EXPECT_FALSE(cell.judgement_of("kernels").changed[0].current);
  add_count(after, "dispatches_per_token", 77);
  EXPECT_EQ(judge(after, {stored(before)}).judgement_of("kernels").verdict, Outcome::fail);
}

TEST(Kernels, FailWhereTheTotalStayedTheSame) {
  Profile after = reference();
  after.kernels->counts = {{"mul_mat", 53}, {"rms_norm", 12}};
  const CellVerdict cell = judge(after, {stored(reference())});
  EXPECT_EQ(metric(cell, "dispatches_per_token").verdict, Outcome::pass);
  EXPECT_EQ(cell.judgement_of("kernels").verdict, Outcome::fail);
  EXPECT_EQ(cell.judgement_of("kernels").reason, "65 dispatches as before, by other kernels");
  EXPECT_EQ(cell.verdict, Outcome::fail);
  LimitEntry off = entry({"kernels"});
  off.exact = false;
  EXPECT_EQ(judge(after, {stored(reference())}, {off}).verdict, Outcome::pass);
  EXPECT_EQ(judge(after, {stored(reference())}, {off}).judgement_of("kernels").changed.size(), 2U)
      << "still explained";
}

TEST(Kernels, ThatVariedInTheBaselineAreReportedAndJudgeNothing) {
  for (const bool vary_now : {false, true}) {
    Profile before = reference(), after = reference();
    after.kernels->counts["mul_mat"] = 52;
    before.kernels->runs_disagree = true;
    after.kernels->runs_disagree = vary_now;
    const CellVerdict cell = judge(after, {stored(before)});
    EXPECT_EQ(cell.judgement_of("kernels").verdict, Outcome::info);
    EXPECT_THAT(cell.judgement_of("kernels").reason, HasSubstr("not the same in all runs"));
    EXPECT_EQ(cell.judgement_of("kernels").changed.size(), 1U) << "shown all the same";
    EXPECT_EQ(cell.verdict, Outcome::pass);
    EXPECT_THAT(cell.notes, ElementsAre(cell.judgement_of("kernels").reason))
        << "never passed over in silence";
  }
}

// Otherwise a slower kernel in every second process would pass.
TEST(Kernels, ThatBeginToVaryBetweenRunsFail) {
  Profile after = reference();
  after.kernels->counts["mul_mat"] = 52;
  after.kernels->runs_disagree = true;
  const CellVerdict cell = judge(after, {stored(reference())});
  EXPECT_EQ(cell.judgement_of("kernels").verdict, Outcome::fail);
  EXPECT_THAT(cell.judgement_of("kernels").reason, HasSubstr("now they vary from run to run"));
  EXPECT_EQ(cell.verdict, Outcome::fail);
}

TEST(Kernels, OfRequestsThatOverlapMayVary) {
  Profile after = reference();
  after.kernels->runs_disagree = true;
  after.requests = 8;
  EXPECT_EQ(judge(after, {stored(reference())}).judgement_of("kernels").verdict, Outcome::info);
}

TEST(Counts, OfTheHostsCallsMayFall) {
  Profile before = reference(), after = reference();
  for (const auto& [profile, calls] : {std::pair{&before, 1}, {&after, 0}}) {
    profile::Measurement& count = profile->metrics["costly_calls_per_token"];
    count = profile->metrics["syncs_per_token"];
    count.metric = unit::count_metric("costly_calls", unit::Scope::per_token);
    count.source = "python";
    count.exact = Rational(calls);
  }
  const CellVerdict cell = judge(after, {stored(before)});
  EXPECT_EQ(metric(cell, "costly_calls_per_token").verdict, Outcome::improved);
}

TEST(Kernels, WithoutNamesOnlyExplain) {
  Profile before = reference(), after = reference();
  before.kernels->has_names = after.kernels->has_names = false;
  after.kernels->counts = {{"0badc0de", 65}};
  CellVerdict cell = judge(after, {stored(before)});
  EXPECT_EQ(cell.judgement_of("kernels").verdict, Outcome::info);
  EXPECT_EQ(cell.judgement_of("kernels").changed.size(), 3U);
  EXPECT_EQ(cell.verdict, Outcome::pass);
  cell = judge(after, {stored(reference())});
  EXPECT_EQ(cell.judgement_of("kernels").verdict, Outcome::error)
      << "names that are gone cannot be compared";
  after.kernels.reset();
  EXPECT_EQ(judge(after, {stored(reference())}).judgement_of("kernels").verdict, Outcome::error);
}

TEST(PlacementLimit, FailsWhereTheWorkRanElsewhere) {
  Profile after = reference();
  after.placement = {Placement::State::ran_elsewhere, "asked for vulkan: gave it no work", {}};
  for (const auto& baselines :
       {std::vector{stored(reference())}, std::vector<baseline::Baseline>{}}) {
    const CellVerdict cell = judge(after, baselines);
    EXPECT_EQ(cell.verdict, Outcome::fail) << "with or without a baseline";
    EXPECT_EQ(cell.judgement_of("placement").verdict, Outcome::fail);
    EXPECT_EQ(cell.judgement_of("placement").reason, "asked for vulkan: gave it no work");
    EXPECT_TRUE(cell.ran_elsewhere);
    EXPECT_THAT(cell.not_allowed, testing::IsEmpty());
  }
  add_count(after, "dispatches_per_token", 0);
  EXPECT_THAT(metric(judge(after, {stored(reference())}), "dispatches_per_token").reason,
              HasSubstr("the work ran elsewhere"));
  add_count(after, "dispatches_per_token", 65);
  LimitEntry off = entry({"placement"});
  off.exact = false;
  EXPECT_EQ(judge(after, {stored(reference())}, {off}).verdict, Outcome::pass);
}

TEST(PlacementLimit, NamesOpsThatMovedToTheCpu) {
  Profile before = reference(), after = reference();
  before.placement = {Placement::State::shown, "", {{"GET_ROWS", 1}}};
  after.placement = {Placement::State::shown, "", {{"GET_ROWS", 1}, {"ROPE", 8}}};
  add_count(after, "dispatches_per_token", 57);
  const CellVerdict cell = judge(after, {stored(before)});
  EXPECT_EQ(cell.judgement_of("placement").verdict, Outcome::fail);
  EXPECT_EQ(cell.judgement_of("placement").reason, "moved to the CPU: ROPE");
  EXPECT_FALSE(cell.ran_elsewhere) << "it is allowed there: accepting it mends that";
  ASSERT_EQ(cell.judgement_of("placement").changed.size(), 1U);
  EXPECT_EQ(cell.judgement_of("placement").changed[0].current, Rational(8));
  EXPECT_EQ(metric(cell, "dispatches_per_token").verdict, Outcome::fail) << "fewer, but they moved";
}

TEST(PlacementLimit, ListsOpsThatMovedBesideTheReasonTheProbeGave) {
  Profile before = reference(), after = reference();
  before.placement = {Placement::State::shown, "", {{"GET_ROWS", 1}}};
  after.placement = {Placement::State::ran_elsewhere,
                     "MUL_MAT ran on the CPU",
                     {{"GET_ROWS", 1}, {"MUL_MAT", 4}},
                     {"MUL_MAT"}};
  const CellVerdict cell = judge(after, {stored(before)});
  EXPECT_EQ(cell.judgement_of("placement").reason, "MUL_MAT ran on the CPU");
  EXPECT_TRUE(cell.ran_elsewhere);
  EXPECT_THAT(cell.not_allowed, testing::ElementsAre("MUL_MAT"));
  ASSERT_EQ(cell.judgement_of("placement").changed.size(), 1U);
  EXPECT_EQ(cell.judgement_of("placement").changed[0].name, "MUL_MAT");
  EXPECT_FALSE(cell.judgement_of("placement").changed[0].baseline);
}

TEST(PlacementLimit, LetsFewerCountsImproveWhenWorkCameToTheDevice) {
  Profile before = reference(), after = reference();
  before.placement = {Placement::State::shown, "", {{"GET_ROWS", 3}}};
  after.placement = {Placement::State::shown, "", {{"GET_ROWS", 1}}};
  add_count(before, "cpu_ops_per_token", 3);
  add_count(after, "cpu_ops_per_token", 1);
  EXPECT_EQ(metric(judge(after, {stored(before)}), "cpu_ops_per_token").verdict, Outcome::improved);
  // In the other direction, work came to the CPU.
  add_count(before, "dispatches_per_token", 53);
  const CellVerdict back = judge(before, {stored(after)});
  EXPECT_EQ(metric(back, "dispatches_per_token").verdict, Outcome::fail);
  EXPECT_EQ(back.judgement_of("placement").reason, "moved to the CPU: GET_ROWS");
}

TEST(PlacementLimit, FailsWhereOpsMovedToAThirdDevice) {
  using Ops = std::map<std::string, std::int64_t>;
  const struct {
    Ops cpu_before, cpu_now, before, now;
    const char* reason;  // "": pass
  } cases[] = {
      {{}, {}, {}, {{"ROPE on blas", 4}}, "moved to another device: ROPE on blas"},
      {{},
       {},
       {{"ROPE on blas", 4}},
       {{"ROPE on blas", 5}},
       "moved to another device: ROPE on blas"},
      {{},
       {{"ADD", 1}},
       {},
       {{"ROPE on opencl", 4}},
       "moved to the CPU: ADD; moved to another device: ROPE on opencl"},
      {{},
       {},
       {{"ROPE on blas", 4}},
       {{"ROPE on accel", 4}},
       "moved to another device: ROPE on accel"},
      {{}, {}, {{"ROPE on blas", 4}}, {{"ROPE on blas", 4}}, ""},
      {{}, {}, {{"ROPE on blas", 4}}, {}, ""},
  };
  for (const auto& c : cases) {
    Profile before = reference(), after = reference();
    before.placement = {Placement::State::shown, "", c.cpu_before, {}, c.before};
    after.placement = {Placement::State::shown, "", c.cpu_now, {}, c.now};
    add_count(after, "dispatches_per_token", 61);
    const CellVerdict cell = judge(after, {stored(before)});
    const bool passes = std::string(c.reason).empty();
    EXPECT_EQ(cell.judgement_of("placement").verdict, passes ? Outcome::pass : Outcome::fail);
    EXPECT_EQ(cell.judgement_of("placement").reason, c.reason);
    EXPECT_EQ(metric(cell, "dispatches_per_token").verdict,
              passes ? Outcome::improved : Outcome::fail)
        << c.reason;
  }
}

// An engine that skips work counts less, too.
TEST(Counts, ThatFellWithOpsOfTheGraphSayThatNoOutputWasCompared) {
  const auto graph = [](std::map<std::string, Rational> ops) {
    return profile::KernelSet{unit::Scope::per_token, {}, true, std::move(ops)};
  };
  Profile before = reference(), after = reference();
  before.placement.state = after.placement.state = Placement::State::shown;
  before.graph_ops = graph({{"MUL_MAT", 12}, {"ROPE", 4}});
  after.graph_ops = graph({{"MUL_MAT", 6}, {"ROPE", 4}});
  add_count(after, "dispatches_per_token", 59);
  EXPECT_EQ(metric(judge(after, {stored(before)}), "dispatches_per_token").verdict,
            Outcome::improved)
      << "its output is the base's";
  before.work.output_digest.reset();
  after.work.output_digest.reset();
  const Judgement skipped = metric(judge(after, {stored(before)}), "dispatches_per_token");
  EXPECT_EQ(skipped.verdict, Outcome::improved);
  EXPECT_EQ(skipped.reason,
            "65 to 59 (-6): MUL_MAT ran 12 → 6 times a token, and the engine reports no output: "
            "that both sides did the same work is not checked: accept it as the new baseline");
  after.graph_ops = before.graph_ops;
  EXPECT_EQ(metric(judge(after, {stored(before)}), "dispatches_per_token").reason,
            "65 to 59 (-6), with all work where it was: accept it as the new baseline")
      << "ops were fused";
  // An op that came to the device from the CPU is not dropped.
  before.placement.cpu_ops = {{"MUL_MAT", 2}};
  after.graph_ops = graph({{"MUL_MAT", 14}, {"ROPE", 4}});
  EXPECT_EQ(metric(judge(after, {stored(before)}), "dispatches_per_token").reason,
            "65 to 59 (-6), with all work where it was: accept it as the new baseline");
}

// On the CPU, ops are the kernels, and cpu_ops is their sum.
TEST(Kernels, OfACpuCellAreItsOps) {
  Profile before = reference();
  before.cell = *profile::CellKey::parse("llama.cpp/tiny-llama/cpu/decode");
  before.device = "cpu";
  before.metrics.clear();
  before.placement = {Placement::State::shown, "", {}};
  before.kernels = profile::KernelSet{unit::Scope::per_token, {}, true, {{"MUL", 4}, {"ADD", 4}}};
  add_count(before, "cpu_ops_per_token", 8);
  Profile after = before;
  after.kernels->counts = {{"MUL", 4}, {"SUB", 4}};
  CellVerdict cell = judge(after, {stored(before)});
  EXPECT_EQ(cell.judgement_of("kernels").verdict, Outcome::fail);
  EXPECT_EQ(cell.judgement_of("kernels").reason, "8 ops as before, but others");
  after.kernels->counts = {{"MUL", 4}, {"ADD", 2}};
  add_count(after, "cpu_ops_per_token", 6);
  cell = judge(after, {stored(before)});
  EXPECT_EQ(cell.judgement_of("kernels").verdict, Outcome::improved);
  EXPECT_EQ(cell.verdict, Outcome::improved);
  EXPECT_EQ(judge(before, {stored(after)}).judgement_of("kernels").verdict, Outcome::fail);
  before.work.output_digest.reset();
  after.work.output_digest.reset();
  cell = judge(after, {stored(before)});
  EXPECT_EQ(cell.judgement_of("kernels").verdict, Outcome::improved);
  EXPECT_THAT(metric(cell, "cpu_ops_per_token").reason, HasSubstr("ADD ran 4 → 2 times a token"));
}

TEST(Kernels, WithoutACountOfTheirOwnAreJudgedByTheirSum) {
  Profile before = reference();
  before.placement.state = Placement::State::shown;
  before.metrics.erase("dispatches_per_token");
  before.metrics.erase("dispatches_fixed");
  Profile after = before;
  after.kernels->counts["mul_mat"] = 50;
  EXPECT_EQ(judge(after, {stored(before)}).judgement_of("kernels").verdict, Outcome::improved);
  EXPECT_EQ(judge(after, {stored(before)}).judgement_of("kernels").reason,
            "65 to 62 in all, with all work where it was");
  EXPECT_EQ(judge(before, {stored(after)}).judgement_of("kernels").verdict, Outcome::fail);
  after.placement.state = Placement::State::seen;
  EXPECT_EQ(judge(after, {stored(before)}).judgement_of("kernels").verdict, Outcome::fail);
}

TEST(SameWork, IsAnErrorWhereTheCandidateSaysOtherwiseOrNothing) {
  const auto changed = [](const std::function<void(profile::WorkDone&)>& change) {
    Profile after = reference();
    change(after.work);
    return judge(after, {stored(reference())});
  };
  EXPECT_EQ(changed([](auto& work) { work.output_digest = "other"; }).verdict, Outcome::error);
  EXPECT_THAT(changed([](auto& work) { work.generated_tokens = 23; }).reason,
              HasSubstr("tokens generated: 23, before 24"));
  EXPECT_EQ(changed([](auto& work) { work.model = "llama 2B"; }).verdict, Outcome::error);
  EXPECT_THAT(changed([](auto& work) { work.generated_tokens.reset(); }).reason,
              HasSubstr("tokens generated: not reported, before 24"));
  EXPECT_THAT(changed([](auto& work) { work.output_digest.reset(); }).reason,
              HasSubstr("output digest: not reported, before digest"));
  const CellVerdict silent = changed([](auto& work) { work = {}; });
  EXPECT_EQ(silent.verdict, Outcome::error);
  EXPECT_THAT(silent.notes, testing::IsEmpty()) << "the error says it";
}

// Less work would look the same.
TEST(SameWork, ThatNobodyReportsIsNotedWhereSomethingImproved) {
  Profile before = reference();
  before.work = {};
  before.placement.state = Placement::State::shown;
  Profile after = before;
  EXPECT_THAT(judge(after, {stored(before)}).notes, testing::IsEmpty());
  add_count(after, "syncs_per_token", 0);
  const CellVerdict improved = judge(after, {stored(before)});
  EXPECT_EQ(improved.verdict, Outcome::improved);
  EXPECT_THAT(improved.notes, ElementsAre(HasSubstr("is not checked")));
}

TEST(SameWork, IsNotMissedWhereTheBaseOrThePassOfItSaysNothing) {
  Profile before = reference();
  before.work = {};
  EXPECT_EQ(judge(reference(), {stored(before)}).verdict, Outcome::pass);
  Profile timed = reference();
  timed.work = {};
  timed.counted_runs = 0;
  timed.timed_runs = 3;
  EXPECT_THAT(judge(timed, {stored(reference())}).reason, Not(HasSubstr("same work")));
}

TEST(SameWork, IsAnErrorWhereAProcessPrintsAnotherNumberOfValues) {
  constexpr const char* k_name = "dispatches_per_token";
  using Number = std::optional<std::int64_t>;
  const struct {
    Number base, candidate;
    Mode mode;
    std::vector<std::int64_t> lengths;
    const char* reason;  // "": none
    const char* source = "generic";
  } cases[] = {
      {4, 4, Mode::gate, {8, 16, 24}, ""},
      {4, 5, Mode::gate, {8, 16, 24}, "was printed 4 times by the base and 5 times here"},
      {4, 1, Mode::gate, {8, 16, 24}, "was printed 4 times by the base and 1 time here"},
      {1, 4, Mode::gate, {8, 16, 24}, "was printed 1 time by the base and 4 times here"},
      {std::nullopt, 4, Mode::gate, {8, 16, 24}, ""},  // a baseline of an older weir
      {4, std::nullopt, Mode::gate, {8, 16, 24}, ""},  // missed as a count
      {4, 5, Mode::gate, {8, 16, 24}, "", "vulkan"},   // a probe's count is judged
      {4, 5, Mode::report, {8, 16, 24}, ""},
      {4, 5, Mode::off, {8, 16, 24}, ""},
      {4, 5, Mode::gate, {4, 8, 12}, ""},  // other requests
  };
  for (const auto& c : cases) {
    Profile before = reference();
    before.metrics.at(k_name).source = c.source;
    Profile after = before;
    if (c.base) before.work.printed_values[k_name] = *c.base;
    if (c.candidate) after.work.printed_values[k_name] = *c.candidate;
    before.provenance.lengths = c.lengths;
    LimitEntry limit = entry({k_name});
    limit.exact = true;
    limit.mode = c.mode;
    const CellVerdict cell = judge(after, {stored(before)}, {limit});
    if (*c.reason == '\0') {
      EXPECT_THAT(cell.reason, Not(HasSubstr("was printed")));
    } else {
      EXPECT_THAT(cell.reason, HasSubstr(std::string(k_name) + " " + c.reason));
      EXPECT_EQ(cell.verdict, Outcome::error);
    }
  }
}

// "2k retries" are not the base's "2 retries".
TEST(Counts, PrintedInAnotherUnitThanTheBasesAreTheCellsError) {
  constexpr const char* k_name = "retries_per_token";
  Profile before = reference();
  add_count(before, k_name, 2);
  before.metrics.at(k_name).source = "generic";
  Profile after = before;
  const std::string form = profile::printed_form(k_name, "k");
  after.work.printed_values[form] = 1;
  LimitEntry limit = entry({k_name});
  limit.exact = true;
  limit.mode = Mode::gate;
  const CellVerdict cell = judge(after, {stored(before)}, {limit});
  EXPECT_THAT(cell.reason, HasSubstr(form + ": not printed by the base"));
  EXPECT_EQ(cell.verdict, Outcome::error);
}

// With one more thread they vary: that is the regression, and no reason to skip them.
TEST(Counts, ThatWereExactAreJudgedWhereTheyOnlyVaryNow) {
  Profile before = reference(), after = reference();
  add_count(before, "futex_waits_per_token", 0);
  profile::Measurement sampled = before.metrics.at("futex_waits_per_token");
  sampled.exact.reset();
  sampled.nature = profile::Nature::sampled;
  sampled.samples = {35, 37, 40};
  after.metrics["futex_waits_per_token"] = sampled;
  const Judgement judged = metric(judge(after, {stored(before)}), "futex_waits_per_token");
  EXPECT_EQ(judged.verdict, Outcome::fail) << judged.reason;
  EXPECT_EQ(judged.current_text, "35 to 40");
  // Counts that varied before are not judged.
  Profile varied = reference();
  varied.metrics["futex_waits_per_token"] = sampled;
  EXPECT_EQ(metric(judge(after, {stored(varied)}), "futex_waits_per_token").verdict, Outcome::info);
  // A limit that somebody set is still applied.
  LimitEntry limit;
  limit.metrics = {"futex_waits_per_token"};
  limit.max = Amount{30, false};
  EXPECT_EQ(metric(judge(after, {stored(varied)}, {limit}), "futex_waits_per_token").verdict,
            Outcome::fail);
  limit.max = Amount{50, false};
  EXPECT_EQ(metric(judge(after, {stored(varied)}, {limit}), "futex_waits_per_token").verdict,
            Outcome::pass);
}

// Results of a different load are no regression.
TEST(SameWork, OfResultFilesIsTheSameLoad) {
  Profile base = reference(), after = reference();
  base.work.load = "max_concurrency 8, num_prompts 100";
  after.work.load = "max_concurrency 1, num_prompts 5";
  const CellVerdict cell = judge(after, {stored(base)});
  EXPECT_EQ(cell.verdict, Outcome::error);
  EXPECT_THAT(cell.reason, HasSubstr("load: max_concurrency 1, num_prompts 5, before"));
  after.work.load = base.work.load;
  EXPECT_EQ(judge(after, {stored(base)}).verdict, Outcome::pass);
}

TEST(SameWork, OfAServerThatTellsLikelyTokensIsJudgedByThese) {
  LimitEntry limit;
  limit.metrics = {"output_kl"};
  limit.max = Amount{0.01, false};
  const auto judged = [&](double before, double now) {
    Profile base = reference(), after = reference();
    base.work.likely = {{"a", {{"a", std::log(before)}}}};
    after.work.likely = {{"a", {{"a", std::log(now)}}}};
    after.work.output_digest = "other";
    return judge(after, {stored(base)}, {limit});
  };
  // 0.9 ln(0.9/0.89) + 0.1 ln(0.1/0.11) = 0.0005; 0.9 ln(0.9/0.5) + 0.1 ln(0.1/0.5) = 0.37.
  const CellVerdict near = judged(0.9, 0.89), far = judged(0.9, 0.5);
  EXPECT_EQ(near.verdict, Outcome::pass);
  EXPECT_THAT(near.notes, testing::Contains(HasSubstr("output_kl judges it")));
  EXPECT_EQ(far.verdict, Outcome::fail);
  EXPECT_NEAR(metric(far, "output_kl").current.value_or(0), 0.37, 0.005);
  // The base has no likely tokens: nothing is compared except the digest.
  Profile after = reference();
  after.work.likely = {{"a", {{"a", -0.1}}}};
  const CellVerdict first = judge(after, {stored(reference())}, {limit});
  EXPECT_EQ(metric(first, "output_kl").verdict, Outcome::new_);
  after.work.output_digest = "other";
  EXPECT_EQ(judge(after, {stored(reference())}, {limit}).verdict, Outcome::error);
  // A server that no longer reports tokens has nothing to judge, which is no pass.
  Profile silent = reference();
  EXPECT_EQ(metric(judge(silent, {stored(after)}, {limit}), "output_kl").verdict, Outcome::error);
  EXPECT_TRUE(judge(silent, {stored(reference())}, {limit}).verdict != Outcome::error)
      << "it never did";
  silent.errors = {"timed: 3 of 3 runs: exit 1"};
  EXPECT_THAT(judge(silent, {stored(after)}, {limit}).reason, HasSubstr("exit 1"));
}

TEST(Cell, IsAnErrorWhereAPassCouldNotBeMeasuredAndStillShowsTheOther) {
  Profile after = reference();
  after.errors = {"timed: 3 of 10 runs: exit 139 (SIGSEGV)"};
  after.stderr_tail = "last words";
  CellVerdict cell = judge(after, {stored(reference())});
  EXPECT_EQ(cell.verdict, Outcome::error);
  EXPECT_EQ(cell.reason, "timed: 3 of 10 runs: exit 139 (SIGSEGV)");
  EXPECT_EQ(cell.stderr_tail, "last words");
  EXPECT_EQ(metric(cell, "dispatches_per_token").verdict, Outcome::pass);
  add_count(after, "dispatches_per_token", 66);
  EXPECT_EQ(judge(after, {stored(reference())}).verdict, Outcome::fail) << "fail comes first";

  Profile broken = reference();
  broken.metrics.clear();
  broken.kernels.reset();
  broken.errors = {"counted: exit 1"};
  cell = judge(broken, {stored(reference())});
  EXPECT_EQ(cell.verdict, Outcome::error);
  EXPECT_THAT(cell.metrics(), IsEmpty()) << "said once, not for every count";
}

TEST(Cell, FailsWhereAModelNoLongerFitsAndIsAsAcceptedWhereItNeverDid) {
  Profile too_large = reference();
  too_large.metrics.clear();
  too_large.kernels.reset();
  too_large.errors = {"counted: failed to load model"};
  add_count(too_large, "fits", 0);

  CellVerdict cell = judge(too_large, {stored(reference())});
  EXPECT_EQ(cell.verdict, Outcome::fail);
  EXPECT_THAT(metric(cell, "fits").reason, HasSubstr("1 to 0 (-1), must not change"));
  EXPECT_EQ(cell.reason, "counted: failed to load model");

  cell = judge(too_large, {stored(too_large)});
  EXPECT_EQ(cell.verdict, Outcome::pass);
  EXPECT_EQ(cell.reason, "");
  EXPECT_THAT(cell.notes,
              testing::Contains("does not fit, as accepted: counted: failed to load model"));

  cell = judge(reference(), {stored(too_large)});
  EXPECT_EQ(metric(cell, "fits").verdict, Outcome::improved) << metric(cell, "fits").reason;
  Policy strict;
  strict.require_baseline = true;
  cell = judge(reference(), {stored(too_large)}, {}, strict);
  EXPECT_EQ(cell.verdict, Outcome::improved) << "nothing new is asked for beside it";

  // A limit that lets counts change does not hide an engine that fails.
  LimitEntry loose = entry({"*"});
  loose.exact = false;
  loose.max = Amount{1e12, false};
  EXPECT_EQ(judge(too_large, {stored(reference())}, {loose}).verdict, Outcome::error);
  EXPECT_EQ(judge(too_large, {}, {loose}).verdict, Outcome::error);
  Profile hangs = too_large;
  hangs.errors.emplace_back("counted: 2 of 4 processes ran");
  EXPECT_EQ(judge(hangs, {stored(too_large)}).verdict, Outcome::error);

  EXPECT_EQ(judge(too_large, {}).verdict, Outcome::error) << "nothing says that it may";
  too_large.metrics.clear();
  EXPECT_EQ(judge(too_large, {stored(reference())}).verdict, Outcome::error)
      << "an engine that ended for another reason";
}

TEST(Cell, IsSkippedOnlyWhenNothingHereCanMeasureIt) {
  Profile skipped;
  skipped.cell = reference().cell;
  skipped.device = "cpu";
  skipped.counts_skip_reason = "no probe sees cpu";
  CellVerdict cell = judge(skipped, {});
  EXPECT_EQ(cell.verdict, Outcome::skipped);
  EXPECT_EQ(cell.reason, "no probe sees cpu");
  add_time(skipped, "decode_tokens_per_second", around(28));
  EXPECT_EQ(judge(skipped, {}).verdict, Outcome::new_);
}

TEST(Counts, OfCostlyCallsTakeInNewFunctionsThatWait) {
  Profile before = reference();
  profile::Measurement& costly =
      add_count(before, "costly_calls_per_token", 2).metrics["costly_calls_per_token"];
  costly.source = profile::k_python;
  before.functions = profile::KernelSet{
      unit::Scope::per_token, {}, true, {{"call of engine.step", 1}, {"call of engine.wait", 3}}};
  const struct {
    std::map<std::string, Rational> functions;
    Outcome verdict;
    const char* reason;
  } cases[] = {
      {{{"call of ctypes.thrd_sleep", 3}, {"wait in ctypes.thrd_sleep", 3}},
       Outcome::fail,
       "2 to 5 (+3), must not change"},
      {{{"call of engine.wait", 3}, {"wait in engine.wait", 3}}, Outcome::pass, ""},
      {{{"call of new", 3}}, Outcome::pass, ""},
      {{{"wait in rare", *Rational::make(1, 10)}}, Outcome::pass, ""},
  };
  for (const auto& c : cases) {
    Profile after = before;
    after.functions->counts.insert(c.functions.begin(), c.functions.end());
    const Judgement judged = metric(judge(after, {stored(before)}), "costly_calls_per_token");
    EXPECT_EQ(judged.verdict, c.verdict) << c.reason;
    EXPECT_EQ(judged.reason, c.reason);
  }
  // Numbers at a length take in as many calls as it has tokens.
  before.metrics.erase("costly_calls_per_token");
  add_count(before, "costly_calls_at_8", 16).metrics["costly_calls_at_8"].source =
      profile::k_python;
  Profile after = before;
  after.functions->counts["wait in ctypes.thrd_sleep"] = 1;
  EXPECT_EQ(metric(judge(after, {stored(before)}), "costly_calls_at_8").reason,
            "16 to 24 (+8), must not change");
}

}  // namespace counts_test
}  // namespace weir::verdict
