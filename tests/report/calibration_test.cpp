// Tests the text of `weir calibrate`.
#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/text.hpp"
#include "gate/report/calibration_text.hpp"

#include "tests/report/support.hpp"

namespace weir::report {
namespace calibration_test {

using support::expect_golden;
using verdict::CalibratedCell;
using verdict::CalibratedMetric;
using verdict::Calibration;

CalibratedMetric make_metric(const char* name, double noise, const char* amount) {
  CalibratedMetric metric;
  metric.metric = *unit::find_metric(name);
  metric.limit = std::string("may drop ") + amount;
  metric.amount = amount;
  metric.tolerated = "2.5 %";
  metric.noise = noise;
  metric.base = {50.2, 49.1, 48.8, 46.0};
  metric.candidate = {50.4, 49.0, 48.9, 46.3};
  metric.decision = stats::Decision::pass;
  metric.decided_after = 21;
  metric.log_slower = 0.2;
  metric.log_beyond = 0;
  metric.log_within = std::log(112);
  return metric;
}

CalibratedCell make_cell(const char* name) {
  CalibratedCell cell;
  cell.cell = *profile::CellKey::parse(name);
  cell.machine_name = "AMD EPYC 9654 96-Core Processor, 2 cores, 24 GiB, debian 12";
  cell.date = "2026-11-20";
  cell.pairs = 40;
  cell.pair_seconds = 3.7;
  cell.metrics = {make_metric("decode_tokens_per_second", 0.042, "5 %")};
  cell.unchanged = {30.2, 58, 1};
  cell.at_limit = {27.9, 49, 1};
  cell.keeps_budget = true;
  return cell;
}

Calibration several() {
  Calibration calibration;
  calibration.date = "2026-11-20";
  calibration.base = "the same program by another path";
  calibration.budget_seconds = 600;
  calibration.false_alarm = 0.001;
  calibration.replays = 1000;
  calibration.max_failed_share = 0.003;
  CalibratedCell loud = make_cell("llama.cpp/tiny-llama/vulkan/decode");
  loud.metrics.push_back(
      make_metric("prefill_tokens_per_second", std::numeric_limits<double>::infinity(), "5 %"));
  loud.metrics[0].decision = stats::Decision::undecided;
  loud.metrics[1].decision = stats::Decision::fail;
  loud.metrics[1].log_slower = 30;
  loud.unchanged = {324, 324, 0.31};
  loud.at_limit = {310, 324, 0.5};
  loud.max_pairs = 324;
  loud.keeps_budget = false;
  CalibratedCell broken = make_cell("llama.cpp/tiny-llama/rx7900/decode");
  broken.error = "timed: the base program failed in 2 of its processes: exit 1";
  calibration.cells = {loud, broken, make_cell("llama.cpp/tiny-llama/cpu/decode")};
  calibration.answer =
      "This machine is too noisy for these limits: in more than 5 of 100 gates there is no verdict "
      "on llama.cpp/tiny-llama/vulkan/decode after 324 pairs.";
  return calibration;
}

TEST(CalibrationText, ShowsWhatHoldsAndWhatDoesNot) {
  expect_golden("calibration.txt", calibration_text(several(), {}));
}

TEST(CalibrationText, TellsWhatTwoBuildsDifferBy) {
  Calibration calibration = several();
  calibration.cells = {calibration.cells.back()};
  calibration.two_builds = true;
  calibration.measured_failed = 12;
  calibration.keeps_budget = true;
  calibration.answer = "This machine can hold 5 % within gate.budget (10 m 0 s).";
  calibration.base = "HEAD, 1a2b3c4 \"Faster\"";
  calibration.notes = {"built in 41 s"};
  expect_golden("calibration_two_builds.txt", calibration_text(calibration, {}));
}

TEST(CalibrationText, StaysWithinItsWidthAndMakesNamesInert) {
  Calibration calibration = several();
  calibration.base = "the command a\x1b[31m\n::error::b";
  calibration.cells[1].error = "\x1b]0;x\x07 ::warning::\n::error::";
  for (const int width : {40, 80, 120}) {
    for (const std::string& line : text::lines(calibration_text(calibration, {width, false}))) {
      EXPECT_LE(text::columns(line), static_cast<std::size_t>(width)) << line;
      EXPECT_EQ(line.find('\x1b'), std::string::npos) << line;
      EXPECT_FALSE(line.starts_with("::")) << line;
    }
  }
}

}  // namespace calibration_test
}  // namespace weir::report
