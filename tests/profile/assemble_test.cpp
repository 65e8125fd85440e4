// Profiles assembled from records.
#include "gate/profile/assemble.hpp"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/json.hpp"

namespace weir::profile {
namespace assemble_test {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* k_cell = "llama.cpp/tiny-llama/vulkan/decode";

CellFacts facts(Sweep sweep = Sweep::tokens) {
  CellFacts facts;
  facts.cell = *CellKey::parse(k_cell);
  facts.device = "vulkan";
  facts.sweep = sweep;
  facts.engine_source = "llama-bench";
  return facts;
}

// Builds a counted run as the Vulkan probe and llama-bench report it. Counts such as `dispatches`
// are over the whole process.
RunRecord counted(std::int64_t order, std::int64_t tokens, std::int64_t dispatches,
                  std::map<std::string, std::int64_t> more = {}) {
  RunRecord record;
  record.cell = k_cell;
  record.pass = Pass::counted;
  record.order = order;
  record.parameters.tokens = tokens;
  record.report.emplace();
  record.report->generated_tokens = tokens;
  ProbeCounts probe;
  probe.probe = "vulkan";
  probe.devices = {{"vulkan", "llvmpipe", "cpu", "vulkan-10005-0-d-1-0a"}};
  probe.counts = std::move(more);
  probe.counts["dispatches"] = dispatches;
  probe.kernels = {{"mul", dispatches - 3}, {"load", 3}};
  probe.kernels_named = true;
  record.probes.push_back(probe);
  return record;
}

RunRecord timed(std::int64_t order, std::vector<double> rates, std::int64_t rss = 1000) {
  RunRecord record;
  record.cell = k_cell;
  record.pass = Pass::timed;
  record.order = order;
  record.parameters.tokens = 32;
  record.parameters.repeats = static_cast<std::int64_t>(rates.size());
  record.peak_rss_bytes = rss;
  record.report.emplace();
  record.report->generated_tokens = 32;
  record.report->times.push_back(
      {*unit::find_metric("decode_tokens_per_second"), std::move(rates)});
  return record;
}

std::optional<Rational> exact(const Profile& profile, const char* name) {
  const auto match = profile.metrics.find(name);
  return match == profile.metrics.end() ? std::nullopt : match->second.exact;
}

// Reference of the tiny llama model on lavapipe: 65 + 65n dispatches and 46 + 46n barriers. Each
// token has one sync, and so has the warm-up.
std::vector<RunRecord> reference() {
  std::vector<RunRecord> records;
  std::int64_t order = 0;
  for (const std::int64_t n : {8, 16, 24}) {
    records.push_back(
        counted(order++, n, 65 + 65 * n, {{"barriers", 46 + 46 * n}, {"syncs", 1 + n}}));
  }
  return records;
}

TEST(Assemble, FindsCountsPerTokenAndThoseOfTheStart) {
  const Profile profile = assemble(facts(), reference());
  EXPECT_EQ(exact(profile, "dispatches_per_token"), Rational(65));
  EXPECT_EQ(exact(profile, "dispatches_fixed"), Rational(65));
  EXPECT_EQ(exact(profile, "barriers_per_token"), Rational(46));
  EXPECT_EQ(exact(profile, "barriers_fixed"), Rational(46));
  EXPECT_EQ(exact(profile, "syncs_per_token"), Rational(1));
  EXPECT_EQ(exact(profile, "syncs_fixed"), Rational(1));
  EXPECT_EQ(exact(profile, "copies_per_token"), Rational(0)) << "a zero that was counted is a fact";
  EXPECT_FALSE(profile.metrics.contains("waits_per_token"));
  EXPECT_EQ(profile.metrics.at("dispatches_per_token").nature, Nature::exact);
  EXPECT_EQ(profile.metrics.at("dispatches_per_token").source, "vulkan");
  EXPECT_EQ(profile.placement.state, Placement::State::seen);
  EXPECT_EQ(profile.provenance.device_class, "vulkan-10005-0-d-1-0a");
  EXPECT_EQ(profile.provenance.device_name, "llvmpipe");
  EXPECT_THAT(profile.provenance.lengths, ElementsAre(8, 16, 24));
  EXPECT_EQ(profile.work.generated_tokens, 24);
  EXPECT_THAT(profile.errors, IsEmpty());
  EXPECT_THAT(profile.warnings, IsEmpty());
}

TEST(Assemble, CountsKernelsByTheSameLineAndLeavesOutThoseOfTheStart) {
  const Profile profile = assemble(facts(), reference());
  ASSERT_TRUE(profile.kernels);
  EXPECT_TRUE(profile.kernels->has_names);
  EXPECT_EQ(profile.kernels->scope, unit::Scope::per_token);
  EXPECT_EQ(profile.kernels->counts, (std::map<std::string, Rational>{{"mul", 65}}));
}

TEST(Assemble, DoesNotDependOnTheOrderOfTheRecords) {
  std::vector<RunRecord> records = reference();
  records.push_back(timed(3, {10, 12}));
  records.push_back(timed(4, {11, 9}));
  const std::string dumped = dump_json(write_fields(assemble(facts(), records)));
  std::reverse(records.begin(), records.end());
  EXPECT_EQ(dump_json(write_fields(assemble(facts(), records))), dumped);
}

TEST(Assemble, PassesOverRecordsOfOtherCells) {
  std::vector<RunRecord> records = reference();
  RunRecord foreign = counted(9, 8, 1);
  foreign.cell = "other/m/b/p";
  records.push_back(foreign);
  EXPECT_EQ(exact(assemble(facts(), records), "dispatches_per_token"), Rational(65));
}

// Four requests of 8 tokens each share batches at random: 16 dispatches a token, then 18.
TEST(Assemble, DividesCountsOfOverlappingRequestsByAllTheirTokens) {
  std::vector<RunRecord> records{counted(0, 8, 512), counted(1, 8, 576)};
  for (RunRecord& record : records) record.parameters.repeats = 4;
  const Profile profile = assemble(facts(Sweep::overlapping), records);
  EXPECT_THAT(profile.errors, IsEmpty());
  const Measurement& measured = profile.metrics.at("dispatches_per_token");
  EXPECT_EQ(measured.nature, Nature::nearly_exact);
  EXPECT_THAT(measured.samples, ElementsAre(16, 18));
  EXPECT_NEAR(measured.relative_spread.value_or(0), 2.0 / 17, 1e-12);  // (18 − 16) / median
  EXPECT_FALSE(profile.metrics.contains("dispatches_fixed"));
  EXPECT_FALSE(profile.kernels) << "which kernels run depends on how requests meet";
}

// The same requests, all queued before the first one is computed.
TEST(Assemble, TakesCountsOfHeldRequestsAsExactWhereTheyAgree) {
  std::vector<RunRecord> records{counted(0, 8, 512), counted(1, 8, 512)};
  for (RunRecord& record : records) {
    record.parameters.repeats = 4;
    record.held = 4;
  }
  const auto measured = [&] {
    return assemble(facts(Sweep::burst), records).metrics.at("dispatches_per_token");
  };
  EXPECT_EQ(measured().exact, Rational(16));
  records[0].probes[0].counts["dispatches"] = 528;
  EXPECT_EQ(measured().nature, Nature::nearly_exact);
  EXPECT_NEAR(measured().relative_spread.value_or(0), 0.5 / 16.25, 1e-12) << "16 and 16.5";
  records[0].probes[0].counts["dispatches"] = 512;
  records[1].held.reset();
  EXPECT_EQ(measured().nature, Nature::nearly_exact) << "one was not held";
  EXPECT_EQ(measured().relative_spread, 0.02);
}

// Work of requests to a server, in all: a prompt by "mul_mat" and tokens by "mul_vec", of one
// request alone at each length and of a burst.
TEST(Assemble, TakesTheKernelsOfRequestsWithThoseOfTheirPrompts) {
  const auto ran = [](std::int64_t order, std::int64_t tokens, std::int64_t prompts,
                      std::int64_t steps) {
    RunRecord record = counted(order, tokens, 9 * prompts + 5 * steps);
    ProbeCounts& probe = record.probes[0];
    probe.kernels = {{"mul_mat", 9 * prompts}, {"mul_vec", 5 * steps}};
    probe.codes = {{"mul_mat@01", 9 * prompts}, {"mul_vec@02", 5 * steps}};
    probe.code_groups = {{"mul_mat@01", 90 * prompts}, {"mul_vec@02", 10 * steps}};
    return record;
  };
  RunRecord burst = ran(0, 8, 3, 16), again = ran(1, 8, 3, 16);
  for (RunRecord* run_record : {&burst, &again}) {
    run_record->parameters.repeats = 4;
    run_record->held = 4;
  }
  using Kernels = std::map<std::string, Rational>;
  const struct {
    const char* what;
    Sweep sweep;
    std::vector<RunRecord> records;
    unit::Scope scope;
    Kernels kernels;
    const char* total;  // metric that they add up to
  } cases[] = {
      {"one alone",
       Sweep::request,
       {ran(0, 4, 1, 3), ran(1, 8, 1, 7), ran(2, 12, 1, 11)},
       unit::Scope::per_request,
       {{"mul_mat", 9}, {"mul_vec", 55}},
       "dispatches_per_request"},
      {"one alone, on no line",
       Sweep::request,
       {ran(0, 4, 1, 3), ran(1, 8, 1, 7), ran(2, 12, 2, 11)},
       unit::Scope::per_request,
       {{"mul_mat", 18}, {"mul_vec", 55}},
       "dispatches_per_request"},
      {"a burst of 32 tokens",
       Sweep::burst,
       {burst, again},
       unit::Scope::per_token,
       {{"mul_mat", *Rational::make(27, 32)}, {"mul_vec", *Rational::make(80, 32)}},
       "dispatches_per_token"},
  };
  for (const auto& c : cases) {
    const Profile profile = assemble(facts(c.sweep), c.records);
    EXPECT_THAT(profile.errors, IsEmpty()) << c.what;
    ASSERT_TRUE(profile.kernels && profile.codes && profile.code_groups) << c.what;
    EXPECT_TRUE(profile.kernels->has_names) << c.what;
    EXPECT_FALSE(profile.kernels->runs_disagree) << c.what;
    EXPECT_EQ(profile.kernels->scope, c.scope) << c.what;
    EXPECT_EQ(profile.kernels->counts, c.kernels) << c.what;
    EXPECT_EQ(profile.codes->counts.at("mul_mat@01"), c.kernels.at("mul_mat")) << c.what;
    EXPECT_EQ(profile.code_groups->scope, c.scope) << c.what;
    EXPECT_EQ(exact(profile, c.total), profile.kernels->sum()) << c.what;
  }
  EXPECT_EQ(exact(assemble(facts(Sweep::request), cases[0].records), "dispatches_per_token"),
            Rational(5));
}

TEST(Assemble, ComparesNoKernelsOfABurstThatDisagreesOrWasNotHeld) {
  std::vector<RunRecord> records{counted(0, 8, 512), counted(1, 8, 512)};
  for (RunRecord& record : records) record.held = record.parameters.repeats = 4;
  records[1].probes[0].kernels = {{"mul", 508}, {"load", 4}};
  EXPECT_TRUE(assemble(facts(Sweep::burst), records).kernels->runs_disagree);
  records[1].held.reset();
  EXPECT_FALSE(assemble(facts(Sweep::burst), records).kernels);
}

// Only the last run counts; a graph whose rows are not known is in no batch.
TEST(Assemble, KeepsTheSizesOfBatchesWhereRequestsShareThem) {
  std::vector<RunRecord> records{counted(0, 8, 512), counted(1, 8, 512)};
  records[0].probes[0].graphs = {{.rows = 9, .computed = 1}};
  records[1].probes[0].graphs = {{.rows = 4, .computed = 70},
                                 {.rows = 4, .computed = 2},
                                 {.rows = 36, .computed = 2},
                                 {.rows = 0, .computed = 5}};
  EXPECT_EQ(assemble(facts(Sweep::overlapping), records).batches,
            (std::map<std::int64_t, std::int64_t>{{4, 72}, {36, 2}}));
  EXPECT_TRUE(assemble(facts(), records).batches.empty()) << "one request at a time";
  records[1].probes[0].graphs[0].computed = std::numeric_limits<std::int64_t>::max();
  records[1].probes[0].graphs[3] = {.rows = 36, .computed = -1};
  EXPECT_EQ(assemble(facts(Sweep::overlapping), records).batches,
            (std::map<std::int64_t, std::int64_t>{{4, std::numeric_limits<std::int64_t>::max()},
                                                  {36, 2}}))
      << "a file may say what no sum can hold";
}

// A server's own counts are whole numbers: of loads of several lengths, the longest.
TEST(Assemble, TakesTheSharesThatAServerReports) {
  std::vector<RunRecord> records{counted(0, 4, 40), counted(1, 8, 80), counted(2, 12, 120)};
  for (RunRecord& record : records) {
    record.report->shares["draft_acceptance"] =
        record.parameters.tokens == 12 ? *Rational::make(9, 12) : Rational(1);
  }
  EXPECT_EQ(exact(assemble(facts(), records), "draft_acceptance"), *Rational::make(3, 4));
}

TEST(Assemble, TakesTheEnginesOwnCountersWhereAProbeSawNoWork) {
  std::vector<RunRecord> records{counted(0, 4, 0), counted(1, 8, 0), counted(2, 12, 0)};
  for (RunRecord& record : records) {
    record.probes[0].kernels.clear();
    record.report->shares["dispatches_per_token"] = 690;
  }
  const Profile profile = assemble(facts(), records);
  EXPECT_EQ(exact(profile, "dispatches_per_token"), Rational(690));
  EXPECT_EQ(exact(profile, "barriers_per_token"), std::nullopt) << "nobody counted them";
  EXPECT_THAT(profile.warnings, Contains(HasSubstr("the vulkan probe saw no work")));
}

TEST(Assemble, CountsNoneOfARoleInARunThatItDidNotWorkIn) {
  std::vector<RunRecord> records{counted(0, 4, 40), counted(1, 8, 80), counted(2, 12, 120)};
  for (RunRecord& record : records) {
    if (record.parameters.tokens == 4) continue;
    ProbeCounts draft;
    draft.probe = probe_of_role("vulkan", "draft");
    draft.counts = {{"dispatches", record.parameters.tokens - 4}, {"processes", 2}};
    record.probes.push_back(draft);
  }
  const Profile profile = assemble(facts(), records);
  EXPECT_EQ(exact(profile, "draft:dispatches_per_token"), Rational(1));
  EXPECT_EQ(exact(profile, "draft:processes"), Rational(2));
}

TEST(Assemble, ComparesCountsThatTheEnginePrintsInAllItsProcesses) {
  const struct {
    const char* what;
    std::vector<std::int64_t> counted, timed;
    bool asks_for_the_same, is_server;
    std::optional<std::int64_t> exact;
  } cases[] = {
      {"all agree", {30}, {30, 30}, true, false, 30},
      {"the timed ones disagree", {30}, {30, 90, 30}, true, false, std::nullopt},
      {"none is as the counted one", {30}, {90, 90}, true, false, std::nullopt},
      {"another request", {30}, {90, 90}, false, false, 30},
      {"another request, and they disagree", {30}, {90, 30}, false, false, std::nullopt},
      {"the counted ones disagree", {30, 90}, {}, true, false, std::nullopt},
      {"only timed ones print it", {}, {30, 90}, true, false, std::nullopt},
      {"a server's load is another one", {30}, {30, 90}, true, true, 30},
  };
  for (const bool is_share : {false, true}) {
    for (const bool has_probe : {false, true}) {
      for (const auto& c : cases) {
        std::vector<RunRecord> records;
        const auto add = [&](RunRecord record, std::int64_t dispatches) {
          record.order = static_cast<std::int64_t>(records.size());
          if (is_share) {
            record.report->shares["dispatches_per_token"] = dispatches;
          } else {
            record.report->counts["dispatches_per_token"] = dispatches;
          }
          records.push_back(std::move(record));
        };
        for (const std::int64_t dispatches : c.counted) add(counted(0, 32, 960), dispatches);
        // A probe counts over three lengths.
        for (const std::int64_t tokens : {8, 16, 32}) {
          if (has_probe && c.counted.size() == 1) add(counted(0, tokens, 30 * tokens), 30);
        }
        for (const std::int64_t dispatches : c.timed) {
          RunRecord record = timed(0, {100});
          if (!c.asks_for_the_same) record.parameters.prompt_tokens = 8;
          if (c.is_server) record.report->requests = 4;
          add(record, dispatches);
        }
        const Sweep sweep = has_probe ? Sweep::tokens : Sweep::none;
        const Profile profile = assemble(facts(sweep), records);
        EXPECT_EQ(exact(profile, "dispatches_per_token"),
                  c.exact ? std::optional(Rational(*c.exact)) : std::nullopt)
            << fmt::format("{}, share {}, probe {}", c.what, is_share, has_probe);
      }
    }
  }
}

TEST(Assemble, SaysInHowManyProcessesACountIsWhat) {
  std::vector<RunRecord> records{counted(0, 32, 96)};
  records[0].report->counts["dispatches_per_token"] = 3;
  for (std::int64_t order = 1; order < 5; ++order) {
    records.push_back(timed(order, {100}));
    records.back().report->counts["dispatches_per_token"] = order == 4 ? 9 : 3;
  }
  EXPECT_THAT(assemble(facts(Sweep::none), records).warnings,
              Contains("dispatches/token differs between runs of one build: 3 in 4, 9 in 1"));
}

TEST(Assemble, TakesSharesOfMetricsThatAreDeclared) {
  std::vector<RunRecord> records{counted(0, 4, 40), counted(1, 8, 80)};
  const unit::Metric own =
      unit::custom_metric("evictions", unit::Kind::count, unit::Unit::count, unit::Better::lower);
  for (RunRecord& record : records) {
    record.report->shares["evictions"] = *Rational::make(3, 2);
    record.report->count_metrics["evictions"] = own;
  }
  const Profile profile = assemble(facts(), records);
  EXPECT_EQ(profile.metrics.at("evictions").metric, own);
  EXPECT_EQ(exact(profile, "evictions"), *Rational::make(3, 2));
}

// Ten runs of 512 tokens. Without the lowest and the highest, they span 128 to 136 with a median of
// 132.
TEST(Assemble, LeavesTheFarthestRunsOutOfHowFarBatchesRepeat) {
  std::vector<RunRecord> records;
  for (const std::int64_t graphs : {128, 132, 132, 130, 132, 134, 132, 136, 420, 100}) {
    records.push_back(counted(static_cast<std::int64_t>(records.size()), 512, graphs));
  }
  const Measurement measured =
      assemble(facts(Sweep::overlapping), records).metrics.at("dispatches_per_token");
  EXPECT_EQ(measured.samples.size(), 10U);
  EXPECT_NEAR(measured.value().value_or(0), 132.0 / 512, 1e-12);
  EXPECT_NEAR(measured.relative_spread.value_or(0), 8.0 / 132, 1e-12);

  for (RunRecord& record : records) record = counted(record.order, 512, 132);
  EXPECT_EQ(assemble(facts(Sweep::overlapping), records)
                .metrics.at("dispatches_per_token")
                .relative_spread,
            0.02)
      << "that ten runs met in the same way does not say that the next will";
}

TEST(Assemble, FitsPrefillOverRepeats) {
  std::vector<RunRecord> records;
  for (const std::int64_t repeats : {1, 2, 3}) {
    RunRecord record = counted(repeats, 0, 70 + 68 * repeats);
    record.parameters.repeats = repeats;
    records.push_back(record);
  }
  const Profile profile = assemble(facts(Sweep::repeats), records);
  EXPECT_EQ(exact(profile, "dispatches_per_prefill"), Rational(68));
  EXPECT_EQ(exact(profile, "dispatches_fixed"), Rational(70));
  EXPECT_THAT(profile.provenance.lengths, ElementsAre(1, 2, 3));
}

TEST(Assemble, KeepsFractionsExact) {
  // Every second token costs one dispatch more: 66.5 a token, as the lengths are even.
  const std::vector<RunRecord> records = {counted(0, 8, 10 + 532), counted(1, 16, 10 + 1064),
                                          counted(2, 24, 10 + 1596)};
  EXPECT_EQ(exact(assemble(facts(), records), "dispatches_per_token"), Rational::make(133, 2));
}

TEST(Assemble, FitsOverTokensReallyGenerated) {
  std::vector<RunRecord> records = {counted(0, 8, 65 + 65 * 7), counted(1, 16, 65 + 65 * 15),
                                    counted(2, 24, 65 + 65 * 23)};
  for (RunRecord& record : records) *record.report->generated_tokens -= 1;
  const Profile profile = assemble(facts(), records);
  EXPECT_EQ(exact(profile, "dispatches_per_token"), Rational(65));
  EXPECT_EQ(exact(profile, "dispatches_fixed"), Rational(65));
  EXPECT_THAT(profile.errors, IsEmpty());
  EXPECT_THAT(profile.warnings, ElementsAre(HasSubstr("generated 7, 15, 23")));
}

TEST(Assemble, CanNotFitWhereTheEngineAlwaysStopsAtTheSameToken) {
  std::vector<RunRecord> records = reference();
  for (RunRecord& record : records) record.report->generated_tokens = 5;
  const Profile profile = assemble(facts(), records);
  EXPECT_THAT(profile.errors, ElementsAre(HasSubstr("asked for 8, 16, 24 tokens, generated 5")));
  EXPECT_TRUE(profile.metrics.empty());
}

TEST(Assemble, SaysThatLengthsAreThoseAskedForWhereTheEngineIsSilent) {
  std::vector<RunRecord> records = reference();
  for (RunRecord& record : records) record.report->generated_tokens.reset();
  const Profile profile = assemble(facts(), records);
  EXPECT_EQ(exact(profile, "dispatches_per_token"), Rational(65));
  EXPECT_THAT(profile.warnings, ElementsAre(HasSubstr("does not report how many tokens")));
}

TEST(Assemble, ComparesEachLengthAloneWhereThereIsNoStraightLine) {
  const std::vector<RunRecord> records = {counted(0, 8, 585), counted(1, 16, 1105),
                                          counted(2, 24, 1700)};
  const Profile profile = assemble(facts(), records);
  EXPECT_FALSE(profile.metrics.contains("dispatches_per_token"));
  EXPECT_EQ(exact(profile, "dispatches_at_8"), Rational(585));
  EXPECT_EQ(exact(profile, "dispatches_at_16"), Rational(1105));
  EXPECT_EQ(exact(profile, "dispatches_at_24"), Rational(1700));
  EXPECT_EQ(exact(profile, "barriers_per_token"), Rational(0)) << "the others keep their line";
  EXPECT_THAT(profile.warnings, testing::Contains(HasSubstr("dispatches: no straight line")));
  ASSERT_TRUE(profile.kernels);
  EXPECT_EQ(profile.kernels->scope, unit::Scope::at_length);
  EXPECT_EQ(profile.kernels->length, 24);
  EXPECT_EQ(profile.kernels->counts.at("mul"), Rational(1697));
  EXPECT_FALSE(profile.kernels->runs_disagree) << "no line, and still the same in every run";
}

TEST(Assemble, TakesWhatIsThereAtOnceFromTheLongestRun) {
  std::vector<RunRecord> records = reference();
  for (RunRecord& record : records) {
    // Memory grows in steps, like a cache that is allocated for several tokens at a time.
    record.probes[0].counts["device_memory_peak_bytes"] =
        record.parameters.tokens == 24 ? 7'500'000 : 7'000'000;
  }
  const Profile profile = assemble(facts(), records);
  EXPECT_EQ(exact(profile, "device_memory_peak_bytes"), Rational(7'500'000));
  EXPECT_THAT(profile.warnings, testing::Not(testing::Contains(HasSubstr("straight line"))));

  records.push_back(records.back());
  records.back().probes[0].counts["device_memory_peak_bytes"] = 7'500'512;
  const Profile varies = assemble(facts(), records);
  EXPECT_EQ(varies.metrics.at("device_memory_peak_bytes").nature, Nature::nearly_exact);
}

TEST(Assemble, NamesTheProbeOfAWarningOnce) {
  std::vector<RunRecord> records = reference();
  records[0].probes[0].warnings = {"vulkan probe in engine: more queues than it can keep apart",
                                   "cut short"};
  const Profile profile = assemble(facts(), records);
  EXPECT_THAT(profile.warnings,
              testing::IsSupersetOf({"vulkan probe in engine: more queues than it can keep apart",
                                     "vulkan probe: cut short"}));
}

TEST(Assemble, StaysExactWhenFreshProcessesAgree) {
  std::vector<RunRecord> records;
  for (int round = 0; round < 3; ++round) {
    for (RunRecord record : reference()) {
      record.order = static_cast<std::int64_t>(records.size());
      records.push_back(record);
    }
  }
  const Profile profile = assemble(facts(), records);
  EXPECT_EQ(exact(profile, "dispatches_per_token"), Rational(65));
  EXPECT_EQ(profile.counted_runs, 9);
}

TEST(Assemble, CallsACountNearlyExactWhereFreshProcessesDisagree) {
  std::vector<RunRecord> records = reference();
  records.push_back(counted(3, 16, 1107, {{"barriers", 782}, {"syncs", 17}}));
  records.push_back(counted(4, 16, 1106, {{"barriers", 782}, {"syncs", 17}}));
  const Profile profile = assemble(facts(), records);
  const Measurement& measured = profile.metrics.at("dispatches_at_16");
  EXPECT_EQ(measured.nature, Nature::nearly_exact);
  EXPECT_FALSE(measured.exact);
  EXPECT_THAT(measured.samples, ElementsAre(1105, 1107, 1106));
  EXPECT_DOUBLE_EQ(*measured.relative_spread, 2.0 / 1106);
  EXPECT_THAT(measured.warnings, ElementsAre(HasSubstr("3 runs of 16 tokens disagree")));
  ASSERT_TRUE(profile.kernels);
  EXPECT_TRUE(profile.kernels->runs_disagree) << "also where the longest runs agree";
  EXPECT_THAT(profile.warnings, testing::Contains(HasSubstr("disagree about 1 of them (mul)")));
  EXPECT_EQ(profile.metrics.at("dispatches_at_8").nature, Nature::exact);
  EXPECT_EQ(exact(profile, "barriers_per_token"), Rational(46));
}

TEST(Assemble, FitsInstructionsByLeastSquares) {
  // Counts are 100 + 10 n, 2 more in the second repetition of the longest: slopes 10 and 10 + 2/16.
  std::vector<RunRecord> records;
  const std::int64_t k_counts[2][3] = {{180, 260, 340}, {180, 260, 342}};
  for (const auto& counts : k_counts) {
    for (int i = 0; i < 3; ++i) {
      records.push_back(counted(static_cast<std::int64_t>(records.size()), 8 * (i + 1), 65,
                                {{"instructions", counts[i]}}));
    }
  }
  const Profile profile = assemble(facts(), records);
  const Measurement& measured = profile.metrics.at("instructions_per_token");
  EXPECT_EQ(measured.nature, Nature::nearly_exact);
  EXPECT_THAT(measured.samples, ElementsAre(10, 10.125));
  EXPECT_DOUBLE_EQ(*measured.relative_spread, 0.125 / 10.0625);
}

// Builds a process with counted instructions: 1000 + 100 n, including 90 n in "dot".
RunRecord instructions(std::int64_t order, std::int64_t tokens, std::int64_t more = 0) {
  RunRecord record;
  record.cell = k_cell;
  record.pass = Pass::counted;
  record.counts = Counts::instructions;
  record.order = order;
  record.parameters.tokens = tokens;
  record.report.emplace();
  record.report->generated_tokens = tokens;
  ProbeCounts probe;
  probe.probe = "valgrind";
  probe.counts["instructions"] = 1000 + 100 * tokens + more;
  probe.functions = {{"dot", 90 * tokens}, {"load", 1000}, {"(other)", 10 * tokens + more}};
  record.probes.push_back(probe);
  return record;
}

std::vector<RunRecord> counted_with_instructions() {
  return {instructions(0, 4), instructions(1, 36),  instructions(2, 68, 64),
          counted(3, 8, 585), counted(4, 16, 1105), counted(5, 24, 1625)};
}

TEST(Assemble, CountsInstructionsInProcessesOfTheirOwnBesideTheOthers) {
  const Profile profile = assemble(facts(), counted_with_instructions());
  EXPECT_THAT(profile.errors, IsEmpty());
  EXPECT_THAT(profile.warnings, IsEmpty());
  EXPECT_EQ(exact(profile, "dispatches_per_token"), Rational(65));
  const Measurement& measured = profile.metrics.at("instructions_per_token");
  EXPECT_EQ(measured.nature, Nature::nearly_exact);
  EXPECT_EQ(measured.source, "valgrind");
  EXPECT_THAT(measured.samples, ElementsAre(101));  // 64 more at the longest of 4, 36, 68
  EXPECT_FALSE(measured.relative_spread) << "one sweep does not say how nearly it repeats";
  EXPECT_TRUE(profile.metrics.contains("instructions_fixed"));
  EXPECT_EQ(profile.counted_runs, 3);
  EXPECT_EQ(profile.provenance.lengths, (std::vector<std::int64_t>{8, 16, 24}));
  EXPECT_EQ(profile.work.generated_tokens, 24) << "of the other counts, whose lengths are kept";
}

TEST(Assemble, TellsTheInstructionsOfFunctionsPerToken) {
  const Profile profile = assemble(facts(), counted_with_instructions());
  ASSERT_TRUE(profile.functions);
  EXPECT_EQ(profile.functions->scope, unit::Scope::per_token);
  EXPECT_FALSE(profile.functions->has_names) << "they are never gated";
  EXPECT_EQ(profile.functions->counts,
            (std::map<std::string, Rational>{{"dot", 90}, {"(other)", 11}}))
      << "what only loading took is no work per token";
}

TEST(Assemble, KeepsTheOtherCountsWhereInstructionsCouldNotBeCounted) {
  std::vector<RunRecord> records = counted_with_instructions();
  records[1].error = "crashed";
  const Profile profile = assemble(facts(), records);
  EXPECT_THAT(profile.errors, ElementsAre("instructions: 1 of 3 runs: crashed"));
  EXPECT_EQ(exact(profile, "dispatches_per_token"), Rational(65));
  EXPECT_FALSE(profile.metrics.contains("instructions_per_token"));
  EXPECT_FALSE(profile.functions);
}

TEST(Assemble, CallsNoNumberOfInstructionsExact) {
  CellFacts cell_facts = facts(Sweep::none);
  const std::vector<RunRecord> records = {instructions(0, 4), instructions(1, 4)};
  const Profile profile = assemble(cell_facts, records);
  EXPECT_EQ(profile.metrics.at("instructions_at_4").nature, Nature::nearly_exact);
  EXPECT_EQ(profile.metrics.at("instructions_at_4").relative_spread, 0);
  EXPECT_FALSE(profile.functions);
  EXPECT_EQ(profile.counted_runs, 2);
}

TEST(Assemble, CountsInstructionsAtLengthsFarApart) {
  // docs/explanation/counting.md: 4, 4 + k, 4 + 2k with k = max(8, min(32, 2 x tokens)).
  EXPECT_EQ(instruction_lengths(16), (std::vector<std::int64_t>{4, 36, 68}));
  EXPECT_EQ(instruction_lengths(1000), (std::vector<std::int64_t>{4, 36, 68}));
  EXPECT_EQ(instruction_lengths(8), (std::vector<std::int64_t>{4, 20, 36}));
  EXPECT_EQ(instruction_lengths(1), (std::vector<std::int64_t>{4, 12, 20}));
  // 1, 1 + k, 1 + 2k with k = max(1, min(8, 64 / prompt_tokens)).
  EXPECT_EQ(instruction_repeats(9), (std::vector<std::int64_t>{1, 8, 15}));
  EXPECT_EQ(instruction_repeats(512), (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(instruction_repeats(0), (std::vector<std::int64_t>{1, 9, 17})) << "a prompt of text";
}

TEST(Assemble, TakesTheBestRepeatOfEachProcess) {
  const std::vector<RunRecord> records = {timed(0, {10, 12, 11}, 500), timed(1, {9, 8, 8.5}, 700)};
  const Profile profile = assemble(facts(), records);
  EXPECT_THAT(profile.metrics.at("decode_tokens_per_second").samples, ElementsAre(12, 9));
  EXPECT_EQ(profile.metrics.at("decode_tokens_per_second").source, "llama-bench");
  EXPECT_THAT(profile.metrics.at("peak_rss_bytes").samples, ElementsAre(500, 700));
  EXPECT_EQ(profile.metrics.at("peak_rss_bytes").source, "weir");
  EXPECT_EQ(profile.timed_runs, 2);
  RunRecord slow = timed(0, {1});
  slow.report->times = {{*unit::find_metric("time_to_first_token_seconds"), {0.3, 0.2, 0.4}}};
  EXPECT_THAT(
      assemble(facts(), std::vector{slow}).metrics.at("time_to_first_token_seconds").samples,
      ElementsAre(0.2))
      << "lower is better";
}

TEST(Assemble, CountsFewerTokensThanAskedInATimedRunAsAnError) {
  std::vector<RunRecord> records = {timed(0, {10}), timed(1, {10})};
  records[1].report->generated_tokens = 31;
  const Profile profile = assemble(facts(), records);
  EXPECT_THAT(profile.errors,
              ElementsAre(AllOf(
                  HasSubstr("timed: 1 of 2 runs: asked for 32 tokens, 31 were generated: make"),
                  HasSubstr("or write tokens: 31 in the prompt"))));
  EXPECT_TRUE(profile.metrics.empty());
}

TEST(Assemble, KeepsTheCountsOfACellWhoseTimedRunsBroke) {
  std::vector<RunRecord> records = reference();
  for (std::int64_t i = 0; i < 3; ++i) {
    records.push_back(timed(10 + i, {10}));
    if (i == 2) continue;
    records.back().error = "exit 139 (SIGSEGV)";
    records.back().stderr_tail = "last words";
  }
  const Profile profile = assemble(facts(), records);
  EXPECT_THAT(profile.errors, ElementsAre("timed: 2 of 3 runs: exit 139 (SIGSEGV)"));
  EXPECT_EQ(profile.stderr_tail, "last words");
  EXPECT_EQ(exact(profile, "dispatches_per_token"), Rational(65));
  EXPECT_FALSE(profile.metrics.contains("decode_tokens_per_second"));
}

TEST(Assemble, KeepsTheLastWordsOfEachRunWithItsOwnError) {
  struct Failed {
    const char* error;
    const char* words;
  };
  struct Case {
    std::vector<Failed> runs;
    std::vector<std::string> errors;
    const char* words;
  };
  for (const Case& entry :
       {Case{
            {{"exited with code 2", "run 0: no such layer"}, {"exited with code 3", "run 1: full"}},
            {"timed: 1 of 2 runs: exited with code 2",
             "timed: 1 of 2 runs: exited with code 3: run 1: full"},
            "run 0: no such layer"},
        Case{{{"exited with code 2", ""}, {"exited with code 3", "loading\nout of memory\n"}},
             {"timed: 1 of 2 runs: exited with code 2",
              "timed: 1 of 2 runs: exited with code 3: out of memory"},
             ""},
        Case{{{"exited with code 2", ""},
              {"exited with code 2", "bad"},
              {"exited with code 2", "worse"}},
             {"timed: all 3 runs: exited with code 2"},
             "bad"}}) {
    std::vector<RunRecord> records;
    for (const Failed& run : entry.runs) {
      records.push_back(timed(std::ssize(records), {10}));
      records.back().error = run.error;
      records.back().stderr_tail = run.words;
    }
    const Profile profile = assemble(facts(), records);
    EXPECT_EQ(profile.errors, entry.errors);
    EXPECT_EQ(profile.stderr_tail, entry.words) << entry.errors.front();
  }
  std::vector<RunRecord> records = reference();
  records[1].error = "exited with code 2";
  records[1].stderr_tail = "while counted";
  records.push_back(timed(5, {10}));
  records.back().error = "exited with code 2";
  records.back().stderr_tail = "while timed";
  const Profile profile = assemble(facts(), records);
  EXPECT_THAT(profile.errors, ElementsAre("counted: 1 of 3 runs: exited with code 2",
                                          "timed: exited with code 2: while timed"));
  EXPECT_EQ(profile.stderr_tail, "while counted");
}

TEST(Assemble, TellsErrorsOfOneReasonWithoutTheirNumberOfRuns) {
  struct Row {
    const char* errors;
    const char* want;
  };
  for (const Row& row : {
           Row{"timed: exit 1", "timed: exit 1"},
           Row{"timed: all 3 runs: exit 1", "timed: exit 1"},
           Row{"timed: 1 of 3 runs: exit 1\ncounted: all 2 runs: exit 2",
               "timed: some runs: exit 1\ncounted: exit 2"},
           // An engine's own message, not weir's.
           Row{"timed: exit 1: all 3 runs: bad", "timed: exit 1: all 3 runs: bad"},
           Row{"timed: most of 3 runs: exit 1", "timed: most of 3 runs: exit 1"},
           Row{"no runs: none", "no runs: none"},
           Row{"", ""},
       }) {
    EXPECT_EQ(without_run_numbers(row.errors), row.want);
  }
}

TEST(Assemble, GivesNoCountsAndNoPlacementFromAPassWithAnError) {
  std::vector<RunRecord> records = reference();
  records[1].error = "exit 1";
  records[0].report->device_refuted = "llama-bench reports n_gpu_layers 0";
  records.push_back(timed(5, {10}));
  const Profile profile = assemble(facts(), records);
  EXPECT_THAT(profile.errors, ElementsAre("counted: 1 of 3 runs: exit 1"));
  EXPECT_FALSE(profile.metrics.contains("dispatches_per_token"));
  EXPECT_EQ(profile.placement.state, Placement::State::unknown);
  EXPECT_TRUE(profile.metrics.contains("decode_tokens_per_second"));
}

TEST(Assemble, ForgetsTheFailedAttemptThatWasRetried) {
  RunRecord failed = timed(0, {10});
  failed.error = "could not be started";
  RunRecord retried = timed(0, {11});
  retried.attempt = 2;
  const Profile profile = assemble(facts(), std::vector{retried, failed});
  EXPECT_THAT(profile.errors, IsEmpty());
  EXPECT_THAT(profile.metrics.at("decode_tokens_per_second").samples, ElementsAre(11));
}

TEST(Placement, IsRefutedWhereTheDeviceGotNoWork) {
  std::vector<RunRecord> records = {counted(0, 8, 0), counted(1, 16, 0), counted(2, 24, 0)};
  for (RunRecord& record : records) record.probes[0].kernels.clear();
  CellFacts cell_facts = facts();
  cell_facts.device_cure = "Set this";
  const Profile profile = assemble(cell_facts, records);
  EXPECT_EQ(profile.placement.state, Placement::State::ran_elsewhere);
  EXPECT_THAT(profile.placement.reason,
              HasSubstr("gave it no work, though llvmpipe is there.\n  Set this"));
  EXPECT_EQ(exact(profile, "dispatches_per_token"), Rational(0));
}

TEST(Placement, OfADeviceThatIsNotHereEndsWithTheAdvice) {
  std::vector<RunRecord> records = {counted(0, 8, 0), counted(1, 16, 0), counted(2, 24, 0)};
  for (RunRecord& record : records) {
    record.probes[0] = ProbeCounts{};
    record.probes[0].probe = "vulkan";
  }
  CellFacts cell_facts = facts();
  cell_facts.device_present.reset();
  cell_facts.device_cure = "Simulate one";
  EXPECT_THAT(assemble(cell_facts, records).placement.reason,
              HasSubstr("made no such device.\n  Simulate one"));
  for (RunRecord& record : records) {
    record.exit_code = 1;
    record.error = "exited with code 1";
  }
  EXPECT_THAT(assemble(cell_facts, records).errors,
              ElementsAre("counted: all 3 runs: exited with code 1. Simulate one"));
}

TEST(Placement, IsRefutedWhereOnlyTheStartUsedTheDevice) {
  const std::vector<RunRecord> records = {counted(0, 8, 65), counted(1, 16, 65),
                                          counted(2, 24, 65)};
  EXPECT_THAT(assemble(facts(), records).placement.reason, HasSubstr("belong to the start"));
}

TEST(Placement, IsRefutedByTheEngineItself) {
  std::vector<RunRecord> records = reference();
  records[2].report->device_refuted = "llama-bench reports n_gpu_layers 0";
  const Profile profile = assemble(facts(), records);
  EXPECT_EQ(profile.placement.state, Placement::State::ran_elsewhere);
  EXPECT_EQ(profile.placement.reason, "llama-bench reports n_gpu_layers 0");
}

TEST(Counted, NeedsNoOwnCountsOnTheCpuWhereSystemCallsAreCounted) {
  std::vector<RunRecord> records = reference();
  for (RunRecord& record : records) {
    record.probes.clear();
    if (record.pass != Pass::counted) continue;
    record.report->counts.clear();
    record.report->shares.clear();
  }
  CellFacts cell_facts = facts();
  cell_facts.device = "cpu";
  EXPECT_THAT(assemble(cell_facts, records).errors, ElementsAre(HasSubstr("nothing was counted")));
  const std::vector<RunRecord> counted = records;
  for (RunRecord record : counted) {
    if (record.pass != Pass::counted) continue;
    record.counts = Counts::system_calls;
    record.order += 1000;
    ProbeCounts probe;
    probe.probe = "host";
    record.probes = {probe};
    records.push_back(record);
  }
  for (const std::string& error : assemble(cell_facts, records).errors)
    EXPECT_THAT(error, Not(HasSubstr("nothing was counted")));
}

TEST(Placement, TellsADeviceNeverOpenedFromAProbeThatSawNothing) {
  std::vector<RunRecord> records = reference();
  for (RunRecord& record : records) record.probes.clear();
  EXPECT_THAT(assemble(facts(), records).errors, ElementsAre(HasSubstr("nothing was counted")));
  CellFacts cell_facts = facts();
  cell_facts.device_present = "llvmpipe";
  const Profile profile = assemble(cell_facts, records);
  EXPECT_THAT(profile.errors, IsEmpty());
  EXPECT_EQ(profile.placement.state, Placement::State::ran_elsewhere);
  EXPECT_THAT(profile.placement.reason, HasSubstr("never opened it, though llvmpipe is there"));
}

TEST(OwnCounts, ThatCannotBeCountedAreTheErrorOrAWarning) {
  const std::string why = "printed 8 times in a run of 4 tokens";
  std::vector<RunRecord> records = reference();
  records[0].report->uncounted = {{"barriers_per_token", why}, {"dispatches_per_token", why}};
  const std::string both = "barriers_per_token, dispatches_per_token: " + why;
  const Profile counted = assemble(facts(), records);
  EXPECT_THAT(counted.errors, IsEmpty());
  EXPECT_THAT(counted.warnings, Contains("not counted: " + both));
  for (RunRecord& record : records) record.probes.clear();
  const Profile uncounted = assemble(facts(), records);
  EXPECT_THAT(uncounted.errors, ElementsAre(HasSubstr("its own counts are of no use: " + both)));
  EXPECT_THAT(uncounted.warnings, Not(Contains(HasSubstr(why)))) << "said once";
}

TEST(OwnCounts, BecomeExactWhenAllRunsAgree) {
  RunRecord record = timed(0, {12});
  record.pass = Pass::counted;
  record.report->counts = {{"dispatches_per_token", 690}, {"syncs_per_token", 1}};
  CellFacts own = facts(Sweep::none);
  own.device = "metal";
  const Profile profile = assemble(own, std::vector{record, record});
  EXPECT_EQ(exact(profile, "dispatches_per_token"), Rational(690));
  EXPECT_EQ(profile.metrics.at("syncs_per_token").source, "llama-bench");
  EXPECT_EQ(profile.placement.state, Placement::State::unknown);
  EXPECT_EQ(profile.provenance.device_class, "metal-unseen");
  EXPECT_THAT(profile.errors, IsEmpty());
}

TEST(OwnCounts, ArePrintedAsOftenAsInTheLongestCountedRunElseInTimedOnes) {
  constexpr const char* k_name = "dispatches_per_token";
  using Printed = std::map<std::string, std::int64_t>;
  std::vector<RunRecord> records = reference();
  for (RunRecord& record : records) {
    record.report->shares[k_name] = 65;
    record.report->printed_values[k_name] = record.parameters.tokens;
  }
  records.push_back(timed(3, {12}));
  records.back().report->printed_values[k_name] = 32;
  EXPECT_EQ(assemble(facts(), records).work.printed_values, (Printed{{k_name, 24}}));
  EXPECT_EQ(assemble(facts(), std::vector{records.back()}).work.printed_values,
            (Printed{{k_name, 32}}));
  records.push_back(records[2]);
  records.back().order = 4;
  records.back().report->printed_values[k_name] = 25;
  const Profile profile = assemble(facts(), records);
  EXPECT_EQ(profile.work.printed_values, (Printed{{k_name, 24}}));
  EXPECT_THAT(profile.warnings,
              Contains("runs disagree about how many values of dispatches_per_token they print: "
                       "24 and 25"));
}

TEST(OwnCounts, CrossCheckTheProbeAndNeverReplaceIt) {
  std::vector<RunRecord> records = reference();
  for (RunRecord& record : records) record.report->counts["dispatches_per_token"] = 61;
  const Profile profile = assemble(facts(), records);
  EXPECT_EQ(exact(profile, "dispatches_per_token"), Rational(65));
  EXPECT_THAT(profile.warnings,
              ElementsAre("dispatches_per_token: vulkan counted 65, llama-bench says 61"));
}

TEST(Assemble, HoldsASecondCountAgainstTheFirstAndTakesNoMetricOfIt) {
  const auto counted_twice = [](std::int64_t cublas, std::int64_t more) {
    std::vector<RunRecord> records = reference();
    for (RunRecord& record : records) {
      ProbeCounts& own = record.probes.front();
      own.probe = "cuda";
      own.devices = {{"cuda", "GPU", "discrete", "cuda-10de-1-0-2-0a"}};
      ProbeCounts check = own;
      check.probe = "cupti";
      check.counts["dispatches"] += more * record.parameters.tokens;
      check.counts["graph_launches"] = record.parameters.tokens;  // the first token has none
      own.counts["cublas_calls"] = cublas * record.parameters.tokens;
      record.probes.push_back(check);
    }
    CellFacts of = facts();
    of.device = "cuda";
    return assemble(of, records);
  };
  const Profile differs = counted_twice(0, 2);
  EXPECT_EQ(exact(differs, "dispatches_per_token"), Rational(65));
  EXPECT_THAT(differs.warnings,
              ElementsAre("dispatches_per_token: cuda counted 65, cupti says 67"));
  EXPECT_FALSE(differs.metrics.contains("graph_launches_per_token"));
  // A call of cuBLAS may start any number of kernels.
  EXPECT_THAT(counted_twice(1, 2).warnings, IsEmpty());
  EXPECT_THAT(counted_twice(0, 0).warnings, IsEmpty());
}

TEST(Assemble, SaysWhatProbesCostWhereProcessesRanInPairs) {
  std::vector<RunRecord> records = reference();
  for (std::int64_t i = 0; i < 3; ++i) records.push_back(timed(10 + i, {10}));
  EXPECT_FALSE(assemble(facts(), records).profiling_cost) << "nobody asked";
  // Rates without and with probes; the machine was slow during the second pair.
  const std::pair<double, double> pairs[] = {{10, 9.9}, {5, 4.9}, {10, 9.7}};
  std::int64_t order = 20;
  for (const auto& [without, with] : pairs) {
    records.push_back(timed(order++, {without}));
    records.back().with_probes = false;
    records.push_back(timed(order++, {with}));
    records.back().with_probes = true;
  }
  const Profile profile = assemble(facts(), records);
  EXPECT_NEAR(*profile.profiling_cost, 0.02, 1e-12);  // the median of 1, 2 and 3 %
  EXPECT_EQ(profile.timed_runs, 3) << "pairs are no samples";
  records.back().error = "crashed";
  EXPECT_NEAR(*assemble(facts(), records).profiling_cost, 0.015, 1e-12);
  EXPECT_TRUE(assemble(facts(), records).errors.empty());
  for (const double rate : {3.0, 30.0, 30.0}) {
    records.push_back(timed(order++, {10}));
    records.back().with_probes = false;
    records.push_back(timed(order++, {rate}));
    records.back().with_probes = true;
  }
  const Profile noisy = assemble(facts(), records);
  EXPECT_FALSE(noisy.profiling_cost);
  EXPECT_THAT(noisy.warnings, Contains(HasSubstr("too noisy")));
}

TEST(Assemble, IsAnErrorWithoutRecordsUnlessNothingCouldBeCounted) {
  EXPECT_THAT(assemble(facts(), {}).errors, ElementsAre("no run of this cell is recorded"));
  CellFacts skipped = facts();
  skipped.counts_skip_reason = "no probe sees cpu";
  EXPECT_THAT(assemble(skipped, {}).errors, IsEmpty());
}

// weir run starts one process of a cell that nothing counts, to see where it worked.
TEST(Assemble, DoesNotCallCountedWhatTheEngineCountedUncounted) {
  for (const bool counts : {true, false}) {
    CellFacts unexpected = facts();
    unexpected.counts_skip_reason = "the engine has no probes and reports no counts";
    RunRecord record = timed(0, {40});
    record.pass = Pass::counted;
    if (counts) record.report->counts["dispatches_per_token"] = 1350;
    const Profile profile = assemble(unexpected, std::vector{record});
    EXPECT_EQ(profile.counts_skip_reason.has_value(), !counts);
    EXPECT_EQ(profile.metrics.contains("dispatches_per_token"), counts);
  }
}

TEST(ExactLine, AnswersOnlyWhatIsExact) {
  const auto line = [](std::vector<LengthCount> points) { return exact_line(points); };
  EXPECT_FALSE(line({}));
  EXPECT_FALSE(line({{8, 585}}));
  EXPECT_FALSE(line({{8, 585}, {8, 585}})) << "one length is no line";
  ASSERT_TRUE(line({{8, 585}, {16, 1105}}));
  EXPECT_FALSE(line({{8, 585}, {16, 1105}, {24, 1626}}));
  EXPECT_FALSE(line({{8, 585}, {8, 586}, {16, 1105}}));
  EXPECT_EQ(line({{8, 5}, {16, 5}, {24, 5}})->slope, Rational(0));
  EXPECT_FALSE(line({{1, INT64_MIN}, {2, INT64_MAX}})) << "out of range is no answer";
}

TEST(DecodeLengths, AreThreeMultiplesBetweenFourAndEight) {
  EXPECT_THAT(decode_lengths(32), ElementsAre(8, 16, 24));
  EXPECT_THAT(decode_lengths(300), ElementsAre(8, 16, 24));
  EXPECT_THAT(decode_lengths(24), ElementsAre(6, 12, 18));
  EXPECT_THAT(decode_lengths(1), ElementsAre(4, 8, 12));
}

// Runs 65 dispatches a token, one of them without a name.
TEST(Assemble, DoubtsKernelsThatAreNotAsManyAsTheDispatches) {
  std::vector<RunRecord> records = reference();
  EXPECT_THAT(assemble(facts(), records).warnings, Not(Contains(HasSubstr("kernels by name"))));
  for (RunRecord& record : records) {
    for (ProbeCounts& probe : record.probes) {
      for (auto& [name, count] : probe.kernels) {
        if (name == "mul") count -= record.parameters.tokens;
      }
    }
  }
  EXPECT_THAT(assemble(facts(), records).warnings,
              Contains("kernels by name add up to 64, dispatches were counted 65"));
}

TEST(Assemble, TellsOnceWhatEachProcessSaysWithFiguresOfItsOwn) {
  std::vector<RunRecord> records = reference();
  int percent = 20;
  for (RunRecord& record : records) {
    if (!record.report) continue;
    record.report->warnings = {fmt::format("ops take {}.5 ms a token", ++percent), "another"};
  }
  EXPECT_THAT(assemble(facts(), records).warnings,
              ElementsAre("ops take 21.5 ms a token", "another"));
}

TEST(Assemble, TakesWhatOneCompilerSaysOfKernels) {
  // The run was resumed after another Mesa was installed.
  auto records = reference();
  for (RunRecord& record : records) {
    const bool last = record.order == 2;
    ProbeCounts& probe = record.probes[0];
    probe.codes = {{"mul@00000000000000a1", record.parameters.tokens}};
    probe.code_groups = {{"mul@00000000000000a1", 4 * record.parameters.tokens}};
    probe.code_facts["00000000000000a1"].costs = {{"throughput_cycles", last ? 9 : 7},
                                                  {"waves", 1}};
    probe.compiler = last ? "radv-navi31, Mesa 25.0.7" : "radv-navi31, Mesa 22.3.6";
  }
  const Profile profile = assemble(facts(), records);
  EXPECT_EQ(exact(profile, "estimated_cycles_per_token"), 36);
  EXPECT_EQ(profile.compiler, "radv-navi31, Mesa 25.0.7");
  EXPECT_THAT(profile.warnings,
              Contains("kernels were compiled by radv-navi31, Mesa 22.3.6, then by radv-navi31, "
                       "Mesa 25.0.7, whose figures count"));
}

}  // namespace assemble_test
}  // namespace weir::profile
