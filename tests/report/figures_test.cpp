// Tests the figures of a verdict as data for the pages, and a server's own figures. Numbers are
// invented.
#include "gate/report/figures.hpp"

#include <gmock/gmock.h>

#include "gate/base/json.hpp"
#include "gate/profile/load_picture.hpp"
#include "gate/report/escape.hpp"
#include "gate/report/html.hpp"
#include "gate/report/ratios.hpp"
#include "gate/report/terminal.hpp"

#include "tests/report/paired_fixtures.hpp"
#include "tests/report/support.hpp"

namespace weir::report {
namespace figures_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using verdict::CellVerdict;
using verdict::GateVerdict;
using verdict::Judgement;

void add_time(CellVerdict& cell, const std::string& name, double value) {
  const bool rate = name.ends_with("per_second");
  Judgement& judgement = cell.judgements.emplace_back();
  judgement.metric = unit::custom_metric(name, unit::Kind::time,
                                         rate ? unit::Unit::tokens_per_second : unit::Unit::seconds,
                                         rate ? unit::Better::higher : unit::Better::lower);
  judgement.source = "requests";
  judgement.current = value;
  judgement.samples = 3;
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

TEST(LoadedCells, AreThoseOfAPromptMeasuredAtSeveralConcurrenciesInTheirOrder) {
  GateVerdict gate = served();
  CellVerdict alone = serving(1, 0.02, 0.01, 90);
  alone.cell.prompt = "once";
  CellVerdict failed = serving(64, 0, 0, 0);
  failed.judgements.clear();
  gate.cells.push_back(alone);
  gate.cells.push_back(failed);
  gate.cells.push_back(fixtures::passing(fixtures::key("tiny-llama", "cpu", "decode")));
  std::vector<std::string> cells;
  for (const LoadedCell& cell : loaded_cells(gate)) cells.push_back(cell.cell_verdict->cell.str());
  EXPECT_THAT(cells, ElementsAre("llama-server/tiny-llama/cpu/chat@c1",
                                 "llama-server/tiny-llama/cpu/chat@c4",
                                 "llama-server/tiny-llama/cpu/chat@c16"));
}

TEST(LoadFigure, HasEachNumberOfTheCellsAndOfTheirBase) {
  GateVerdict gate = served();
  // The cell in the middle has no p99.
  std::erase_if(gate.cells[2].judgements, [](const Judgement& metric) {
    return metric.metric.name.find("p99") != std::string::npos;
  });
  gate.cells[2].judgements[0].baseline = 0.04;
  const Json figure = load_figure(loaded_cells(gate));
  EXPECT_EQ(figure["kind"], "load");
  EXPECT_EQ(figure["points"].size(), 7U + 5U + 7U);
  const std::string cell = "llama-server / tiny-llama / cpu / chat@c4";
  EXPECT_EQ(figure["points"][7], Json({nullptr, cell, 0, 0.047}));
  EXPECT_EQ(figure["points"][11], Json({nullptr, cell, 6, 290.0}));
  EXPECT_EQ(figure["metrics"][0]["unit"], "s");
  EXPECT_EQ(figure["metrics"][6]["name"], "output_tokens_per_second");
  EXPECT_EQ(figure["metrics"][6]["unit"], "tok/s");
  EXPECT_EQ(figure["bases"],
            Json::parse(R"([["llama-server / tiny-llama / cpu / chat@c4", 0, 0.04]])"));
}

TEST(Html, HasATableOfWhatIsDrawnOfLoads) {
  GateVerdict gate = served();
  std::erase_if(gate.cells[2].judgements, [](const Judgement& metric) {
    return metric.metric.name.find("p99") != std::string::npos;
  });
  EXPECT_THAT(html(gate),
              HasSubstr("<tr><th scope=\"row\">llama-server / tiny-llama / cpu / chat@c4</th>"
                        "<td class=\"number\">47.0 ms</td><td class=\"number\">70.5 ms</td>"
                        "<td class=\"number\">not measured</td>"));
}

// Ten requests a second; the first token comes after 20 ms, the last after 100; one request
// stalled.
CellVerdict requested() {
  CellVerdict cell;
  for (std::int64_t i = 0; i < 50; ++i) {
    const std::int64_t latency = i == 25 ? 1'000'000 : 100'000;
    for (const std::int64_t number : {i * 100'000, std::int64_t{20'000}, latency}) {
      cell.latencies.push_back(number);
    }
  }
  return cell;
}

TEST(Requests, AreToldInWordsAndAsNumbers) {
  CellVerdict cell = requested();
  const Json figure = served_figures(cell).at(0);
  EXPECT_EQ(figure["kind"], "requests");
  EXPECT_EQ(figure["words"], "50 requests over 4.90 s; end-to-end latency up to 1.00 s");
  EXPECT_EQ(figure["latencies"], Json(cell.latencies));
  cell.requests = 50;
  EXPECT_EQ(served_figures(cell).at(0), figure);
  cell.requests = 900;
  EXPECT_THAT(served_figures(cell).at(0)["words"].get<std::string>(),
              HasSubstr("50 of 900 requests over 4.90 s: the fastest and slowest of every few"));
  cell.latencies.resize(19 * profile::k_latencies_of_request);
  EXPECT_TRUE(served_figures(cell).empty()) << "few are no picture";
}

TEST(Batches, AreABarForEachSizeOrForSizesThatDouble) {
  CellVerdict cell;
  cell.batches = profile::batch_bars({{1, 4}, {4, 16}, {36, 2}});
  EXPECT_EQ(served_figures(cell).at(0)["words"], "1: 4 \u00b7 4: 16 \u00b7 36: 2 (tokens: graphs)");
  EXPECT_EQ(served_figures(cell).at(0)["bars"],
            Json::parse("[[1, 1, 4], [4, 4, 16], [36, 36, 2]]"));
  std::map<std::int64_t, std::int64_t> many{{-3, 5}, {std::numeric_limits<std::int64_t>::max(), 1}};
  for (std::int64_t tokens = 1; tokens <= 30; ++tokens) many[tokens] = 1;
  cell.batches = profile::batch_bars(many);
  EXPECT_THAT(served_figures(cell).at(0)["words"].get<std::string>(),
              HasSubstr("1: 1 \u00b7 2: 1 \u00b7 3 to 4: 2 \u00b7 5 to 8: 4 \u00b7 9 to 16: 8 "
                        "\u00b7 17 to 30: 14 \u00b7 9223372036854775807: 1 (tokens"));
}

TEST(RatiosFigure, HasTheHistogramAndTheInterval) {
  const GateVerdict gate = fixtures::beside_fail();
  const Document document(gate);
  const CellDocument& cell = document.cells[1];
  const MetricRow& row = *rows_with_picture(cell).at(0);
  const Json figure = ratios_figure(row);
  const Histogram all = histogram(*row.judgement, 60);
  EXPECT_EQ(figure["kind"], "ratios");
  EXPECT_EQ(figure["title"], "decode tok/s: now against base, pair by pair");
  EXPECT_EQ(figure["words"], picture_text(*row.judgement));
  ASSERT_EQ(figure["bars"].size(), all.bars.size());
  EXPECT_EQ(figure["bars"][0], Json({all.bars[0].from, all.bars[0].to, all.bars[0].pairs}));
  EXPECT_EQ(figure["limit"], -0.05);
  EXPECT_EQ(figure["tolerated"], -0.025);
  EXPECT_EQ(figure["change"], -0.118);
  EXPECT_EQ(figure["failed"], true);
}

TEST(Html, HasTheWordsOfAFigureNextToItsData) {
  const GateVerdict gate = fixtures::beside_fail();
  const std::string page = html(gate);
  const std::string words =
      picture_text(*rows_with_picture(Document(gate).cells[1]).at(0)->judgement);
  EXPECT_THAT(page, HasSubstr("<script type=\"application/json\" class=\"figure\">{"));
  EXPECT_THAT(page, HasSubstr("</script>\n<p class=\"soft\">" + words + "</p>\n"));
}

TEST(Html, RunsNothingWithoutThePagesOwnCode) {
  const std::string code = "<meta http-equiv=\"Content-Security-Policy\"><script>draw()</script>\n";
  EXPECT_THAT(html(served()), HasSubstr("default-src 'none'; style-src 'unsafe-inline'"));
  const std::string page = html(served(), code);
  EXPECT_THAT(page, HasSubstr("</title>\n" + code + "<meta name=\"viewport\""));
  EXPECT_THAT(page, Not(HasSubstr("default-src"))) << "the code brings the policy that it needs";
}

TEST(ScriptJson, EndsNoElementAndIsTheSameJson) {
  const Json hostile = "</script><!-- &lt; <script> ]]>";
  const std::string text = script_json(dump_json(hostile));
  EXPECT_THAT(text, Not(testing::ContainsRegex("[<>&]")));
  EXPECT_EQ(Json::parse(text), hostile);
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

}  // namespace figures_test
}  // namespace weir::report
