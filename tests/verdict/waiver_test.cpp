// Tests waivers: they cover exactly the waived change, for its pull request and its time, and
// nothing else.
#include "gate/verdict/waiver.hpp"

#include <gmock/gmock.h>

#include "gate/base/json.hpp"

#include "build.hpp"

namespace weir::verdict {
namespace waiver_test {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* k_cell = "llama.cpp/tiny/vulkan/decode";
const std::string k_head(40, 'a');

Judgement count(const std::string& name, const std::string& from, const std::string& to) {
  Judgement metric;
  metric.metric = *unit::find_metric(name);
  metric.verdict = Outcome::fail;
  metric.baseline_text = from;
  metric.current_text = to;
  metric.baseline = Rational::parse(from)->value();
  metric.current = Rational::parse(to)->value();
  metric.limit.exact = true;
  metric.reason = "grew";
  return metric;
}

Judgement rate(double change, double low, double high) {
  Judgement metric;
  metric.metric = *unit::find_metric("decode_tokens_per_second");
  metric.verdict = Outcome::fail;
  metric.change = change;
  metric.low = low;
  metric.high = high;
  return metric;
}

CellVerdict failing(std::vector<Judgement> metrics) {
  CellVerdict cell;
  cell.cell = *profile::CellKey::parse(k_cell);
  cell.device_class = "vulkan-1";
  cell.judgements = std::move(metrics);
  cell.verdict = Outcome::fail;
  return cell;
}

Waiver waived(const std::string& metric, const std::string& from, const std::string& to) {
  return {{k_cell, metric, from, to}, 12, k_head, "a new fusion", "ada", "2026-12-31"};
}

const WaiverContext k_gate{{{12, k_head}}, 12, {}, "2026-11-20", {}, "main"};

TEST(Waivers, WaiveExactlyTheValueThatTheyName) {
  std::vector<CellVerdict> cells{failing({count("dispatches_per_token", "65", "77")})};
  EXPECT_THAT(apply_waivers({waived("dispatches_per_token", "65", "77")}, k_gate, cells),
              IsEmpty());
  EXPECT_EQ(cells[0].verdict, Outcome::waived);
  EXPECT_EQ(cells[0].judgements[0].reason, "waived by ada until 2026-12-31: a new fusion (grew)");
  EXPECT_EQ(judge_gate(cells, {}).exit_code, ExitCode::pass);
}

TEST(Waivers, OfOnePersonForOneReasonAreSaidInFullOnceACell) {
  std::vector<CellVerdict> cells{
      failing({count("dispatches_per_token", "65", "77"), count("barriers_per_token", "46", "58"),
               count("syncs_per_token", "2", "3")})};
  Waiver syncs = waived("syncs_per_token", "2", "3");
  syncs.reason = "one more read";
  // In any order, the first row reports it.
  EXPECT_THAT(apply_waivers({syncs, waived("barriers_per_token", "46", "58"),
                             waived("dispatches_per_token", "65", "77")},
                            k_gate, cells),
              IsEmpty());
  EXPECT_EQ(cells[0].verdict, Outcome::waived);
  EXPECT_EQ(cells[0].judgements[0].reason, "waived by ada until 2026-12-31: a new fusion (grew)");
  EXPECT_EQ(cells[0].judgements[1].reason, "waived by ada (grew)");
  EXPECT_EQ(cells[0].judgements[2].reason, "waived by ada until 2026-12-31: one more read (grew)");
}

// In a merge queue and on a push the change of a pull request is judged as a part of others.
TEST(Waivers, OfAPullRequestThatIsMergedHoldAndNameIt) {
  WaiverContext gate = k_gate;
  gate.pull_request.reset();
  std::vector<CellVerdict> cells{failing({count("dispatches_per_token", "65", "77")})};
  const Waiver waiver = waived("dispatches_per_token", "65", "77");
  EXPECT_THAT(apply_waivers({waiver}, gate, cells), IsEmpty());
  EXPECT_EQ(cells[0].judgements[0].reason,
            "waived for pull request 12 by ada until 2026-12-31: a new fusion (grew)");
  // The base has the change already: then only a stored baseline may lack it.
  gate.in_base = {12};
  cells = {failing({count("dispatches_per_token", "65", "77")})};
  EXPECT_THAT(apply_waivers({waiver}, gate, cells), IsEmpty());
  EXPECT_EQ(cells[0].verdict, Outcome::fail);
  cells[0].is_stored = true;
  EXPECT_THAT(apply_waivers({waiver}, gate, cells), IsEmpty());
  EXPECT_EQ(cells[0].verdict, Outcome::waived);
  gate.in_base.clear();
  // Not one more change of the same metric.
  cells = {failing({count("dispatches_per_token", "77", "80")})};
  EXPECT_THAT(apply_waivers({waiver}, gate, cells), SizeIs(1));
  EXPECT_EQ(cells[0].verdict, Outcome::fail);
}

TEST(Waivers, AreVoidForAnythingElse) {
  const auto waiver_with = [](auto change) {
    Waiver waiver = waived("dispatches_per_token", "65", "77");
    change(waiver);
    return waiver;
  };
  const struct {
    const char* name;
    Waiver waiver;
    const char* message;  // "": no report needed
  } cases[] = {
      {"another value", waived("dispatches_per_token", "65", "78"), "is 65 → 77 now"},
      {"from another value", waived("dispatches_per_token", "64", "77"), "is 65 → 77 now"},
      {"another metric", waived("barriers_per_token", "65", "77"), ""},
      {"another cell", waiver_with([](Waiver& waiver) { waiver.what.cell = "a/b/c/d"; }), ""},
      {"another device class",
       waiver_with([](Waiver& waiver) { waiver.what.device_class = "vulkan-2"; }), ""},
      {"another pull request", waiver_with([](Waiver& waiver) { waiver.pull_request = 13; }),
       "is for pull request 13"},
      {"a later push", waiver_with([](Waiver& waiver) { waiver.head = std::string(40, 'b'); }),
       "is for commit bbbbbbb, and another was pushed since"},
      {"another base", waiver_with([](Waiver& waiver) { waiver.base = "release"; }),
       "is for pull requests into release"},
      {"too late", waiver_with([](Waiver& waiver) { waiver.until = "2026-11-19"; }),
       "was until 2026-11-19"},
  };
  for (const auto& c : cases) {
    std::vector<CellVerdict> cells{failing({count("dispatches_per_token", "65", "77")})};
    const auto messages = apply_waivers({c.waiver}, k_gate, cells);
    EXPECT_EQ(cells[0].verdict, Outcome::fail) << c.name;
    EXPECT_EQ(judge_gate(cells, {}).exit_code, ExitCode::fail) << c.name;
    if (*c.message == '\0') {
      EXPECT_THAT(messages, IsEmpty()) << c.name;
    } else {
      ASSERT_THAT(messages, SizeIs(1)) << c.name;
      EXPECT_THAT(messages[0], HasSubstr(c.message)) << c.name;
    }
  }
}

TEST(Waivers, HoldOnTheirLastDayAndWithoutACommitForAnyOfThePullRequest) {
  Waiver waiver = waived("dispatches_per_token", "65", "77");
  waiver.until = k_gate.today;
  waiver.base = k_gate.base;
  waiver.head.reset();
  std::vector<CellVerdict> cells{failing({count("dispatches_per_token", "65", "77")})};
  (void)apply_waivers({waiver}, k_gate, cells);
  EXPECT_EQ(cells[0].verdict, Outcome::waived);
}

TEST(Waivers, OfSomeFailsLeaveTheOthers) {
  std::vector<CellVerdict> cells{
      failing({count("dispatches_per_token", "65", "77"), count("syncs_per_token", "1", "2")})};
  (void)apply_waivers({waived("dispatches_per_token", "65", "77")}, k_gate, cells);
  EXPECT_EQ(cells[0].judgements[0].verdict, Outcome::waived);
  EXPECT_EQ(cells[0].verdict, Outcome::fail);
}

TEST(Waivers, OfATimeHoldDownToTheirBound) {
  const struct {
    double change;
    Outcome verdict;
  } cases[] = {{-0.09, Outcome::waived}, {-0.12, Outcome::waived}, {-0.121, Outcome::fail}};
  for (const auto& c : cases) {
    std::vector<CellVerdict> cells{failing({rate(c.change, c.change - 0.02, c.change + 0.02)})};
    (void)apply_waivers({waived("decode_tokens_per_second", "0 %", "-12.0 %")}, k_gate, cells);
    EXPECT_EQ(cells[0].verdict, c.verdict) << c.change;
  }
}

TEST(Waivers, OfATimeThatMayNotRiseHoldUpToTheirBound) {
  const auto slower = [](double change) {
    Judgement metric = rate(change, change - 0.02, change + 0.015);
    metric.metric = *unit::find_metric("load_seconds");
    return failing({metric});
  };
  GateVerdict gate;
  gate.cells = {slower(0.5)};
  const NeededWaivers needed = needed_waivers(gate);
  ASSERT_THAT(needed.changes, SizeIs(1));
  EXPECT_EQ(needed.changes[0].to, "+51.5 %");
  const struct {
    double change;
    Outcome verdict;
  } cases[] = {{0.5, Outcome::waived},
               {0.515, Outcome::waived},
               {0.1, Outcome::waived},
               {0.52, Outcome::fail},
               {5, Outcome::fail}};
  for (const auto& c : cases) {
    std::vector<CellVerdict> cells{slower(c.change)};
    (void)apply_waivers({waived("load_seconds", "0 %", "+51.5 %")}, k_gate, cells);
    EXPECT_EQ(cells[0].verdict, c.verdict) << c.change;
  }
}

TEST(Waivers, OfACountThatOnlyNearlyRepeatsAreForOneDirection) {
  const auto counted = [](double change) {
    Judgement metric = rate(change, 0, 0);
    metric.metric = *unit::find_metric("instructions_per_token");
    metric.low.reset();
    metric.high.reset();
    return metric;
  };
  const struct {
    const char* bound;
    double change;
    Outcome verdict;
  } cases[] = {{"+2.0 %", 0.02, Outcome::waived},
               {"+2.0 %", 0.03, Outcome::fail},
               {"+2.0 %", -0.5, Outcome::fail},
               {"+0.0 %", -0.5, Outcome::fail}};
  for (const auto& c : cases) {
    std::vector<CellVerdict> cells{failing({counted(c.change)})};
    (void)apply_waivers({waived("instructions_per_token", "0 %", c.bound)}, k_gate, cells);
    EXPECT_EQ(cells[0].verdict, c.verdict) << c.bound << " " << c.change;
  }
}

TEST(Waivers, OfACountThatVariesHoldForItsValuesAlone) {
  const auto varying = [](const char* to) {
    Judgement metric = count("dispatches_per_token", "10", "10");
    metric.current_text = to;
    metric.change = 0;
    return failing({metric});
  };
  GateVerdict gate;
  gate.cells = {varying("10 to 11")};
  const NeededWaivers needed = needed_waivers(gate);
  ASSERT_THAT(needed.changes, SizeIs(1));
  EXPECT_EQ(needed.changes[0].from, "10");
  EXPECT_EQ(needed.changes[0].to, "10 to 11");
  const struct {
    const char* waived;
    const char* current;
    Outcome verdict;
  } cases[] = {
      {"10 to 11", "10 to 11", Outcome::waived}, {"10 to 11", "11", Outcome::waived},
      {"10 to 12", "10 to 11", Outcome::waived}, {"10 to 11", "10 to 12", Outcome::fail},
      {"10 to 11", "9 to 11", Outcome::fail},    {"10 to 11", "12", Outcome::fail},
      {"11", "10 to 11", Outcome::fail},         {"9.5 to 11", "9.75 to 11", Outcome::waived}};
  for (const auto& c : cases) {
    std::vector<CellVerdict> cells{varying(c.current)};
    (void)apply_waivers({waived("dispatches_per_token", "10", c.waived)}, k_gate, cells);
    EXPECT_EQ(cells[0].verdict, c.verdict) << c.waived << " now " << c.current;
  }
  // A verdict that was read may show other values than it holds.
  gate.cells[0].judgements[0].current = 500;
  EXPECT_THAT(needed_waivers(gate).changes, IsEmpty());
}

TEST(Waivers, OfKernelsNameEachOfThem) {
  CellVerdict cell = failing({});
  cell.put("kernels").verdict = Outcome::fail;
  cell.put("kernels").changed = {{"mul", {}, Rational(9)}, {"fused", Rational(9), {}}};
  GateVerdict gate;
  gate.cells = {cell};
  const NeededWaivers take = needed_waivers(gate);
  ASSERT_THAT(take.changes, SizeIs(1));
  EXPECT_EQ(take.changes[0].from, "9 launches of 1 kernel");
  EXPECT_EQ(take.changes[0].to, "9 launches of 1 kernel");
  Waiver waiver{take.changes[0], 12, k_head, "r", "ada", "2026-12-31"};
  std::vector<CellVerdict> cells{cell};
  (void)apply_waivers({waiver}, k_gate, cells);
  EXPECT_EQ(cells[0].verdict, Outcome::waived);
  waiver.what.from = "9 of 2 kernels";  // the kernels count, not the text
  cells = {cell};
  (void)apply_waivers({waiver}, k_gate, cells);
  EXPECT_EQ(cells[0].verdict, Outcome::waived);
  waiver.what.kernels[0].name = "other";
  cells = {cell};
  EXPECT_THAT(apply_waivers({waiver}, k_gate, cells), SizeIs(1));
  EXPECT_EQ(cells[0].verdict, Outcome::fail);
}

TEST(Waivers, AreNotForWhatRanElsewhereOrWasNotMeasured) {
  CellVerdict cell = failing({count("dispatches_per_token", "65", "77")});
  cell.put("placement").verdict = Outcome::fail;
  CellVerdict broken = failing({});
  broken.verdict = Outcome::error;
  broken.reason = "crashed";
  GateVerdict gate;
  gate.cells = {cell, broken};
  const NeededWaivers take = needed_waivers(gate);
  EXPECT_THAT(take.changes, SizeIs(1));
  EXPECT_THAT(take.beyond, SizeIs(2));
  gate.cells[0].ran_elsewhere = true;
  EXPECT_THAT(needed_waivers(gate).changes, IsEmpty()) << "its counts follow from where it ran";
  EXPECT_THAT(needed_waivers(gate).beyond, SizeIs(2));
  EXPECT_TRUE(waiver_problem({{k_cell, "placement", "a", "b"}, 12, {}, "r", "ada", "2026-12-31"}));
}

TEST(WhatCouldBeWaived, IsNothingThatReportsDoNotShow) {
  Judgement judgement = count("dispatches_per_token", "65", "66");
  judgement.current_text = "500";  // reports show 66
  CellVerdict quiet = failing({count("syncs_per_token", "1", "2")});
  quiet.verdict = Outcome::pass;
  for (const CellVerdict& cell : {failing({judgement}), quiet}) {
    GateVerdict gate;
    gate.cells = {cell};
    EXPECT_THAT(needed_waivers(gate).changes, IsEmpty());
    EXPECT_THAT(needed_waivers(gate).beyond, SizeIs(1));
  }
}

// The count was above its "max" before. There is no change to waive, but the others can be
// waived.
TEST(WhatCouldBeWaived, IsNotWhatBreaksALimitUnchanged) {
  GateVerdict gate;
  gate.cells = {
      failing({count("syncs_per_token", "9", "9"), count("dispatches_per_token", "65", "77")})};
  EXPECT_THAT(needed_waivers(gate).changes, SizeIs(1));
  EXPECT_THAT(needed_waivers(gate).beyond, SizeIs(1));
}

TEST(WhatCouldBeWaived, SaysWhatAFailHidesInItsCell) {
  CellVerdict crashed = failing({count("syncs_per_token", "1", "2")});
  crashed.reason = "the timed pass ended by SIGSEGV";
  CellVerdict open = failing({count("syncs_per_token", "1", "2"), rate(-0.04, -0.09, 0.01)});
  open.judgements[1].verdict = Outcome::inconclusive;
  GateVerdict gate;
  gate.cells = {crashed};
  EXPECT_THAT(needed_waivers(gate).beyond, SizeIs(1));
  gate.cells = {open};
  EXPECT_THAT(needed_waivers(gate).beyond, IsEmpty());
  gate.fail_on_inconclusive = true;
  EXPECT_THAT(needed_waivers(gate).beyond, SizeIs(1));
}

TEST(Waivers, AreTheSameWhenReadBackAndKeptInOneOrder) {
  Waiver kernels = waived("kernels", "9 of 1 kernels", "8 of 1 kernels");
  kernels.what.kernels = {{"mul", Rational(9), Rational(8)}};
  const std::vector<Waiver> all{kernels, waived("dispatches_per_token", "65", "133/2")};
  const std::string text = to_text(12, all);
  const auto back = parse_waivers(text, 12);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(to_text(12, *back), text);
  EXPECT_EQ((*back)[0].what, all[1].what);
  EXPECT_EQ((*back)[1].what, kernels.what);
  EXPECT_FALSE(parse_waivers(text, 13));
  EXPECT_EQ(with_waivers(all, {waived("dispatches_per_token", "65", "80")}).size(), 2U);
}

TEST(Waivers, ForANewCommitReplaceThoseForOlderOnes) {
  const auto pinned = [](const char* metric, char digit) {
    Waiver waiver = waived(metric, "65", "80");
    waiver.head = std::string(40, digit);
    return waiver;
  };
  Waiver everywhere = waived("syncs_per_token", "1", "2");
  everywhere.head.reset();
  Waiver elsewhere = pinned("copies_per_token", 'a');
  elsewhere.base = "release";
  const auto left =
      with_waivers({pinned("dispatches_per_token", 'a'), everywhere, elsewhere},
                   {pinned("barriers_per_token", 'b'), pinned("copies_per_token", 'b')});
  EXPECT_EQ(left.size(), 4U) << "the one of commit aaaa… for this base is gone";
  EXPECT_EQ(std::ranges::count(left, std::string("dispatches_per_token"),
                               [](const Waiver& waiver) { return waiver.what.metric; }),
            0);
}

TEST(Waivers, ThatAreNotWhatTheyShouldBeAreNone) {
  const Json good = *parse_json(to_text(12, {waived("dispatches_per_token", "65", "77")}));
  const struct {
    const char* pointer;
    Json value;
  } cases[] = {
      {"/schema", "weir.verdict/1"},
      {"/pull_request", "12"},
      {"/waivers", Json::object()},
      {"/waivers/0/cell", "../../etc/passwd"},
      {"/waivers/0/from", ""},
      {"/waivers/0/to", std::string(101, '7')},
      {"/waivers/0/to", "7\n7"},
      {"/waivers/0/metric", "placement"},
      {"/waivers/0/until", "soon"},
      {"/waivers/0/until", "2026-13-01"},
      {"/waivers/0/who", "ada <a@b>"},
      {"/waivers/0/who", nullptr},
      {"/waivers/0/reason", " "},
      {"/waivers/0/reason", std::string(2000, 'x')},
      {"/waivers/0/head", "HEAD"},
      {"/waivers/0/kernels", Json::array({{{"name", "k"}, {"from", "1/0"}}})},
  };
  ASSERT_TRUE(parse_waivers(dump_json(good), 12));
  for (const auto& c : cases) {
    Json bad = good;
    bad[Json::json_pointer(c.pointer)] = c.value;
    EXPECT_FALSE(parse_waivers(dump_json(bad), 12)) << c.pointer << " = " << c.value;
  }
  EXPECT_FALSE(parse_waivers(std::string(9 << 20, ' '), 12));
  EXPECT_FALSE(parse_waivers("[[[[[[[[[[[[", 12));
}

TEST(WhatCouldBeWaived, SurvivesTheCheckRunWhateverNamesAreInIt) {
  NeededWaivers take;
  take.changes.push_back({k_cell,
                          "kernels",
                          "1 of 1 kernels",
                          "2 of 1 kernels",
                          "vulkan-1",
                          {{"evil\n```\n`x` -->", Rational(1), Rational(2)}}});
  take.beyond = {"more"};
  take.rules = RulesFrom{"`origin/main`", std::string(40, 'd'), std::string(64, 'e'), true};
  const std::string text = waivable_text(take, 60'000);
  EXPECT_EQ(text.find("```", text.find("```json") + 3), text.rfind("```"));
  const auto back = parse_waivable_text(text);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->changes, take.changes);
  EXPECT_EQ(back->beyond, take.beyond);
  EXPECT_EQ(write_fields(*back), write_fields(take));
  EXPECT_EQ(text.find("except the pull request's author"), std::string::npos);
  take.rules->waive_own = false;
  EXPECT_NE(waivable_text(take, 60'000).find("except the pull request's author"),
            std::string::npos);
  const std::string cut = waivable_text(take, 300);
  EXPECT_LE(cut.size(), 500U);  // includes both hashes of the rules
  EXPECT_THAT(parse_waivable_text(cut)->changes, IsEmpty());
  EXPECT_EQ(waivable_text({}, 1000), "");
}

TEST(WhatWasWaived, BecomesTheBaselineWhereThatHoldsTheValueBefore) {
  profile::Profile profile;
  test::add_count(profile, "dispatches_per_token", Rational(65));
  baseline::Baseline stored;
  stored.cell = k_cell;
  stored.device_class = "vulkan-1";
  stored.counts = profile.metrics;
  stored.kernels = profile::KernelSet{};
  stored.kernels->counts = {{"fused", Rational(9)}, {"add", Rational(1)}};
  const auto now = apply_to_baseline({k_cell, "dispatches_per_token", "65", "77"}, stored);
  ASSERT_TRUE(now);
  EXPECT_EQ(now->counts.at("dispatches_per_token").exact->str(), "77");
  EXPECT_FALSE(apply_to_baseline({k_cell, "dispatches_per_token", "64", "77"}, stored));
  EXPECT_FALSE(apply_to_baseline({k_cell, "dispatches_per_token", "65", "77", "vulkan-2"}, stored));
  EXPECT_FALSE(apply_to_baseline({k_cell, "decode_tokens_per_second", "0 %", "-9.0 %"}, stored));
  EXPECT_FALSE(apply_to_baseline({k_cell, "dispatches_per_token", "65", "65 to 66"}, stored));
  const auto kernels = apply_to_baseline(
      {k_cell, "kernels", "9", "9", "", {{"fused", Rational(9), {}}, {"mul", {}, Rational(9)}}},
      stored);
  ASSERT_TRUE(kernels);
  EXPECT_EQ(kernels->kernels->counts,
            (std::map<std::string, Rational>{{"add", Rational(1)}, {"mul", Rational(9)}}));
  EXPECT_FALSE(
      apply_to_baseline({k_cell, "kernels", "9", "9", "", {{"fused", Rational(8), {}}}}, stored));
}

}  // namespace waiver_test
}  // namespace weir::verdict
