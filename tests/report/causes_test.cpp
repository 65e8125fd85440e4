// Tests that each format reports one cause once, before the cells that failed by it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/text.hpp"
#include "gate/report/check.hpp"
#include "gate/report/html.hpp"
#include "gate/report/markdown.hpp"
#include "gate/report/terminal.hpp"

#include "tests/report/fixtures.hpp"
#include "tests/report/support.hpp"

namespace weir::report {
namespace causes_test {

using profile::CellKey;
using support::occurrences;
using testing::HasSubstr;
using testing::Not;

TerminalStyle terminal_style() {
  TerminalStyle style;
  style.verbs = {
      "baseline accept", "baseline accept --reason", "gate --counts-only", "gate --from", "doctor",
      "explain"};
  return style;
}

MarkdownStyle markdown_style() {
  MarkdownStyle style;
  style.verbs = terminal_style().verbs;
  style.run_url = "https://example.org/runs/1";
  return style;
}

std::vector<CellKey> keys(const std::vector<const char*>& names) {
  std::vector<CellKey> keys;
  for (const char* name : names) keys.push_back(CellKey::parse(name).value());
  return keys;
}

TEST(Where, SaysWhichOfAllCellsTheseAre) {
  const std::vector<CellKey> all =
      keys({"e/a/cpu/prefill", "e/a/cpu/decode", "e/a/vulkan/prefill", "e/a/vulkan/decode",
            "e/b/cpu/prefill", "e/b/cpu/decode", "e/b/vulkan/prefill", "e/b/vulkan/decode"});
  struct Row {
    std::vector<const char*> cells;
    const char* want;
  };
  for (const Row& row : {
           Row{{"e/a/cpu/decode"}, "e / a / cpu / decode"},
           Row{{"e/a/cpu/decode", "e/b/cpu/decode"}, "2 of 8 cells: a, b \u00d7 cpu \u00d7 decode"},
           Row{{"e/a/cpu/prefill", "e/a/cpu/decode", "e/a/vulkan/prefill", "e/a/vulkan/decode"},
               "4 of 8 cells: a \u00d7 cpu, vulkan \u00d7 prefill, decode"},
           // Sets of cells that are no cross product.
           Row{{"e/a/cpu/decode", "e/b/vulkan/decode"},
               "2 of 8 cells: e / a / cpu / decode, e / b / vulkan / decode"},
           Row{{"e/a/cpu/prefill", "e/a/cpu/decode", "e/a/vulkan/prefill", "e/b/cpu/decode"},
               "4 of 8 cells: e / a / cpu / prefill, e / a / cpu / decode, e / a / vulkan / "
               "prefill "
               "and 1 more"},
           Row{{"e/a/cpu/prefill", "e/a/cpu/decode", "e/a/vulkan/prefill", "e/a/vulkan/decode",
                "e/b/cpu/prefill", "e/b/cpu/decode"},
               "6 of 8 cells: all but e / b / vulkan / prefill, e / b / vulkan / decode"},
       }) {
    EXPECT_EQ(describe_cells(keys(row.cells), all), row.want);
  }
  EXPECT_EQ(describe_cells(all, all),
            "all 8 cells: a, b \u00d7 cpu, vulkan \u00d7 prefill, decode");
}

TEST(Where, NamesEnginesWhereTheyDifferAndCountsLongOrManyValues) {
  const std::vector<CellKey> all =
      keys({"e/a-model-of-some-size/cpu/d", "e/another-such-model/cpu/d",
            "e@fused/a-model-of-some-size/cpu/d", "e@fused/another-such-model/cpu/d"});
  EXPECT_EQ(describe_cells(all, all),
            "all 4 cells: e, e@fused \u00d7 2 models \u00d7 cpu \u00d7 d");
  const std::vector<CellKey> two = keys({"e/a/cpu/d", "e/b/cpu/d"});
  EXPECT_EQ(describe_cells(two, two), "both cells: a, b \u00d7 cpu \u00d7 d");
}

TEST(Causes, AreNumberedInTheHeadlineWhereTheyAreFewerThanCells) {
  EXPECT_EQ(headline(fixtures::cache_on_host()), "40 of 40 cells broke a limit, 1 cause");
  EXPECT_EQ(headline(fixtures::two_causes()),
            "40 of 40 cells broke a limit, 2 causes, 1 change unexplained");
  GateVerdict gate = fixtures::red();
  verdict::Cause cause;
  cause.cells = {fixtures::decode_on_vulkan(gate).cell.str()};
  gate.causes = {cause};
  EXPECT_EQ(headline(gate), "1 of 8 cells broke a limit");
}

TEST(Causes, SayWhereTheyHoldWhatCarriesThemAndWhatToLookAt) {
  const GateVerdict gate = fixtures::cache_on_host();
  const Document document(gate);
  ASSERT_TRUE(document.cause_first);
  ASSERT_EQ(document.causes.size(), 1U);
  const Part& cause = document.causes.front();
  EXPECT_EQ(plain_text(cause.head), "Work moved to the CPU: SET_ROWS, 8 to 16 times a token.");
  ASSERT_GE(cause.parts.size(), 3U);
  EXPECT_EQ(plain_text(cause.parts[0].words),
            "In all 40 cells: 2 models \u00d7 5 backends \u00d7 4 prompts.");
  ASSERT_EQ(cause.parts[1].numbers.size(), 3U);
  const Number& syncs = cause.parts[1].numbers[1];
  EXPECT_EQ(syncs.label, "syncs/token");
  EXPECT_EQ(syncs.from_to(), "1 \u2192 9 \u2026 17");
  EXPECT_EQ(syncs.change, "+8 \u2026 +16");
  EXPECT_EQ(syncs.where, "") << "30 of 40 cells decode, and only they have syncs per token";
  EXPECT_EQ(plain_text(cause.parts[2].words),
            "9 more counts follow from it. Also in these cells: Another kernel does the same "
            "work.");
}

TEST(Causes, GiveTheChangesOfTimesInPercent) {
  GateVerdict gate = fixtures::cache_on_host();
  gate.causes.front().carriers = {{"decode_tokens_per_second", -20, -10, 40}};
  for (std::size_t i = 0; i < gate.cells.size(); ++i) {
    const double change = i % 2 == 0 ? -0.1 : -0.2;
    Judgement& rate = gate.cells[i].put("decode_tokens_per_second");
    rate = fixtures::rate("decode_tokens_per_second", verdict::Outcome::fail, 100,
                          100 * (1 + change), {change, change - 0.01, change + 0.01});
  }
  const Document document(gate);
  const Number& rate = document.causes.front().parts[1].numbers.front();
  EXPECT_EQ(rate.change, "\u221220.0 % \u2026 \u221210.0 %");
}

TEST(Causes, FitOnATerminalHoweverManyCellsBreak) {
  struct Row {
    GateVerdict gate;
    std::size_t lines;
  };
  for (const Row& row : {Row{fixtures::cache_on_host(), 25}, Row{fixtures::two_causes(), 45}}) {
    const std::string text = terminal(row.gate, terminal_style());
    const auto lines = text::lines(text);
    EXPECT_LE(lines.size(), row.lines) << text;
    for (const std::string& line : lines) EXPECT_LE(text::columns(line), 80U) << line;
    EXPECT_THAT(text, HasSubstr("FAIL  40 of 40 cells broke a limit, "));
    EXPECT_THAT(text, HasSubstr("weir gate --from weir-out/20260102-030405 --html report.html\n"));
  }
}

TEST(Causes, FitIntoAShortCommentHoweverManyCellsBreak) {
  for (const GateVerdict& gate : {fixtures::cache_on_host(), fixtures::two_causes()}) {
    const std::string comment = markdown(gate, markdown_style());
    EXPECT_LE(comment.size(), 6000U) << comment;
    const std::string open = comment.substr(0, comment.find("<details>"));
    EXPECT_EQ(occurrences(open, "**Work moved to the CPU: SET\\_ROWS, 8 to 16 times a token.**"),
              1U)
        << open;
    EXPECT_THAT(open, HasSubstr("weir explain"));
    EXPECT_THAT(comment, HasSubstr("[The report of the run](https://example.org/runs/1) has all"));
  }
}

TEST(Causes, LeaveEveryCellWithItsNumbersBehindAFold) {
  MarkdownStyle summary = markdown_style();
  summary.limit = k_summary_limit;
  const std::string text = markdown(fixtures::cache_on_host(), summary);
  const std::size_t fold = text.find("<details>");
  // All rows have the same limit, so it is no column.
  const char* head = "`\n\nLimit: must not change\n\n| what | base \u2192 now |\n";
  EXPECT_EQ(occurrences(text.substr(0, fold), head), 0U) << text;
  EXPECT_EQ(occurrences(text.substr(fold), head), 40U);
  const std::string page = html(fixtures::cache_on_host());
  EXPECT_GT(page.find("tiny-gemma3 / adreno-750 / long"), page.find("<details>"));
  TerminalStyle verbose;
  verbose.verbose = true;
  const std::string all = terminal(fixtures::cache_on_host(), verbose);
  for (const auto& cell : fixtures::cache_on_host().cells) {
    const std::string title = cell_title(cell.cell);
    EXPECT_THAT(page, HasSubstr(title));
    EXPECT_THAT(all, HasSubstr("FAIL  " + title));
  }
}

TEST(Causes, LeaveWhatTheyDoNotExplainInSight) {
  const GateVerdict gate = fixtures::two_causes();
  const std::string comment = markdown(gate, markdown_style());
  const std::string page = html(gate);
  for (const std::string& text :
       {terminal(gate, terminal_style()), comment.substr(0, comment.find("<details>")),
        page.substr(0, page.find("<details>"))}) {
    const std::size_t at = text.find("Not explained");
    ASSERT_NE(at, std::string::npos) << text;
    EXPECT_THAT(text.substr(at), HasSubstr("decode tok/s"));
    EXPECT_THAT(text.substr(at), HasSubstr("\u221212.2"));
    EXPECT_THAT(text.substr(at), HasSubstr("2 of 40 cells"));
  }
}

TEST(Causes, AreAnnotationsInPlaceOfTheirCells) {
  const auto single = check_text(fixtures::cache_on_host(), {}).annotations;
  ASSERT_EQ(single.size(), 1U);
  EXPECT_EQ(single[0].title, "fail: Work moved to the CPU: SET_ROWS, 8 to 16 times a token.");
  EXPECT_THAT(single[0].message,
              HasSubstr("In all 40 cells: 2 models \u00d7 5 backends \u00d7 4 prompts.\n"));
  EXPECT_THAT(single[0].message,
              HasSubstr("\n9 more counts follow from it. Also in these cells: "));
  const auto several = check_text(fixtures::two_causes(), {}).annotations;
  ASSERT_EQ(several.size(), 3U);
  EXPECT_EQ(several[2].title, "fail: Not explained");
  EXPECT_THAT(several[2].message,
              HasSubstr("decode tok/s: 28.6 \u2192 25.1 (\u221212.2 %, 2 of 40"));
}

TEST(Causes, FitAlsoWhereMuchIsNotExplained) {
  GateVerdict gate = fixtures::two_causes();
  for (int i = 0; i < 50; ++i) {
    gate.unexplained.push_back({"op:" + std::string(60, 'n') + std::to_string(i), {}});
    for (std::size_t cell = 0; cell < 7; ++cell) {
      gate.unexplained.back().cells.push_back(gate.cells[3 * cell].cell.str());
    }
    gate.causes.push_back(gate.causes.front());
  }
  MarkdownStyle style = markdown_style();
  for (const std::size_t limit : {std::size_t{2000}, k_brief_limit, k_comment_limit}) {
    style.limit = limit;
    const std::string comment = markdown(gate, style);
    EXPECT_LE(comment.size(), std::min(limit, k_brief_limit));
    // Cells stand in a table, or only their number is printed.
    const std::string rest = comment.substr(comment.find("ot explained"));
    EXPECT_TRUE(rest.starts_with("ot explained**\n\n| what | base") ||
                comment.find("51 changes not explained") != std::string::npos)
        << comment;
    EXPECT_THAT(comment, HasSubstr(" more causes_"));
    // A cause is printed in full, or it is counted.
    EXPECT_EQ(occurrences(comment, "**Look at**"), occurrences(comment, " a token.**\n\nIn "))
        << comment;
  }
}

TEST(Causes, FoldNoCellThatTheySayNothingOf) {
  GateVerdict gate = fixtures::cache_on_host();
  gate.causes[0].cells.pop_back();
  const std::string title = cell_title(gate.cells.back().cell);
  EXPECT_THAT(terminal(gate, terminal_style()), HasSubstr("FAIL  " + title));
  const std::string comment = markdown(gate, markdown_style());
  EXPECT_LT(comment.find("tiny-gemma3 / adreno-750 / long"), comment.find("<details>"));
  const std::string page = html(gate);
  EXPECT_LT(page.find(title + "</code></h2>"), page.find("<details>"));
}

TEST(Causes, LeaveOneBlockOfCellsAsItWas) {
  GateVerdict gate = fixtures::many(4);
  verdict::Cause cause;
  cause.headline = "Fusion lost: mul and rms_norm run apart.";
  for (const CellVerdict& cell : gate.cells) cause.cells.push_back(cell.cell.str());
  gate.causes = {cause};
  EXPECT_FALSE(Document(gate).cause_first);
  const std::string now = terminal(gate, terminal_style());
  EXPECT_THAT(now, HasSubstr("4 of 4 cells broke a limit, 1 cause."));
  EXPECT_THAT(now, HasSubstr("65 \u2192 77"));
  EXPECT_THAT(now, Not(HasSubstr("Not explained")));
}

}  // namespace causes_test
}  // namespace weir::report
