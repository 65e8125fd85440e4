// Tests metrics of the host: system calls are judged exactly, metrics that depend on scheduling
// only by pairs.
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/verdict/over_depth.hpp"

#include "tests/verdict/build.hpp"

namespace weir::verdict {
namespace host_test {

using namespace test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

profile::Profile& add_host(profile::Profile& profile, const std::string& name, double value,
                           profile::Nature nature) {
  profile::Measurement measured;
  measured.metric = *unit::find_metric(name);
  measured.source = "host";
  measured.nature = nature;
  if (nature == profile::Nature::exact) {
    measured.exact = Rational(static_cast<std::int64_t>(value));
  } else {
    measured.samples = {value};
  }
  profile.metrics[name] = measured;
  return profile;
}

profile::Profile with_calls(std::int64_t writes, double waits) {
  profile::Profile profile = reference();
  add_host(profile, "system_calls_per_token", static_cast<double>(58 + writes),
           profile::Nature::exact);
  add_host(profile, "futex_waits_per_token", waits, profile::Nature::sampled);
  profile.functions = profile::KernelSet{};
  profile.functions->counts = {{"system call arch_prctl", 58}};
  if (writes > 0) profile.functions->counts["system call write"] = Rational(writes);
  return profile;
}

TEST(Host, ASystemCallMoreATokenFailsAndIsNamed) {
  const CellVerdict cell = judge(with_calls(1, 0.1), {stored(with_calls(0, 0.1))});
  EXPECT_EQ(metric(cell, "system_calls_per_token").verdict, Outcome::fail);
  ASSERT_EQ(cell.functions.size(), 1U);
  EXPECT_EQ(cell.functions[0].name, "system call write");
  EXPECT_EQ(cell.functions[0].current, Rational(1));
}

TEST(Host, FilesThatAreReadAreShownAndNotJudged) {
  for (const char* name :
       {"read_bytes_per_token", "opened_files_per_token", "mapped_file_bytes_per_token",
        "read_bytes_per_prefill", "read_bytes_per_request", "read_bytes_per_context_token"}) {
    profile::Profile base = reference(), candidate = reference();
    add_host(base, name, 4096, profile::Nature::exact);
    add_host(candidate, name, 4097, profile::Nature::exact);
    const CellVerdict cell = judge(candidate, {stored(base)});
    EXPECT_EQ(metric(cell, name).verdict, Outcome::info) << name;
    EXPECT_EQ(metric(cell, name).current, 4097) << name;
  }
}

TEST(Host, WhatThreadsDoToEachOtherIsShownAndNeverJudgedByAStoredBaseline) {
  const CellVerdict cell = judge(with_calls(0, 370), {stored(with_calls(0, 0.1))});
  EXPECT_EQ(cell.verdict, Outcome::pass);
  EXPECT_EQ(metric(cell, "futex_waits_per_token").verdict, Outcome::info);
  EXPECT_EQ(metric(cell, "futex_waits_per_token").current, 370);
  EXPECT_THAT(cell.functions, IsEmpty());
}

TEST(Host, WhatATimedProcessTookIsNeverJudgedByStoredSamples) {
  profile::Profile before = reference(), after = reference();
  add_time(before, "voluntary_switches", around(10));
  add_time(after, "voluntary_switches", around(10000));
  const baseline::Baseline stored_base = stored(before);
  EXPECT_THAT(stored_base.sessions, IsEmpty()) << "it is not stored";
  const Judgement judgement = metric(judge(after, {stored_base}), "voluntary_switches");
  EXPECT_EQ(judgement.verdict, Outcome::info);
  EXPECT_THAT(judgement.reason, HasSubstr("--against"));
}

// Judges pairs of processes of 96 tokens that wait about `base` and `candidate` times, within
// `spread`.
CellVerdict judged_cell(double base, double candidate, double spread) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> around(-spread, spread);
  profile::PairedRuns runs;
  runs.warm = true;
  runs.pairs = 40;
  profile::PairedMetric metric{*unit::find_metric("voluntary_switches"), "weir", {base, base}, {}};
  metric.added = 96;
  profile::Profile after = with_calls(0, 0);
  after.functions->counts["system call futex wait"] = *Rational::make(11, 10);
  std::vector<double> samples;
  for (int i = 0; i < 40; ++i) {
    const auto number = [&](double middle) { return std::max(0.0, middle + around(random)); };
    metric.pairs.push_back({number(base), number(candidate), (random() & 1U) != 0});
    samples.push_back(*metric.pairs.back().candidate);
  }
  runs.metrics.push_back(metric);
  add_time(after, "voluntary_switches", samples);
  const auto stored_base = stored(with_calls(0, 0));
  return judge_cell(after, {baseline::choose_baseline(after, {&stored_base, 1}), runs}, {},
                    Policy{});
}
Judgement judged(double base, double candidate, double spread) {
  return metric(judged_cell(base, candidate, spread), "voluntary_switches");
}

TEST(Host, AWaitMoreATokenFailsInPairsAndAFewMoreInAllDoNot) {
  const Judgement more = judged(10, 10 + 96, 8);
  EXPECT_EQ(more.verdict, Outcome::fail) << more.reason;
  EXPECT_GT(*more.change, 5) << "of what the base had";
  for (const double few : {0.0, 10.0}) {
    const Judgement same = judged(few, few, few);
    EXPECT_EQ(same.verdict, Outcome::pass) << same.reason;
    EXPECT_LE(*same.pairs, 12) << "three waits in place of two are no news";
  }
}

TEST(Host, AWaitThatPairsBlameIsNamed) {
  const CellVerdict cell = judged_cell(10, 10 + 96, 8);
  ASSERT_EQ(cell.functions.size(), 1U);
  EXPECT_EQ(cell.functions[0].name, "system call futex wait");
  EXPECT_THAT(judged_cell(10, 10, 8).functions, IsEmpty()) << "a call more than none broke nothing";
}

TEST(OverThreads, TellsWhatAThreadAddsAndWhatSerialises) {
  std::vector<profile::Profile> profiles;
  for (const char* prompt : {"decode@tall", "decode@t2", "decode@t1", "decode@t4"}) {
    profile::Profile& profile = profiles.emplace_back(reference());
    profile.cell = *profile::CellKey::parse(std::string("e/m/cpu/") + prompt);
    const std::int64_t threads = *profile.cell.threads == 0 ? 8 : *profile.cell.threads;
    add_host(profile, "system_calls_per_token", static_cast<double>(29 + 29 * threads),
             profile::Nature::exact);
    add_host(profile, "futex_waits_per_token", threads == 1 ? 0.1 : 37, profile::Nature::sampled);
  }
  profiles.push_back(reference());
  EXPECT_THAT(describe_thread_scaling(profiles),
              ElementsAre("e/m/cpu/decode over 1, 2, 4, all threads: futex waits/token 0.10, 37, "
                          "37, 37, so that threads wait for each other: a lock serialises; system "
                          "calls/token 58, 87, 145, 261 (+29 a thread)"));
  EXPECT_THAT(describe_thread_scaling(std::span(profiles).last(1)), IsEmpty());
}

}  // namespace host_test
}  // namespace weir::verdict
