// Tests a verdict as GitHub's check run and commit status.
#include "gate/report/check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/text.hpp"
#include "gate/report/html.hpp"
#include "gate/report/markdown.hpp"
#include "gate/report/terminal.hpp"

#include "tests/report/fixtures.hpp"

namespace weir::report {
namespace check_test {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using verdict::CellVerdict;
using verdict::ExitCode;
using verdict::GateVerdict;
using verdict::Judgement;
using verdict::Outcome;

GateVerdict all_new() {
  GateVerdict gate = fixtures::green();
  for (CellVerdict& cell : gate.cells) {
    cell.verdict = Outcome::new_;
    cell.reason = "no baseline is stored";
    for (Judgement& metric : cell.metrics()) metric.verdict = Outcome::new_;
  }
  gate.verdict = Outcome::new_;
  gate.nothing_judged_reason = "nothing was compared: no baseline is stored";
  return gate;
}

// A pull request that brings weir along: the base has no rules.
GateVerdict brought(GateVerdict gate) {
  gate.rules = verdict::RulesFrom{"origin/main", std::string(40, 'd')};
  verdict::mark_brought(gate);
  return gate;
}

GateVerdict gate_with(GateVerdict gate, ExitCode code) {
  gate.exit_code = code;
  return gate;
}

GateVerdict gate_with(GateVerdict gate, Outcome outcome) {
  gate.verdict = outcome;
  gate.cells[0].verdict = outcome;
  return gate;
}

TEST(Check, SaysInItsConclusionWhatTheExitCodeSays) {
  GateVerdict empty = fixtures::green();
  empty.cells.clear();
  struct Row {
    const char* what;
    GateVerdict gate;
    const char* conclusion;
    const char* state;
  };
  const std::vector<Row> rows = {
      {"a pass", fixtures::green(), "success", "success"},
      {"a broken limit", fixtures::red(), "failure", "failure"},
      {"a cell that could not be measured", fixtures::errors(), "failure", "error"},
      {"not decided", fixtures::undecided(), "neutral", "success"},
      {"not decided, where that fails", gate_with(fixtures::undecided(), ExitCode::inconclusive),
       "failure", "failure"},
      {"some cells new", fixtures::mixed(), "success", "success"},
      {"all cells new", all_new(), "failure", "error"},
      {"all cells skipped", gate_with(fixtures::all_skipped(), ExitCode::usage), "failure",
       "error"},
      {"no cell at all", empty, "failure", "error"},
      {"improved", gate_with(fixtures::green(), Outcome::improved), "success", "success"},
      {"waived", gate_with(fixtures::green(), Outcome::waived), "success", "success"},
      {"weir brought along", brought(all_new()), "neutral", "success"},
      {"weir brought along beside a base program", brought(fixtures::green()), "neutral",
       "success"},
      {"weir brought along, its own limit broken", brought(fixtures::red()), "failure", "failure"},
      {"weir brought along, nothing measured", brought(fixtures::errors()), "failure", "error"},
      {"interrupted", gate_with(fixtures::green(), ExitCode::interrupted), "cancelled", "error"},
      {"interrupted after a broken limit", gate_with(fixtures::red(), ExitCode::interrupted),
       "failure", "failure"},
      // A verdict file is not trusted: its parts have to agree before it is green.
      {"a pass that exits 1", gate_with(fixtures::green(), ExitCode::fail), "failure", "failure"},
      {"a pass that exits 3", gate_with(fixtures::green(), ExitCode::unmeasured), "failure",
       "error"},
      {"a pass that exits 2", gate_with(fixtures::green(), ExitCode::usage), "failure", "error"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(check_text(row.gate, {}).conclusion, row.conclusion) << row.what;
    EXPECT_EQ(status_text(row.gate).state, row.state) << row.what;
  }
}

TEST(Check, ListsWhatANewCellMeasuredOnceWhereWeirIsBroughtAlong) {
  const std::string text = markdown(brought(all_new()), {});
  EXPECT_NE(text.find("What was measured"), std::string::npos) << text;
  EXPECT_EQ(text.find("\U0001F195"), std::string::npos) << "no section of its own\n" << text;
}

TEST(Check, SaysInItsTitleWhatWasNotJudged) {
  EXPECT_EQ(check_text(fixtures::red(), {}).title, "1 of 8 cells broke a limit");
  EXPECT_EQ(check_text(fixtures::undecided(), {}).title,
            "1 of 8 cells is inconclusive \u00b7 throughput not decided in 1 of 8 cells");
}

TEST(Check, SaysFirstThatNothingWasComparedAndWhy) {
  const std::string why = "nothing was compared: no baseline is stored";
  EXPECT_EQ(check_text(all_new(), {}).title, "not judged: " + why);
  EXPECT_EQ(status_text(all_new()).description, "not judged: " + why);
  EXPECT_THAT(check_text(all_new(), {}).summary, StartsWith("### \u26a0\ufe0f weir: nothing was"));
  EXPECT_THAT(markdown(all_new(), {}), HasSubstr(why));
  EXPECT_THAT(terminal(all_new(), {.width = 200}), StartsWith("weir 0.1.0  8 cells  " + why));
  EXPECT_THAT(html(all_new()), HasSubstr("<title>weir: " + why));
  GateVerdict required = gate_with(all_new(), ExitCode::unmeasured);
  for (CellVerdict& cell : required.cells) {
    cell.verdict = Outcome::error;
    cell.not_compared = cell.reason;
  }
  required.verdict = Outcome::error;
  const std::string comment = markdown(required, {});
  EXPECT_THAT(comment, HasSubstr("error: all 8 cells: "));
  EXPECT_THAT(comment, Not(HasSubstr("| dispatches/token"))) << "the reason is all there is to say";
  EXPECT_EQ(check_text(required, {}).annotations.size(), 1U);
  GateVerdict placed = gate_with(all_new(), Outcome::fail);
  placed.exit_code = ExitCode::fail;
  EXPECT_EQ(check_text(placed, {}).title, "1 of 8 cells broke a limit \u00b7 " + why);
}

TEST(Check, AnnotatesWhatNeedsAReaderTheWorstFirst) {
  const auto annotations = check_text(fixtures::mixed(), {}).annotations;
  ASSERT_EQ(annotations.size(), 2U);  // two new cells with one reason, one that improved
  EXPECT_EQ(annotations[0].level, "warning");
  EXPECT_EQ(annotations[0].title,
            "new: 2 of 8 cells: tiny-llama \u00d7 cpu \u00d7 prefill, decode");
  EXPECT_EQ(annotations[0].message, "no baseline is stored");
  EXPECT_EQ(annotations[1].level, "notice");
  const auto red = check_text(fixtures::red(), {}).annotations;
  ASSERT_EQ(red.size(), 1U);
  EXPECT_EQ(red[0].level, "failure");
  EXPECT_EQ(red[0].path, "weir.yaml");
  EXPECT_EQ(red[0].line, 1);
  EXPECT_EQ(red[0].title, "fail: llama.cpp / tiny-llama / vulkan / decode");
  EXPECT_THAT(red[0].message, HasSubstr("dispatches/token: 65 \u2192 77 (+12, must not change)"));
  EXPECT_THAT(check_text(fixtures::green(), {}).annotations, testing::IsEmpty());
}

TEST(Check, SaysInTheLastOfManyAnnotationsHowManyMore) {
  const auto some = check_text(fixtures::unlike(30), {}, 20).annotations;
  ASSERT_EQ(some.size(), 20U);
  EXPECT_EQ(some.back().message, "and 11 more cells");  // 19 are listed
  EXPECT_EQ(some.back().level, "failure");
  EXPECT_EQ(check_text(fixtures::unlike(20), {}, 20).annotations.size(), 20U);
  EXPECT_THAT(check_text(fixtures::unlike(20), {}, 20).annotations.back().message,
              Not(HasSubstr("more")));
  EXPECT_THAT(check_text(fixtures::unlike(3), {}, 0).annotations, testing::IsEmpty());
}

TEST(Check, StandsAtThePathOfTheConfigurationWhereThatIsHarmless) {
  struct Row {
    const char* config;
    const char* path;
  };
  for (const auto& [config, path] : {
           Row{"weir.yaml", "weir.yaml"},
           Row{"configs/llama.cpp/weir.yaml", "configs/llama.cpp/weir.yaml"},
           Row{"./a//b/./weir.yaml", "a/b/weir.yaml"},
           Row{"", "weir.yaml"},
           Row{"/etc/passwd", "weir.yaml"},
           Row{".//etc/passwd", "weir.yaml"},
           Row{"../weir.yaml", "weir.yaml"},
           Row{"a/../../weir.yaml", "weir.yaml"},
           Row{"C:\\weir.yaml", "weir.yaml"},
           Row{"a\\..\\weir.yaml", "weir.yaml"},
           Row{"a\nb.yaml", "weir.yaml"},
           Row{"a\x1b[2Jb.yaml", "weir.yaml"},
           Row{"folder/", "weir.yaml"},
           Row{".", "weir.yaml"},
       }) {
    GateVerdict gate = fixtures::red();
    gate.config = config;
    EXPECT_EQ(check_text(gate, {}).annotations.at(0).path, path) << config;
  }
}

TEST(Check, KeepsToTheLimitsOfGitHub) {
  GateVerdict many = fixtures::unlike(10'000);
  many.not_judged = {fixtures::evil(), std::string(500, 'n') + "\U0001f600"};
  GateVerdict hostile = fixtures::hostile();
  hostile.cells[3].reason = std::string(200'000, 'r');
  MarkdownStyle style;
  style.limit = k_summary_limit;  // limit of a job summary, too large for a check
  for (const GateVerdict& gate : {many, hostile}) {
    const CheckText check = check_text(gate, style);
    EXPECT_LE(check.summary.size(), k_check_summary_limit);
    EXPECT_GT(check.summary.size(), 1000U);
    EXPECT_LE(check.annotations.size(), 200U);
    for (const CheckAnnotation& annotation : check.annotations) {
      EXPECT_LE(annotation.title.size(), 4 * 255U);
      EXPECT_LE(text::columns(annotation.title), 255U);
      EXPECT_LE(annotation.message.size(), 64U << 10U);
      EXPECT_FALSE(annotation.message.empty());
    }
    EXPECT_LE(text::columns(status_text(gate).description), 140U);
    EXPECT_LE(text::columns(check.title), 255U);
  }
}

TEST(Check, CountsCharactersOfAStatusAsTheyAreStored) {
  GateVerdict gate = fixtures::green();
  for (int i = 0; i < 100; ++i) gate.not_judged.emplace_back("\U0001f600");  // two units each
  const std::string description = status_text(gate).description;
  std::size_t units = 0;
  for (const char c : description) {
    const auto byte = static_cast<unsigned char>(c);
    units += (byte & 0xC0U) == 0x80U ? 0 : byte >= 0xF0 ? 2 : 1;
  }
  EXPECT_LE(units, 140U);
  EXPECT_GE(units, 135U);
}

}  // namespace check_test
}  // namespace weir::report
