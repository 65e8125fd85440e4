// Tests the verdict of a gate from those of its cells.
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/json.hpp"

#include "tests/verdict/build.hpp"

namespace weir::verdict {
namespace gate_test {

using namespace test;
using profile::Profile;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

CellVerdict cell_with_outcome(Outcome outcome) {
  CellVerdict cell;
  cell.cell = reference().cell;
  cell.verdict = outcome;
  return cell;
}

TEST(Cells, ShowTheReasonOfAnAcceptanceWhereStoredCountsFailAlone) {
  const auto before = baseline::accept(reference(), std::nullopt, {}, "the new sampler");
  Profile other = reference();
  add_count(other, "syncs_per_token", 2);
  EXPECT_THAT(
      judge(other, {before}).notes,
      Contains("the stored counts were accepted earlier, with the reason: the new sampler"));
  LimitEntry bound = entry({"dispatches_per_token"});
  bound.max = Amount{60, false};
  const CellVerdict beyond = judge(reference(), {before}, {bound});
  EXPECT_EQ(beyond.verdict, Outcome::fail);
  EXPECT_THAT(beyond.notes, ::testing::Not(Contains(HasSubstr("the new sampler"))));
}

TEST(Outcomes, KeepTheirPrecedenceAndNames) {
  const std::pair<Outcome, const char*> k_order[] = {{Outcome::fail, "fail"},
                                                     {Outcome::error, "error"},
                                                     {Outcome::inconclusive, "inconclusive"},
                                                     {Outcome::new_, "new"},
                                                     {Outcome::improved, "improved"},
                                                     {Outcome::waived, "waived"},
                                                     {Outcome::pass, "pass"},
                                                     {Outcome::skipped, "skipped"},
                                                     {Outcome::info, "info"}};
  for (std::size_t i = 0; i < std::size(k_order); ++i) {
    EXPECT_EQ(to_string(k_order[i].first), k_order[i].second);
    EXPECT_EQ(parse_outcome(k_order[i].second), k_order[i].first);
    for (std::size_t j = i; j + 1 < std::size(k_order); ++j) {
      EXPECT_EQ(
          judge_gate({cell_with_outcome(k_order[j].first), cell_with_outcome(k_order[i].first)}, {})
              .verdict,
          k_order[std::min(i, std::size_t{7})].first);
    }
  }
  EXPECT_FALSE(parse_outcome("fresh"));
}

TEST(Gate, TurnsVerdictsIntoExitCodes) {
  struct Case {
    std::vector<Outcome> cells;
    bool fail_on_inconclusive;
    ExitCode want;
  };
  using enum Outcome;
  const Case k_cases[] = {
      {{pass, improved, waived, new_, skipped}, true, ExitCode::pass},
      {{pass, fail, error, inconclusive}, true, ExitCode::fail},
      {{pass, error, inconclusive}, true, ExitCode::unmeasured},
      {{pass, inconclusive, new_}, true, ExitCode::inconclusive},
      {{pass, inconclusive, new_}, false, ExitCode::pass},
      {{skipped, skipped}, false, ExitCode::usage},
      {{skipped, new_}, false, ExitCode::pass},
      {{}, false, ExitCode::usage},
  };
  for (const Case& test_case : k_cases) {
    std::vector<CellVerdict> cells;
    for (const Outcome outcome : test_case.cells) cells.push_back(cell_with_outcome(outcome));
    Policy policy;
    policy.fail_on_inconclusive = test_case.fail_on_inconclusive;
    EXPECT_EQ(judge_gate(cells, policy).exit_code, test_case.want) << test_case.cells.size();
  }
}

TEST(Gate, CountsCellsByVerdictAndMetricsThatWereJudged) {
  Profile after = reference();
  add_count(after, "dispatches_per_token", 77);
  const GateVerdict gate = judge_gate({judge(reference(), {stored(reference())}),
                                       judge(after, {stored(reference())}), judge(reference(), {})},
                                      {});
  EXPECT_EQ(gate.verdict, Outcome::fail);
  EXPECT_EQ(gate.totals.at("fail"), 1);
  EXPECT_EQ(gate.totals.at("pass"), 1);
  EXPECT_EQ(gate.totals.at("new"), 1);
  EXPECT_EQ(gate.totals.at("error"), 0);
  EXPECT_EQ(gate.metrics_judged, 6) << "three exact counts in each of two cells";
}

TEST(Gate, AdmitsWhatItDidNotJudge) {
  Profile timed = reference();
  add_time(timed, "decode_tokens_per_second", around(100));
  Profile elsewhere = timed;
  elsewhere.provenance.machine_class = "machine-b";
  Profile skipped;
  skipped.cell = reference().cell;
  skipped.counts_skip_reason = "no probe sees cpu";
  Profile on_cpu = skipped;
  on_cpu.provenance = timed.provenance;
  add_time(on_cpu, "decode_tokens_per_second", around(100));
  LimitEntry report = entry({"decode_*"});
  report.mode = Mode::report;

  const GateVerdict gate =
      judge_gate({judge(timed, {stored(timed)}), judge(elsewhere, {stored(timed)}),
                  judge(reference(), {}), judge(skipped, {}), judge(skipped, {}),
                  judge(on_cpu, {stored(timed)}), judge(timed, {stored(timed)}, {report})},
                 {});
  EXPECT_THAT(gate.not_judged, ElementsAre("throughput not decided in 2 of 7 cells", "1 cell new",
                                           "throughput new in 1 of 7 cells",
                                           "throughput reported, not gated, in 1 of 7 cells",
                                           "2 skipped: no probe sees cpu",
                                           "counts not taken in 1 of 7 cells: no probe sees cpu"));
  Policy counts_only;
  counts_only.counts_only = true;
  EXPECT_THAT(judge_gate({judge(reference(), {stored(reference())})}, counts_only).not_judged,
              ElementsAre("throughput not measured"));
  EXPECT_THAT(judge_gate({judge(reference(), {stored(reference())})}, {}).not_judged, IsEmpty());
}

Judgement limited(const char* name, Outcome outcome, Mode mode = Mode::gate) {
  Judgement judgement;
  judgement.metric = unit::find_metric(name).value();
  judgement.limit.exact = true;  // any limit
  judgement.limit.mode = mode;
  judgement.verdict = outcome;
  return judgement;
}

TEST(Gate, NamesInItsFirstLineNoMoreThanWhatItLeavesOpen) {
  using enum Outcome;
  constexpr const char* k_decode = "decode_tokens_per_second";
  constexpr const char* k_output = "output_tokens_per_second";
  constexpr const char* k_first = "time_to_first_token_seconds";
  constexpr const char* k_last = "end_to_end_latency_seconds";
  constexpr const char* k_memory = "peak_rss_bytes";
  struct Case {
    const char* title;
    std::vector<std::vector<Judgement>> cells;
    std::vector<std::string> want;
  };
  const Case k_cases[] = {
      {"one rate is reported and another one fails",
       {{limited(k_decode, info, Mode::report), limited(k_output, fail)}},
       {"decode tok/s reported, not gated, in 1 of 1 cell"}},
      {"latencies alone are open",
       {{limited(k_output, pass), limited(k_first, inconclusive), limited(k_last, inconclusive)}},
       {"latency not decided in 1 of 1 cell"}},
      {"one of two latencies is open",
       {{limited(k_first, inconclusive), limited(k_last, fail)}},
       {"time to first token not decided in 1 of 1 cell"}},
      {"rates and latencies are open in the same cells",
       {{limited(k_output, inconclusive), limited(k_first, inconclusive)}, {}},
       {"throughput and latency not decided in 1 of 2 cells"}},
      {"each in cells of its own",
       {{limited(k_output, inconclusive)}, {limited(k_memory, inconclusive)}},
       {"throughput not decided in 1 of 2 cells", "memory not decided in 1 of 2 cells"}},
      {"memory has nothing to compare with",
       {{limited(k_memory, new_)}},
       {"memory new in 1 of 1 cell"}},
      {"one count is reported and another one fails",
       {{limited("barriers_per_token", info, Mode::report), limited("dispatches_per_token", fail)}},
       {"barriers/token reported, not gated, in 1 of 1 cell"}},
  };
  for (const Case& test_case : k_cases) {
    std::vector<CellVerdict> cells;
    for (const auto& metrics : test_case.cells)
      cells.emplace_back(cell_with_outcome(pass)).judgements = metrics;
    EXPECT_EQ(judge_gate(cells, {}).not_judged, test_case.want) << test_case.title;
  }
}

TEST(Gate, ThatComparedNothingSaysWhyAndJudgesNothing) {
  const GateVerdict none = judge_gate({judge(reference(), {}), judge(reference(), {})}, {});
  EXPECT_EQ(none.nothing_judged_reason, "nothing was compared: no baseline is stored");
  EXPECT_EQ(none.compared, 0);
  ASSERT_EQ(none.not_compared.size(), 1U);
  EXPECT_EQ(none.not_compared[0].cells, 2);
  EXPECT_EQ(none.exit_code, ExitCode::pass) << "only where a baseline is required";
  EXPECT_THAT(none.not_judged, IsEmpty()) << "not said twice";

  baseline::Baseline amd_baseline = stored(reference());
  amd_baseline.device_class = "vulkan-1002-744c-3-4-0a";
  Profile changed = reference();
  changed.provenance.fingerprint_parts["prompt"] = "b2";
  changed.provenance.fingerprint = "beef";
  const GateVerdict two =
      judge_gate({judge(reference(), {amd_baseline}), judge(changed, {stored(reference())})}, {});
  EXPECT_THAT(*two.nothing_judged_reason,
              HasSubstr("nothing was compared: 1 cell: the baselines are of another device class"));
  EXPECT_THAT(*two.nothing_judged_reason, HasSubstr("stored with other settings: prompt changed"));

  const GateVerdict some =
      judge_gate({judge(reference(), {}), judge(reference(), {stored(reference())})}, {});
  EXPECT_FALSE(some.nothing_judged_reason);
  EXPECT_EQ(some.compared, 1);
  EXPECT_THAT(some.not_judged, ElementsAre("1 cell new"));

  LimitEntry off = entry({"*"});
  off.mode = Mode::off;
  EXPECT_THAT(judge_gate({judge(reference(), {stored(reference())}, {off})}, {})
                  .nothing_judged_reason.value_or(""),
              HasSubstr("no limit holds"));
}

TEST(Gate, ThatComparedNothingIsAnErrorWhereABaselineIsRequired) {
  Policy required;
  required.require_baseline = true;
  Profile timed = reference();  // no count, so no exact metric to require
  timed.metrics.clear();
  add_time(timed, "decode_tokens_per_second", around(100));
  for (const Profile& profile : {reference(), timed}) {
    const GateVerdict gate = judge_gate({judge(profile, {}, {}, required)}, required);
    EXPECT_EQ(gate.verdict, Outcome::error);
    EXPECT_EQ(gate.exit_code, ExitCode::unmeasured);
    EXPECT_TRUE(gate.nothing_judged_reason);
  }
}

TEST(Gate, SaysInWordsWhatItsLimitsPromise) {
  Profile timed = reference();
  add_time(timed, "decode_tokens_per_second", around(100));
  const std::string rule = judge_gate({judge(timed, {stored(timed)})}, {}).decision_rule;
  EXPECT_THAT(rule, HasSubstr("Counts are exact"));
  EXPECT_THAT(rule, HasSubstr("decode tok/s may drop 5 %"));
  Profile both = timed;
  add_time(both, "prefill_tokens_per_second", around(100));
  EXPECT_THAT(judge_gate({judge(both, {stored(both)})}, {}).decision_rule,
              HasSubstr(": decode tok/s, prefill tok/s may drop 5 %. "))
      << "a limit is said once";
  EXPECT_THAT(rule, HasSubstr("95 % interval"));
  EXPECT_THAT(rule, HasSubstr("outside false_alarm"));
}

// Counters and rates of a token on Metal, from the appendix on profiling of Agave. The candidate
// moved a step of 16 layers to the CPU.
TEST(Gate, FailsTheMetalRegressionNamingCountsAndThroughput) {
  Profile before;
  before.cell = *profile::CellKey::parse("engine/qwen/metal/decode");
  before.device = "metal";
  before.provenance.device_class = "metal-unseen";
  before.provenance.machine_class = "mac";
  before.counted_runs = 1;
  Profile after = before;
  add_count(before, "dispatches_per_token", 690);
  add_count(before, "barriers_per_token", 690);
  add_count(before, "syncs_per_token", 1);
  add_time(before, "decode_tokens_per_second", std::vector<double>(10, 14.1));
  add_count(after, "dispatches_per_token", 706);
  add_count(after, "barriers_per_token", 930);
  add_count(after, "syncs_per_token", 17);
  add_time(after, "decode_tokens_per_second", std::vector<double>(10, 12.0));
  const CellVerdict cell = judge(after, {stored(before)});
  for (const char* name : {"dispatches_per_token", "barriers_per_token", "syncs_per_token",
                           "decode_tokens_per_second"}) {
    EXPECT_EQ(metric(cell, name).verdict, Outcome::fail) << name << metric(cell, name).reason;
  }
}

GateVerdict full_gate() {
  Profile before = reference(), after = reference();
  add_time(before, "decode_tokens_per_second", around(100));
  add_time(after, "decode_tokens_per_second", around(60));
  add_count(after, "dispatches_per_token", *Rational::make(133, 2));
  add_count(before, "layers_fused", 12);
  add_count(after, "layers_fused", 11);
  after.kernels->counts["add"] = *Rational::make(3, 2);
  after.placement = {profile::Placement::State::ran_elsewhere, "on the CPU", {}};
  after.errors = {"timed: x"};
  after.stderr_tail = "tail";
  after.warnings = {"w"};
  after.profiling_cost = 0.013;
  after.counts_skip_reason = "y";
  LimitEntry odd = entry({"layers_fused", "barriers_per_token"});
  odd.max_increase = Amount{0.1, true};
  odd.max_decrease = Amount{3, false};
  odd.min = Amount{1, false};
  odd.max = Amount{1000.5, false};
  odd.mode = Mode::report;
  odd.reason = "why";
  GateVerdict gate = judge_gate({judge(after, {stored(before)}, {odd})}, {});
  gate.weir_version = "0.1.0";
  gate.config = "weir.yaml";
  gate.options = {{"--baselines", "perf"}};
  gate.commit = "c";
  gate.base_commit = "b";
  gate.base_origin = "stored baselines in baselines";
  gate.notes = {"n"};
  gate.seconds = 41.5;
  gate.budget_seconds = 600;
  gate.run = "weir-out/1";
  gate.cells[0].judgements[0].pairs = 14;
  gate.cells[0].put("placement").changed = {{"ADD", {}, Rational(3)}};
  gate.cells[0].latencies = {0, 20'000, 100'000, 50'000, 20'000, 900'000};
  gate.cells[0].requests = 10'000;
  gate.cells[0].batches = {{1, 1, 12}, {3, 4, 7}};
  Finding finding;
  finding.kind = "op_added";
  finding.headline = "More work on the device: add.";
  finding.claims = {"dispatches_per_token", "kernels"};
  gate.cells[0].findings = {finding};
  const std::vector<std::string> cells = {gate.cells[0].cell.str()};
  gate.causes = {{finding.kind,
                  finding.headline,
                  {"add"},
                  cells,
                  {{"dispatches_per_token", 1.5, 1.5, 1}},
                  2,
                  "an op was added",
                  ""}};
  gate.unexplained = {{"layers_fused", cells}};
  return gate;
}

TEST(VerdictJson, ComesBackAsItWas) {
  const Json json = write_fields(full_gate());
  const auto back = read_fields<GateVerdict>(*parse_json(dump_json(json, 1)), "verdict");
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(dump_json(write_fields(*back), 1), dump_json(json, 1));
  EXPECT_EQ(back->causes, full_gate().causes);
  EXPECT_EQ(back->unexplained, full_gate().unexplained);
  EXPECT_EQ(back->cells[0].findings, full_gate().cells[0].findings);
}

TEST(VerdictJson, SaysWhenAPostMakesACommentWhereThatIsNotTheDefault) {
  Json json = write_fields(full_gate());
  EXPECT_FALSE(json.contains("comment"));
  EXPECT_EQ(read_fields<GateVerdict>(json, "verdict")->comment, Comment::changed);
  Policy policy;
  policy.comment = Comment::never;
  const GateVerdict gate = judge_gate(full_gate().cells, policy);
  json = write_fields(gate);
  EXPECT_EQ(json["comment"], "never");
  EXPECT_EQ(read_fields<GateVerdict>(json, "verdict")->comment, Comment::never);
  json["comment"] = "loudly";
  EXPECT_FALSE(read_fields<GateVerdict>(json, "verdict"));
}

TEST(VerdictJson, KeepsFourHundredRequestsOfAServerTheSlowestAmongThem) {
  GateVerdict gate = full_gate();
  std::vector<std::int64_t>& latencies = gate.cells[0].latencies;
  latencies.clear();
  for (std::int64_t i = 0; i < 10'000; ++i) {
    latencies.insert(latencies.end(), {i, 10, i == 7777 ? 5'000'000 : 100 + i % 7});
  }
  const auto back = read_fields<GateVerdict>(write_fields(gate), "verdict");
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->cells[0].latencies.size(), 3 * 400U);
  EXPECT_THAT(back->cells[0].latencies, testing::Contains(5'000'000));
  EXPECT_EQ(back->cells[0].requests, 10'000);
  EXPECT_EQ(back->cells[0].batches, gate.cells[0].batches);
  Json json = write_fields(gate);
  json["cells"][0]["latencies"] = std::vector<int>(1'201, 1);
  const auto refused = read_fields<GateVerdict>(json, "verdict");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("latencies of too many requests"));
  json = write_fields(gate);
  json["cells"][0]["requests"] = -1;
  EXPECT_FALSE(read_fields<GateVerdict>(json, "verdict"));
  json["cells"][0]["requests"] = 1;
  json["cells"][0]["batches"][0]["graphs"] = 0;
  EXPECT_FALSE(read_fields<GateVerdict>(json, "verdict"));
  json["cells"][0]["batches"] =
      std::vector<Json>(65, {{"from_tokens", 1}, {"to_tokens", 1}, {"graphs", 1}});
  EXPECT_FALSE(read_fields<GateVerdict>(json, "verdict"));
}

TEST(VerdictJson, IsCompleteAndReadsAsTheDesignShowsIt) {
  Profile after = reference();
  add_count(after, "dispatches_per_token", 77);
  const Json json = write_fields(judge_gate({judge(after, {stored(reference())})}, {}));
  EXPECT_EQ(json["schema"], "weir.verdict/1");
  EXPECT_EQ(json["verdict"], "fail");
  EXPECT_EQ(json["exit_code"], 1);
  EXPECT_TRUE(json["commit"].is_null());
  EXPECT_FALSE(json.contains("causes")) << "a verdict without findings has none";
  EXPECT_FALSE(json.contains("unexplained"));
  const Json& cell = json["cells"][0];
  EXPECT_EQ(cell["cell"], "llama.cpp/tiny-llama/vulkan/decode");
  EXPECT_EQ(cell["findings"], Json::array());
  Json dispatches;
  for (const Json& metric : cell["judgements"]) {
    if (metric["subject"] == "dispatches_per_token") dispatches = metric;
  }
  EXPECT_EQ(dispatches["nature"], "exact");
  EXPECT_EQ(dispatches["baseline"].dump(), "65");
  EXPECT_EQ(dispatches["current"].dump(), "77");
  EXPECT_NEAR(dispatches["change"].get<double>(), 0.1846, 1e-4);
  EXPECT_EQ(dispatches["limit"], (Json{{"exact", true}}));
  for (const char* key :
       {"unit", "better", "source", "verdict", "low", "high", "reason", "pairs"}) {
    EXPECT_TRUE(dispatches.contains(key)) << key;
  }
  EXPECT_TRUE(dispatches["low"].is_null());
}

// A hand-made document may say "pass" above cells that failed: no reader takes it.
TEST(VerdictJson, IsRefusedWhereItSaysBetterThanItsParts) {
  Profile after = reference();
  add_count(after, "dispatches_per_token", 77);
  const Json failed = write_fields(judge_gate({judge(after, {stored(reference())})}, {}));
  ASSERT_TRUE(read_fields<GateVerdict>(failed, "verdict"));
  struct Case {
    const char* place;
    Json value;
    const char* message;
  };
  for (const auto& [place, value, message] :
       {Case{"/verdict", "pass", "has a verdict that is better than that of one of its cells"},
        Case{"/verdict", "inconclusive", "is better than that of one of its cells"},
        Case{"/cells/0/verdict", "improved", "has a verdict that is better than its judgements"},
        Case{"/exit_code", 0, "has an exit code that is better than its verdict"}}) {
    Json altered = failed;
    altered[Json::json_pointer(place)] = value;
    const auto read = read_fields<GateVerdict>(altered, "verdict");
    ASSERT_FALSE(read) << place << value;
    EXPECT_THAT(read.error().message, HasSubstr(message));
  }
}

TEST(VerdictJson, SurvivesMutation) {
  const std::string good = dump_json(write_fields(full_gate()));
  std::mt19937 random(3);
  const std::string_view k_pieces[] = {"{}", "[]", "null", "-1", "1e308", "\"\"", "\"x %\""};
  std::size_t taken = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string text = good;
    const std::size_t colon = text.find(':', random() % text.size());
    const std::size_t end = text.find_first_of(",}", colon);
    if (end == std::string::npos) continue;
    text.replace(colon + 1, end - colon - 1, k_pieces[random() % std::size(k_pieces)]);
    const auto json = parse_json(text);
    if (!json) continue;
    const auto gate = read_fields<GateVerdict>(*json, "verdict");
    if (!gate) continue;
    ++taken;
    ASSERT_TRUE(read_fields<GateVerdict>(write_fields(*gate), "verdict")) << text;
  }
  EXPECT_GT(taken, 50U);
}

}  // namespace gate_test
}  // namespace weir::verdict
