// Latency against load, for a page; and what a server says of itself. Numbers are invented.
#include "gate/report/load_curves.hpp"

#include <gmock/gmock.h>

#include "gate/report/html.hpp"
#include "gate/report/requests_figure.hpp"
#include "gate/report/terminal.hpp"

#include "tests/report/fixtures.hpp"
#include "tests/report/support.hpp"

namespace weir::report {
namespace load_curves_test {

using testing::HasSubstr;
using testing::Not;
using verdict::CellVerdict;
using verdict::GateVerdict;
using verdict::MetricVerdict;

void add_time(CellVerdict& cell, const std::string& name, double value) {
  const bool rate = name.ends_with("per_second");
  MetricVerdict& made = cell.metrics.emplace_back();
  made.metric = unit::custom_metric(name, unit::Kind::time,
                                    rate ? unit::Unit::tokens_per_second : unit::Unit::seconds,
                                    rate ? unit::Better::higher : unit::Better::lower);
  made.source = "requests";
  made.current = value;
  made.samples = 3;
}

CellVerdict serving(std::int64_t concurrency, double first_token, double per_token, double rate) {
  CellVerdict cell;
  cell.cell = fixtures::key("tiny-llama", "cpu", "chat");
  cell.cell.engine = "llama-server";
  cell.cell.concurrency = concurrency;
  cell.device = "cpu";
  const std::pair<const char*, double> percentiles[] = {{"", 1}, {"_p90", 1.5}, {"_p99", 1.8}};
  for (const auto& [name, factor] : percentiles) {
    add_time(cell, fmt::format("time_to_first_token{}_seconds", name), first_token * factor);
    add_time(cell, fmt::format("time_per_output_token{}_seconds", name), per_token * factor);
  }
  add_time(cell, "output_tokens_per_second", rate);
  return cell;
}

GateVerdict served() {
  GateVerdict gate;
  gate.config = "weir.yaml";
  gate.cells = {serving(16, 0.21, 0.034, 402), serving(1, 0.018, 0.008, 118),
                serving(4, 0.047, 0.013, 290)};
  gate.cells[0].server = {
      {"llamacpp:n_busy_slots_per_decode", profile::ServerFigure::Kind::gauge, 3.75},
      {"llamacpp:tokens_predicted_total", profile::ServerFigure::Kind::counter, 4096},
      {"vllm:<b>\"ttft\"", profile::ServerFigure::Kind::mean, 0.0314}};
  gate.totals["pass"] = 3;
  return gate;
}

TEST(LoadCurves, AreThoseOfAPromptMeasuredAtSeveralConcurrenciesInTheirOrder) {
  GateVerdict gate = served();
  CellVerdict alone = serving(1, 0.02, 0.01, 90);
  alone.cell.prompt = "once";
  CellVerdict failed = serving(64, 0, 0, 0);
  failed.metrics.clear();
  gate.cells.push_back(alone);
  gate.cells.push_back(failed);
  gate.cells.push_back(fixtures::passing(fixtures::key("tiny-llama", "cpu", "decode")));
  const auto curves = load_curves(gate);
  ASSERT_EQ(curves.size(), 1U);
  EXPECT_EQ(curves[0].cell.str(), "llama-server/tiny-llama/cpu/chat");
  ASSERT_EQ(curves[0].points.size(), 3U);
  EXPECT_EQ(curves[0].points[0].concurrency, 1);
  EXPECT_EQ(curves[0].points[2].concurrency, 16);
  EXPECT_EQ(curves[0].points[1].first_token[0], 0.047);
  EXPECT_EQ(curves[0].points[1].tokens_per_second, 290);
}

TEST(LoadCurves, AreToldInWordsAndAsATableAsWell) {
  const std::string figure = load_figure(load_curves(served()).at(0));
  EXPECT_THAT(figure, HasSubstr("<title>time to first token against concurrency</title>"));
  EXPECT_THAT(figure, HasSubstr("p50: 18 ms at 1, 210 ms at 16"));
  EXPECT_THAT(figure, HasSubstr("<th scope=\"row\">4 at once</th><td class=\"number\">47 ms</td>"));
  EXPECT_THAT(figure, HasSubstr("402 tok/s"));
}

TEST(LoadCurves, HaveThatOfTheBaseBesideThem) {
  GateVerdict gate = served();
  EXPECT_THAT(load_figure(load_curves(gate).at(0)), Not(HasSubstr("class=\"base\"")));
  for (CellVerdict& cell : gate.cells) {
    for (MetricVerdict& metric : cell.metrics) metric.baseline = *metric.current / 2;
  }
  const std::string figure = load_figure(load_curves(gate).at(0));
  EXPECT_THAT(figure, HasSubstr("base: 9 ms at 1, 105 ms at 16; p50: 18 ms at 1"));
  EXPECT_THAT(figure, HasSubstr("base: 59 tok/s at 1, 201 tok/s at 16; now: 118 tok/s at 1"));
  EXPECT_THAT(figure, HasSubstr("line class=\"base\""));
}

TEST(LoadCurves, SayLargeNumbersWithoutPowersOfTen) {
  GateVerdict gate = served();
  for (auto& cell : gate.cells) {
    for (MetricVerdict& metric : cell.metrics) {
      if (metric.metric.name == "output_tokens_per_second") metric.current = 12345.6;
      if (metric.metric.name == "time_to_first_token_seconds") metric.current = 1234.4;
      if (metric.metric.name == "time_per_output_token_seconds") metric.current = 0.9994;
    }
  }
  const std::string figure = load_figure(load_curves(gate).at(0));
  EXPECT_THAT(figure, HasSubstr("12346 tok/s"));
  EXPECT_THAT(figure, HasSubstr("1234 s"));
  EXPECT_THAT(figure, HasSubstr("999 ms"));
  EXPECT_THAT(figure, Not(HasSubstr("e+")));
}

TEST(LoadCurves, JoinNothingWhereSomethingWasNotMeasured) {
  GateVerdict gate = served();
  // The one in the middle has no p99.
  std::erase_if(gate.cells[2].metrics, [](const MetricVerdict& metric) {
    return metric.metric.name.find("p99") != std::string::npos;
  });
  const std::string figure = load_figure(load_curves(gate).at(0));
  EXPECT_THAT(figure, HasSubstr("line class=\"p90\""));
  EXPECT_THAT(figure, Not(HasSubstr("line class=\"p99\"")));
  EXPECT_THAT(figure, HasSubstr("not measured"));
}

// Ten requests a second, whose first token comes after 20 ms and whose last after 100; one stalled.
TEST(Requests, AreAPointEach) {
  std::vector<std::int64_t> latencies;
  for (std::int64_t i = 0; i < 50; ++i) {
    const std::int64_t whole = i == 25 ? 1'000'000 : 100'000;
    for (const std::int64_t number : {i * 100'000, std::int64_t{20'000}, whole})
      latencies.push_back(number);
  }
  const std::string figure = requests_figure(latencies);
  EXPECT_THAT(figure, HasSubstr("50 requests over 4.90 s; end-to-end latency up to 1.00 s"));
  EXPECT_THAT(figure, HasSubstr("d=\"M0.0 90.0h0M20.4 90.0h0"));
  EXPECT_THAT(figure, HasSubstr("M510.2 0.0h0"));
  EXPECT_THAT(figure, HasSubstr("d=\"M0.0 98.0h0"));
  EXPECT_EQ(requests_figure(std::span(latencies).first(30)), "") << "few are no picture";
  EXPECT_EQ(requests_figure(latencies, 50), figure);
  EXPECT_THAT(requests_figure(latencies, 900),
              HasSubstr("50 of 900 requests over 4.90 s: the fastest and slowest of every few"));
}

TEST(Requests, OfAHostileJournalStayWithinThePicture) {
  std::vector<std::int64_t> latencies;
  for (int i = 0; i < 25; ++i) {
    for (const std::int64_t number : {std::numeric_limits<std::int64_t>::min(),
                                      std::numeric_limits<std::int64_t>::max(), std::int64_t{-1}})
      latencies.push_back(number);
  }
  EXPECT_THAT(requests_figure(latencies), HasSubstr("M0.0 0.0h0"));
}

TEST(Batches, AreABarForEachSizeOrForSizesThatDouble) {
  const std::string few = batches_figure(profile::batch_bars({{1, 4}, {4, 16}, {36, 2}}));
  EXPECT_THAT(few, HasSubstr("1: 4 \u00b7 4: 16 \u00b7 36: 2 (tokens: graphs)"));
  EXPECT_THAT(few, HasSubstr("y=\"75.0\" width=\"266.7\" height=\"25.0\"")) << "4 of 16";
  std::map<std::int64_t, std::int64_t> many{{-3, 5}, {std::numeric_limits<std::int64_t>::max(), 1}};
  for (std::int64_t tokens = 1; tokens <= 30; ++tokens) many[tokens] = 1;
  EXPECT_THAT(
      batches_figure(profile::batch_bars(many)),
      HasSubstr("1: 1 \u00b7 2: 1 \u00b7 3 to 4: 2 \u00b7 5 to 8: 4 \u00b7 9 to 16: 8 \u00b7 "
                "17 to 30: 14 \u00b7 9223372036854775807: 1 (tokens"));
  EXPECT_EQ(batches_figure({}), "");
}

TEST(Terminal, SaysWhereTheServersOwnMetricsAreShown) {
  GateVerdict gate = served();
  const TerminalStyle style{.verbs = {"profile"}};
  EXPECT_THAT(terminal(gate, style), Not(HasSubstr("weir profile"))) << "no run, no folder";
  gate.run = "weir out/2026-11-21T17-22-00Z";
  EXPECT_THAT(terminal(gate, style),
              HasSubstr("      servers  weir profile 'weir out/2026-11-21T17-22-00Z'\n"));
  EXPECT_THAT(terminal(gate, {}), Not(HasSubstr("weir profile"))) << "of a build without it";
  for (CellVerdict& cell : gate.cells) cell.server.clear();
  EXPECT_THAT(terminal(gate, style), Not(HasSubstr("weir profile")));
}

TEST(Golden, APageOfServersLooksAsStored) { support::expect_golden("served.html", html(served())); }

}  // namespace load_curves_test
}  // namespace weir::report
