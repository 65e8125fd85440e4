// Tests the results of an A/A comparison, with invented pairs.
#include "gate/verdict/calibration.hpp"

#include <cmath>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/json.hpp"

#include "tests/verdict/build.hpp"

namespace weir::verdict {
namespace calibration_test {

using namespace test;
using ::testing::HasSubstr;

constexpr const char* k_rate = "decode_tokens_per_second";

struct Machine {
  double noise = 0.01;  // standard deviation of each run's logarithm
  double factor = 1;    // candidate's rate over the base's
  std::int64_t pairs = 40;
  double pair_seconds = 2;
};

profile::CellFacts make_facts(const std::string& prompt) {
  profile::CellFacts facts;
  facts.cell = *profile::CellKey::parse("llama.cpp/tiny/cpu/" + prompt);
  facts.device = "cpu";
  facts.provenance.fingerprint = "print-of-" + prompt;
  facts.provenance.machine_class = "cpu-epyc-2-24";
  return facts;
}

profile::PairedRuns make_runs(const Machine& machine) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  profile::PairedRuns runs;
  runs.warm = true;
  runs.pairs = machine.pairs;
  runs.seconds = machine.pair_seconds * static_cast<double>(machine.pairs + 1);
  profile::PairedMetric metric{*unit::find_metric(k_rate), "llama-bench", {100, 100, true}, {}};
  for (std::int64_t i = 0; i < machine.pairs; ++i) {
    const double base = 100 * std::exp(machine.noise * normal(random));
    const double candidate = 100 * machine.factor * std::exp(machine.noise * normal(random));
    metric.pairs.push_back({base, candidate, (random() & 1U) != 0});
  }
  runs.metrics.push_back(std::move(metric));
  return runs;
}

CalibrationFacts calibration_facts() {
  CalibrationFacts facts;
  facts.date = "2026-11-20";
  facts.budget_seconds = 600;
  facts.replays = 200;
  return facts;
}

Calibration calibration_with(const std::vector<Machine>& machines,
                             const CalibrationFacts& facts = calibration_facts(),
                             std::vector<LimitEntry> limits = {}) {
  std::vector<profile::CellFacts> cells;
  std::vector<profile::PairedRuns> runs;
  for (const Machine& machine : machines) {
    cells.push_back(make_facts("p" + std::to_string(cells.size())));
    runs.push_back(make_runs(machine));
  }
  return calibrate(facts, cells, runs, limits, {});
}

TEST(Calibrate, SaysThatAQuietMachineHoldsTheLimit) {
  const Calibration calibration = calibration_with({{}});
  ASSERT_EQ(calibration.cells.size(), 1U);
  const CalibratedCell& cell = calibration.cells.front();
  EXPECT_TRUE(calibration.keeps_budget);
  EXPECT_TRUE(cell.keeps_budget);
  EXPECT_EQ(calibration.failed, 0);
  EXPECT_NEAR(calibration.max_failed_share, 0.0149, 0.0001);  // 1 - 0.05^(1/200)
  EXPECT_NEAR(cell.metrics.at(0).noise, 0.01 * std::sqrt(2.0), 0.005);
  EXPECT_EQ(cell.metrics.at(0).decision, stats::Decision::pass);
  EXPECT_EQ(cell.metrics.at(0).amount, "5 %");
  EXPECT_GE(cell.unchanged.mean, 8);
  EXPECT_LT(cell.unchanged.p95, 40);
  EXPECT_DOUBLE_EQ(cell.pair_seconds, 2);
  EXPECT_DOUBLE_EQ(calibration.unchanged.mean, cell.unchanged.mean * 2);
  EXPECT_THAT(calibration.answer, HasSubstr("can hold 5 % within gate.budget (10 m 0 s)"));
}

TEST(Calibrate, SaysWhichBudgetWouldDo) {
  CalibrationFacts facts = calibration_facts();
  facts.budget_seconds = 20;
  const Calibration calibration = calibration_with({{.noise = 0.02}, {.noise = 0.02}}, facts);
  EXPECT_FALSE(calibration.keeps_budget);
  EXPECT_THAT(calibration.answer, HasSubstr("cannot hold these limits within gate.budget (20 s)"));
  EXPECT_THAT(calibration.answer, HasSubstr("would do"));
  EXPECT_THAT(calibration.answer, HasSubstr("Too long even alone: llama.cpp/tiny/cpu/p0, "));
}

TEST(Calibrate, SaysWhereNoBudgetWouldDo) {
  const Calibration calibration = calibration_with({{.noise = 0.6}, {}});
  EXPECT_FALSE(calibration.keeps_budget);
  EXPECT_FALSE(calibration.cells[0].keeps_budget);
  EXPECT_TRUE(calibration.cells[1].keeps_budget);
  EXPECT_LT(calibration.cells[0].unchanged.decided, 0.95);
  EXPECT_EQ(calibration.replays, 20);  // more would only take time
  EXPECT_THAT(calibration.answer, HasSubstr("too noisy for these limits"));
  EXPECT_THAT(calibration.answer,
              HasSubstr("no verdict on llama.cpp/tiny/cpu/p0 after 600 pairs."));
}

TEST(Calibrate, OfTwoBuildsThatDifferSaysHowManyGatesWouldFail) {
  CalibrationFacts facts = calibration_facts();
  facts.two_builds = true;
  const Calibration differ = calibration_with({{.factor = 0.8}}, facts);
  EXPECT_EQ(differ.measured_failed, 200);
  EXPECT_EQ(differ.failed, 0);  // the known difference is removed
  EXPECT_EQ(differ.cells[0].metrics[0].decision, stats::Decision::fail);
  EXPECT_THAT(differ.notes.at(0), HasSubstr("two builds of one source differ: decode tok/s of "));
  EXPECT_EQ(calibration_with({{}}, facts).measured_failed, 0);
  EXPECT_TRUE(calibration_with({{}}, facts).notes.empty());
  EXPECT_THAT(calibration_with({{.factor = 0.8}}).notes.at(0),
              HasSubstr("failed beside itself, which chance does in at most 0.1 % of gates"));
}

TEST(Calibrate, IsTheSameForTheSameSeed) {
  EXPECT_EQ(to_json(calibration_with({{.noise = 0.03}})),
            to_json(calibration_with({{.noise = 0.03}})));
}

TEST(Calibrate, NeedsPairsEnough) {
  const Calibration calibration = calibration_with({{.pairs = 9}});
  EXPECT_FALSE(calibration.keeps_budget);
  EXPECT_THAT(calibration.cells[0].error.value_or(""), HasSubstr("9 of 16 pairs"));
  EXPECT_THAT(calibration.answer, HasSubstr("no cell could be measured"));
}

TEST(Calibrate, ACellOfWhichNothingIsKnownIsAnErrorAndNotLeftOut) {
  const profile::CellFacts cell = make_facts("p0");
  profile::PairedRuns runs;
  const auto error = [&] {
    const auto calibration = calibrate(calibration_facts(), {&cell, 1}, {&runs, 1}, {}, {});
    return calibration.cells.empty() ? "left out"
                                     : calibration.cells.front().error.value_or("none");
  };
  EXPECT_EQ(error(), "it was not run");
  runs.warm = true;
  EXPECT_EQ(error(), "its warm-ups reported no time");
  runs.warnings = {"a warm-up of the candidate counts as infinitely slow: exited with code 1"};
  EXPECT_EQ(error(), runs.warnings.front());
  runs.error = "timed: both programs time out";
  EXPECT_EQ(error(), *runs.error);
}

TEST(Calibrate, NotesTheLineOverDepthsAndDoesNotReplayIt) {
  profile::CellFacts line;
  line.cell = *profile::CellKey::parse("llama.cpp/tiny/cpu/long");
  const profile::CellFacts cells[] = {make_facts("long@d0"), make_facts("long@d256"), line};
  const profile::PairedRuns runs[] = {make_runs({}), make_runs({}), make_runs({})};
  const auto calibration = calibrate(calibration_facts(), cells, runs, {}, {});
  EXPECT_EQ(calibration.cells.size(), 2U);
  EXPECT_EQ(calibration.timed_metrics, 3);
  EXPECT_THAT(calibration.notes.at(0),
              HasSubstr("llama.cpp/tiny/cpu/long: the line over its depths"));
}

TEST(Calibrate, LeavesOutWhatNoTimedLimitGates) {
  LimitEntry only_shown = entry({k_rate});
  only_shown.mode = Mode::report;
  const Calibration calibration = calibration_with({{}}, calibration_facts(), {only_shown});
  EXPECT_TRUE(calibration.cells.empty());
  EXPECT_FALSE(calibration.keeps_budget);
  EXPECT_THAT(calibration.answer, HasSubstr("No timed limit"));
}

TEST(CalibratedCell, ComesBackFromWhatIsStored) {
  const CalibratedCell cell = calibration_with({{.noise = 0.03}}).cells.at(0);
  const auto read = calibrated_cell_from_json(write_fields(cell));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(words(*read), words(cell));
  EXPECT_EQ(read->fingerprint, "print-of-p0");
  EXPECT_TRUE(still_holds(*read, {}));
  for (const char* bad : {"{}", R"({"schema": "weir.calibrated_cell/1"})", "[1]",
                          R"({"schema": "weir.calibrated_cell/2", "cell": "a/b/c/d"})"}) {
    EXPECT_FALSE(calibrated_cell_from_json(*parse_json(bad))) << bad;
  }
}

TEST(CalibratedCell, SaysInAFewWordsWhatALimitTakes) {
  CalibratedCell cell;
  cell.date = "2026-11-20";
  cell.pair_seconds = 3.7;
  cell.unchanged.mean = 30.2;
  cell.at_limit.mean = 34;
  cell.metrics.resize(1);
  cell.metrics[0].amount = "5 %";
  EXPECT_EQ(words(cell),
            "calibrated 2026-11-20 on this machine: 5 % takes about 34 pairs, 2 m 6 s");
}

TEST(CalibratedCell, HoldsNoLongerWhenTheLimitChanges) {
  const CalibratedCell cell = calibration_with({{}}).cells.at(0);
  LimitEntry limit = entry({k_rate});
  limit.max_drop = Amount{0.10, true};
  EXPECT_FALSE(still_holds(cell, {&limit, 1}));
  limit.max_drop = Amount{0.05, true};
  EXPECT_TRUE(still_holds(cell, {&limit, 1}));
  limit.tolerate = Amount{0.01, true};
  EXPECT_FALSE(still_holds(cell, {&limit, 1}));
}

}  // namespace calibration_test
}  // namespace weir::verdict
