// Pairs of timed processes.
#include "gate/profile/paired.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/json.hpp"

namespace weir::profile {
namespace paired_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* k_cell = "llama.cpp/tiny-llama/cpu/decode";

CellFacts facts() {
  CellFacts facts;
  facts.cell = *CellKey::parse(k_cell);
  facts.device = "cpu";
  facts.engine_source = "llama-bench";
  return facts;
}

RunRecord run(std::int64_t order, std::int64_t pair, Side side, std::vector<double> rates) {
  RunRecord record;
  record.cell = k_cell;
  record.order = order;
  record.pair = pair;
  record.side = side;
  record.parameters.tokens = 32;
  record.wall_seconds = 1;
  record.report.emplace();
  record.report->generated_tokens = 32;
  record.report->times.push_back(
      {*unit::find_metric("decode_tokens_per_second"), std::move(rates)});
  return record;
}

RunRecord ended(RunRecord record, Ended how) {
  record.ended = how;
  record.report.reset();
  record.error = how == Ended::timed_out ? "did not end within 2 s" : "crashed: SIGSEGV";
  return record;
}

std::vector<RunRecord> warm_up() {
  return {run(0, 0, Side::base, {90}), run(1, 0, Side::candidate, {80})};
}

// weir cannot tell a very small process's memory from its own; what it does not exceed is known.
TEST(PairedRuns, CompareTheMemoryOfASmallBaseByItsBound) {
  const auto with_memory = [](RunRecord record, std::optional<std::int64_t> bytes) {
    record.peak_rss_bytes = bytes;
    if (!bytes) record.peak_rss_bound = 6'000'000;
    return record;
  };
  std::vector<RunRecord> records{with_memory(run(0, 0, Side::base, {90}), std::nullopt),
                                 with_memory(run(1, 0, Side::candidate, {90}), 200'000'000),
                                 with_memory(run(2, 1, Side::candidate, {90}), 200'000'000),
                                 with_memory(run(3, 1, Side::base, {90}), std::nullopt)};
  const PairedRuns runs = paired_runs(facts(), records);
  ASSERT_THAT(runs.metrics, SizeIs(2));
  EXPECT_EQ(runs.metrics[1].metric.name, "peak_rss_bytes");
  EXPECT_EQ(runs.metrics[1].pairs[0].base, 6'000'000);
  EXPECT_EQ(runs.metrics[1].pairs[0].candidate, 200'000'000);
  for (RunRecord& record : records) record = with_memory(record, std::nullopt);
  EXPECT_THAT(paired_runs(facts(), records).metrics, SizeIs(1));
}

TEST(PairedRuns, TakesTheBestOfAProcesssRepeatsAndKeepsTheOrderOfThePair) {
  auto records = warm_up();
  records.push_back(run(2, 1, Side::candidate, {100, 103, 99}));
  records.push_back(run(3, 1, Side::base, {110, 105}));
  records.push_back(run(4, 2, Side::base, {108}));
  records.push_back(run(5, 2, Side::candidate, {101}));
  const PairedRuns runs = paired_runs(facts(), records);
  EXPECT_TRUE(runs.warm);
  EXPECT_EQ(runs.pairs, 2);
  EXPECT_EQ(runs.seconds, 6);
  EXPECT_FALSE(runs.error);
  ASSERT_THAT(runs.metrics, SizeIs(1));
  const PairedMetric& decode = runs.metrics[0];
  EXPECT_EQ(decode.warm_up.base, 90);
  ASSERT_THAT(decode.pairs, SizeIs(2));
  EXPECT_EQ(decode.pairs[0].base, 110);
  EXPECT_EQ(decode.pairs[0].candidate, 103);
  EXPECT_FALSE(decode.pairs[0].base_first);
  EXPECT_TRUE(decode.pairs[1].base_first);
}

TEST(PairedRuns, ServersBesideEachOtherTakeTheTimeOfBothOnce) {
  std::vector<RunRecord> records = {run(2, 1, Side::base, {100}), run(3, 1, Side::candidate, {99}),
                                    run(4, 2, Side::candidate, {98})};
  for (RunRecord& record : records) record.started_at = 1000;
  records[1].started_at = 1000.5;
  std::vector<const RunRecord*> all;
  for (const RunRecord& record : records) all.push_back(&record);
  EXPECT_DOUBLE_EQ(total_wall_seconds(all), 3);
  records[0].turns = {0, 3};
  records[1].turns = {1, 2};
  EXPECT_DOUBLE_EQ(total_wall_seconds(all), 1.5 + 1);  // 1000 … 1001.5, and the one alone
  records[1].started_at += 7200;  // resumed after a kill: the two did not overlap
  EXPECT_DOUBLE_EQ(total_wall_seconds(all), 3);
}

TEST(PairedRuns, HoldTheWorkThatTheBaseStatesAndWhatTheCandidateStatesOfIt) {
  using Tokens = std::optional<std::int64_t>;
  const struct {
    std::vector<Tokens> base, candidate;  // of each pair
    Tokens base_work, candidate_work;
  } cases[] = {
      {{32, 32}, {32, 32}, 32, 32},
      {{32, 32}, {1, 1}, 32, 1},
      {{32, 32}, {std::nullopt, std::nullopt}, 32, std::nullopt},
      {{std::nullopt, std::nullopt}, {32, 32}, std::nullopt, 32},
      {{32, 31}, {1, 1}, std::nullopt, std::nullopt},
      {{32, 32}, {32, 1}, 32, 1},
      {{32, 32}, {32, std::nullopt}, 32, std::nullopt},
  };
  for (const auto& c : cases) {
    auto records = warm_up();
    for (std::size_t i = 0; i < c.base.size(); ++i) {
      const auto pair = static_cast<std::int64_t>(i) + 1;
      records.push_back(run(2 * pair, pair, Side::base, {100}));
      records.back().report->prompt_tokens = c.base[i];
      records.push_back(run(2 * pair + 1, pair, Side::candidate, {100}));
      records.back().report->prompt_tokens = c.candidate[i];
    }
    const PairedRuns runs = paired_runs(facts(), records);
    EXPECT_EQ(runs.base_work.prompt_tokens, c.base_work);
    EXPECT_EQ(runs.candidate_work.prompt_tokens, c.candidate_work);
  }
}

TEST(PairedRuns, HoldHowManyValuesEachSidePrintedWhereTheBasesRunsAgree) {
  using Number = std::optional<std::int64_t>;
  const struct {
    std::vector<Number> base, candidate;  // of each pair
    Number base_printed, candidate_printed;
  } cases[] = {
      {{3, 3}, {3, 3}, 3, 3},
      {{3, 3}, {3, 9}, 3, 9},
      {{3, 3}, {3, std::nullopt}, 3, std::nullopt},
      {{3, 4}, {9, 9}, std::nullopt, std::nullopt},
      {{3, std::nullopt}, {9, 9}, std::nullopt, std::nullopt},
      {{std::nullopt, std::nullopt}, {3, 3}, std::nullopt, std::nullopt},
  };
  constexpr const char* k_name = "decode_tokens_per_second";
  const auto with_printed = [&](RunRecord record, Number printed) {
    if (printed) record.report->printed_values[k_name] = *printed;
    return record;
  };
  const auto printed_of = [&](const WorkDone& work) {
    const auto entry = work.printed_values.find(k_name);
    return entry == work.printed_values.end() ? Number() : Number(entry->second);
  };
  for (const auto& c : cases) {
    auto records = warm_up();
    for (std::size_t i = 0; i < c.base.size(); ++i) {
      const auto pair = static_cast<std::int64_t>(i) + 1;
      records.push_back(with_printed(run(2 * pair, pair, Side::base, {100}), c.base[i]));
      records.push_back(
          with_printed(run(2 * pair + 1, pair, Side::candidate, {100}), c.candidate[i]));
    }
    const PairedRuns runs = paired_runs(facts(), records);
    EXPECT_EQ(printed_of(runs.base_work), c.base_printed);
    EXPECT_EQ(printed_of(runs.candidate_work), c.candidate_printed);
  }
}

TEST(PairedRuns, ListMetricsThatTheCandidateLeavesOutAsMissing) {
  auto records = warm_up();
  records.push_back(run(2, 1, Side::base, {100}));
  records.push_back(run(3, 1, Side::candidate, {100}));
  for (RunRecord& record : records) {
    if (record.side == Side::candidate) record.report->times.front().samples.clear();
  }
  PairedRuns runs = paired_runs(facts(), records);
  EXPECT_THAT(runs.metrics, IsEmpty());
  ASSERT_THAT(runs.missing, SizeIs(1));
  EXPECT_TRUE(runs.missing[0].warm_up.base);
  EXPECT_FALSE(runs.missing[0].warm_up.candidate);
  // A warm-up that failed leaves nothing out.
  for (RunRecord& record : records) {
    if (record.side == Side::candidate && record.pair == 0) record = ended(record, Ended::signaled);
  }
  runs = paired_runs(facts(), records);
  EXPECT_THAT(runs.missing, IsEmpty());
}

TEST(PairedRuns, APairWithoutItsSecondProcessIsNoneYet) {
  auto records = warm_up();
  records.push_back(run(2, 1, Side::candidate, {100}));
  const PairedRuns runs = paired_runs(facts(), records);
  EXPECT_EQ(runs.pairs, 0);
  EXPECT_THAT(runs.metrics.at(0).pairs, IsEmpty());
}

TEST(PairedRuns, ATimeOutAndOneCrashAreInfinitelySlowAndToldAndNoPairIsDropped) {
  auto records = warm_up();
  records.push_back(ended(run(2, 1, Side::candidate, {1}), Ended::timed_out));
  records.push_back(run(3, 1, Side::base, {100}));
  records.push_back(run(4, 2, Side::candidate, {100}));
  records.push_back(ended(run(5, 2, Side::base, {1}), Ended::signaled));
  const PairedRuns runs = paired_runs(facts(), records);
  EXPECT_FALSE(runs.error);
  ASSERT_THAT(runs.metrics.at(0).pairs, SizeIs(2));
  EXPECT_FALSE(runs.metrics[0].pairs[0].candidate);
  EXPECT_EQ(runs.metrics[0].pairs[0].base, 100);
  EXPECT_FALSE(runs.metrics[0].pairs[1].base);
  ASSERT_THAT(runs.warnings, SizeIs(2));
  EXPECT_THAT(runs.warnings[0], HasSubstr("pair 1 of the candidate counts as infinitely slow: "));
  EXPECT_THAT(runs.warnings[1],
              HasSubstr("pair 2 of the base program counts as infinitely slow: crashed"));
}

TEST(PairedRuns, KeepTheLastWordsOfTheProcessWhoseErrorItIs) {
  auto records = warm_up();
  const auto add = [&](std::int64_t pair, Side side, Ended how, const char* words) {
    const Side opposite = side == Side::base ? Side::candidate : Side::base;
    records.push_back(ended(run(2 * pair, pair, side, {1}), how));
    records.back().stderr_tail = words;
    records.push_back(run(2 * pair + 1, pair, opposite, {100}));
  };
  add(1, Side::candidate, Ended::signaled, "the candidate's first");
  add(2, Side::base, Ended::signaled, "the base's");
  EXPECT_EQ(paired_runs(facts(), records).stderr_tail, "") << "one crash a side is no error";
  add(3, Side::candidate, Ended::signaled, "the candidate's second");
  add(4, Side::candidate, Ended::timed_out, "a time-out");
  add(5, Side::base, Ended::timed_out, "the base's time-out");
  const PairedRuns runs = paired_runs(facts(), records);
  ASSERT_TRUE(runs.error);
  EXPECT_THAT(*runs.error, HasSubstr("the candidate failed in 2 of its processes: crashed"));
  EXPECT_EQ(runs.stderr_tail, "the candidate's second");
  EXPECT_THAT(runs.warnings, testing::Each(testing::Not(HasSubstr(": crashed"))))
      << "the error gives that reason";
}

struct Case {
  const char* name;
  std::vector<std::pair<Side, Ended>> failures;  // one per pair
  const char* error;                             // "": the cell goes on
};

TEST(PairedRuns, GivesUpNamingTheSideThatHangsOrCrashes) {
  const Case cases[] = {
      {"one crash", {{Side::base, Ended::signaled}}, ""},
      {"two crashes",
       {{Side::base, Ended::signaled}, {Side::base, Ended::signaled}},
       "the base program failed in 2"},
      {"a crash on each side",
       {{Side::base, Ended::signaled}, {Side::candidate, Ended::signaled}},
       ""},
      {"two time-outs",
       {{Side::candidate, Ended::timed_out}, {Side::candidate, Ended::timed_out}},
       ""},
      {"three time-outs",
       {{Side::candidate, Ended::timed_out},
        {Side::candidate, Ended::timed_out},
        {Side::candidate, Ended::timed_out}},
       "the candidate timed out 3 times, the base program never"},
      {"three and one",
       {{Side::candidate, Ended::timed_out},
        {Side::base, Ended::timed_out},
        {Side::candidate, Ended::timed_out},
        {Side::candidate, Ended::timed_out}},
       ""},
  };
  for (const Case& entry : cases) {
    SCOPED_TRACE(entry.name);
    auto records = warm_up();
    std::int64_t order = 2, pair = 1;
    for (const auto& [side, how] : entry.failures) {
      const Side opposite = side == Side::base ? Side::candidate : Side::base;
      records.push_back(ended(run(order++, pair, side, {1}), how));
      records.push_back(run(order++, pair++, opposite, {100}));
    }
    const PairedRuns runs = paired_runs(facts(), records);
    if (*entry.error == '\0') {
      EXPECT_FALSE(runs.error) << *runs.error;
    } else {
      ASSERT_TRUE(runs.error);
      EXPECT_THAT(*runs.error, HasSubstr(entry.error));
    }
  }
}

TEST(PairedRuns, AWarmUpMayFailOnce) {
  auto records = warm_up();
  records[1] = ended(records[1], Ended::signaled);
  PairedRuns runs = paired_runs(facts(), records);
  EXPECT_THAT(runs.warm_up_failed, ElementsAre(Side::candidate));
  EXPECT_FALSE(runs.error);
  records.push_back(run(2, 0, Side::candidate, {80}));
  runs = paired_runs(facts(), records);
  EXPECT_THAT(runs.warm_up_failed, IsEmpty());
  EXPECT_THAT(runs.metrics, SizeIs(1));
  records.back() = ended(records.back(), Ended::timed_out);
  runs = paired_runs(facts(), records);
  ASSERT_TRUE(runs.error);
  EXPECT_THAT(*runs.error, HasSubstr("the candidate failed in its warm-up, twice: did not end"));
}

TEST(PairedRuns, TellsWhatTheMachineDidWhileAProcessTookFarLonger) {
  auto records = warm_up();
  for (std::int64_t pair = 1; pair <= 5; ++pair) {
    records.push_back(run(2 * pair, pair, Side::base, {100}));
    records.push_back(run(2 * pair + 1, pair, Side::candidate, {100}));
  }
  EXPECT_THAT(paired_runs(facts(), records).notes, IsEmpty());
  records[5].wall_seconds = 3;  // pair 2, the candidate
  EXPECT_THAT(paired_runs(facts(), records).notes, IsEmpty()) << "nothing explains it";
  records[5].machine = {.steal_share = 0.3, .other_load = 6, .major_faults = 4000};
  EXPECT_THAT(paired_runs(facts(), records).notes,
              ElementsAre("1 of 5 processes of the candidate took over 1.5 x the usual time: the "
                          "hypervisor took up to 30 % of the processors in 1; other programs ran "
                          "during 1 (load average up to 6.0, usually 0.0); pages had to be read "
                          "from disk again in 1"));
}

TEST(PairedRuns, LeavesTheSamplesOfEachSideToItsProfile) {
  auto records = warm_up();
  records.push_back(run(2, 1, Side::candidate, {100}));
  records.push_back(run(3, 1, Side::base, {110}));
  records.push_back(ended(run(4, 2, Side::candidate, {1}), Ended::signaled));
  records.push_back(run(5, 2, Side::base, {111}));
  const Profile candidate = assemble(facts(), records);
  const Profile base = assemble(facts(), records, Side::base);
  EXPECT_EQ(candidate.metrics.at("decode_tokens_per_second").samples, std::vector<double>{100});
  EXPECT_EQ(base.metrics.at("decode_tokens_per_second").samples, (std::vector<double>{110, 111}));
  EXPECT_THAT(candidate.errors, IsEmpty());
}

TEST(PairedRuns, SurvivesTheJournal) {
  RunRecord record = run(2, 7, Side::base, {100});
  const auto read = read_fields<RunRecord>(write_fields(record), "record");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, record);
  Json wrong = write_fields(record);
  wrong["side"] = "left";
  EXPECT_FALSE(read_fields<RunRecord>(wrong, "record"));
  wrong = write_fields(record);
  wrong["pair"] = -1;
  EXPECT_FALSE(read_fields<RunRecord>(wrong, "record"));
}

}  // namespace paired_test
}  // namespace weir::profile
