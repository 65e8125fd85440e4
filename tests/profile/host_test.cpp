// Work of the host: system calls of traced processes, and usage of timed ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/profile/paired.hpp"

namespace weir::profile {
namespace host_test {

using ::testing::IsEmpty;

constexpr const char* k_cell = "llama.cpp/tiny-llama/cpu/decode";

CellFacts facts() {
  CellFacts facts;
  facts.cell = *CellKey::parse(k_cell);
  facts.device = "cpu";
  facts.engine_source = "llama-bench";
  return facts;
}

// Builds a traced process with `threads` threads: 1600 + 58 n system calls, `waits` of them futex
// waits.
RunRecord traced(std::int64_t order, std::int64_t tokens, std::int64_t threads = 1,
                 std::int64_t waits = 0) {
  RunRecord record;
  record.cell = k_cell;
  record.pass = Pass::counted;
  record.counts = Counts::system_calls;
  record.order = order;
  record.parameters.tokens = tokens;
  record.report.emplace();
  record.report->generated_tokens = tokens;
  ProbeCounts probe;
  probe.probe = "host";
  probe.counts = {{"system_calls", 1600 + 58 * tokens},
                  {"memory_calls", 400 + tokens / 8},
                  {"futex_waits", waits},
                  {"futex_wakes", 117},
                  {"poll_calls", 0},
                  {"read_bytes", 336'604},
                  {"host_anonymous_peak_bytes", (22 << 20) + order * 4096},
                  {"threads_peak", threads}};
  probe.functions = {{"system call arch_prctl", 58 * tokens},
                     {"system call read", 1600},
                     {"system call futex wait", waits}};
  record.probes.push_back(probe);
  return record;
}

TEST(Host, CallsOfASingleThreadAreExact) {
  const Profile profile =
      assemble(facts(), std::vector{traced(0, 8), traced(1, 16), traced(2, 24)});
  EXPECT_THAT(profile.errors, IsEmpty());
  EXPECT_THAT(profile.warnings, IsEmpty());
  EXPECT_EQ(profile.metrics.at("system_calls_per_token").exact, Rational(58));
  EXPECT_EQ(profile.metrics.at("system_calls_fixed").exact, Rational(1600));
  EXPECT_EQ(profile.metrics.at("futex_waits_per_token").exact, Rational(0));
  EXPECT_EQ(profile.metrics.at("threads_peak").exact, Rational(1));
  EXPECT_EQ(profile.metrics.at("read_bytes_fixed").exact, Rational(336'604));
  const Measurement& memory = profile.metrics.at("host_anonymous_peak_bytes");
  EXPECT_EQ(memory.nature, Nature::sampled) << "the system counts pages roughly";
  EXPECT_EQ(memory.value(), (22 << 20) + 2 * 4096) << "of the longest run";
  EXPECT_EQ(profile.metrics.at("memory_calls_per_token").nature, Nature::sampled)
      << "how a heap grows is no matter of tokens alone";
  ASSERT_TRUE(profile.functions);
  EXPECT_EQ(profile.functions->counts,
            (std::map<std::string, Rational>{{"system call arch_prctl", 58}}));
  EXPECT_EQ(profile.counted_runs, 3);
}

TEST(Host, CallsThatWereTracedReplaceTheEnginesOwnWord) {
  RunRecord printed = traced(3, 8);
  printed.counts = Counts::device;
  printed.probes.clear();
  printed.report->counts = {{"system_calls_per_token", 3}};
  const Profile profile =
      assemble(facts(), std::vector{traced(0, 8), traced(1, 16), traced(2, 24), printed});
  EXPECT_EQ(profile.metrics.at("system_calls_per_token").exact, Rational(58));
  EXPECT_EQ(profile.metrics.at("system_calls_per_token").source, "host");
  EXPECT_THAT(profile.warnings,
              testing::Contains("system_calls_per_token: host counted 58, llama-bench says 3"));
}

TEST(Host, HowThreadsMeetIsSampledAndTheirOtherCallsAreExact) {
  const Profile profile = assemble(
      facts(), std::vector{traced(0, 8, 2, 31), traced(1, 16, 2, 83), traced(2, 24, 2, 111)});
  EXPECT_EQ(profile.metrics.at("system_calls_per_token").exact, Rational(58));
  const Measurement& waits = profile.metrics.at("futex_waits_per_token");
  EXPECT_EQ(waits.nature, Nature::sampled);
  EXPECT_DOUBLE_EQ(*waits.value(), 5);
  EXPECT_EQ(profile.functions->counts.at("system call futex wait"), Rational(5));
  EXPECT_THAT(profile.warnings, IsEmpty()) << "that they differ is no doubt";
}

TEST(Host, AnEngineThatCouldNotBeTracedLeavesItsOtherCounts) {
  RunRecord untraced = traced(3, 8);
  untraced.counts = Counts::device;
  untraced.probes.front().probe = "ggml";
  untraced.probes.front().counts = {{"graphs", 8}};
  untraced.probes.front().functions.clear();
  RunRecord refused = traced(0, 8);
  refused.probes.clear();
  refused.error = "could not be started: ptrace: Operation not permitted";
  const Profile profile = assemble(facts(), std::vector{refused, untraced});
  EXPECT_THAT(profile.errors,
              testing::ElementsAre("system calls: could not be started: ptrace: Operation not "
                                   "permitted"));
  EXPECT_TRUE(profile.metrics.contains("graphs_at_8"));
}

TEST(Host, WhatATimedProcessTookGoesIntoPairs) {
  std::vector<RunRecord> records;
  for (std::int64_t order = 0; order < 4; ++order) {
    RunRecord record;
    record.cell = k_cell;
    record.order = order;
    record.pair = order / 2;
    record.side = order % 2 == 0 ? Side::base : Side::candidate;
    record.parameters = {.tokens = 32, .repeats = 3};
    record.cpu_seconds = 2;
    record.system_usage = {order, 7, 1000, 0};
    record.report.emplace();
    // An engine's word for what weir measures is not taken.
    record.report->times.push_back({*unit::find_metric("minor_faults"), {1}});
    record.report->generated_tokens = 32;
    records.push_back(record);
  }
  const PairedRuns runs = paired_runs(facts(), records);
  const auto metric = [&](const std::string& name) {
    for (const PairedMetric& paired : runs.metrics) {
      if (paired.metric.name == name) return paired;
    }
    throw std::runtime_error(name);
  };
  const PairedMetric switches = metric("voluntary_switches");
  EXPECT_EQ(switches.metric.kind, unit::Kind::usage);
  EXPECT_EQ(switches.added, 96) << "one for each token";
  ASSERT_EQ(switches.pairs.size(), 1U);
  EXPECT_EQ(switches.pairs[0].base, 2);
  EXPECT_EQ(switches.pairs[0].candidate, 3);
  EXPECT_EQ(metric("process_cpu_seconds").added, 0);
  EXPECT_EQ(metric("minor_faults").warm_up.base, 1000);
}

// Makes a process of `tokens` tokens in which Python makes calls.
RunRecord with_python(std::int64_t order, std::int64_t tokens,
                      std::map<std::string, std::int64_t> counts) {
  RunRecord record = traced(order, tokens);
  record.counts = Counts::python;
  record.probes.front().probe = k_python;
  record.probes.front().counts = std::move(counts);
  record.probes.front().functions.clear();
  return record;
}

TEST(Host, AllCallsOfPythonAreExactNearALineOrShown) {
  const struct {
    const char* what;
    std::int64_t host_calls[3];
    Nature nature;
  } cases[] = {
      {"on a line", {800, 1600, 2400}, Nature::exact},
      {"the start differs a little", {800, 1601, 2399}, Nature::nearly_exact},
      {"threads meet differently", {800, 1900, 2400}, Nature::sampled},
  };
  for (const auto& c : cases) {
    std::vector<RunRecord> records;
    for (std::int64_t i = 0; i < 3; ++i)
      records.push_back(with_python(i, 8 * (i + 1), {{"host_calls", c.host_calls[i]}}));
    const Profile profile = assemble(facts(), records);
    EXPECT_THAT(profile.errors, IsEmpty()) << c.what;
    const Measurement& calls = profile.metrics.at("host_calls_per_token");
    EXPECT_EQ(calls.nature, c.nature) << c.what;
    EXPECT_NEAR(calls.value().value_or(0), 100, 1) << c.what;
  }
}

TEST(Host, CallsWithinImportsRiseOnlyIfEachTokenAddsSome) {
  const struct {
    std::int64_t import_calls[3];
    double rise;
    Nature nature;
  } cases[] = {
      {{4'958'558, 4'956'926, 4'959'100}, 0, Nature::exact},
      {{500, 500, 500}, 0, Nature::exact},
      {{500, 516, 532}, 2, Nature::exact},
      {{4'958'558, 4'966'926, 4'975'100}, 1034, Nature::nearly_exact},
  };
  for (const auto& c : cases) {
    std::vector<RunRecord> records;
    for (std::int64_t i = 0; i < 3; ++i)
      records.push_back(with_python(i, 8 * (i + 1), {{"import_calls", c.import_calls[i]}}));
    const Profile profile = assemble(facts(), records);
    const Measurement& calls = profile.metrics.at("import_calls_per_token");
    EXPECT_EQ(calls.nature, c.nature) << c.rise;
    EXPECT_NEAR(calls.value().value_or(-1), c.rise, 1);
  }
}

}  // namespace host_test
}  // namespace weir::profile
