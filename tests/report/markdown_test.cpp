// Tests Markdown as GitHub's own renderer (cmark-gfm, a Debian package) shows it.
#include "gate/report/markdown.hpp"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/report/escape.hpp"

#include "tests/report/fixtures.hpp"
#include "tests/report/support.hpp"

namespace weir::report {
namespace markdown_test {

using support::occurrences;
using testing::HasSubstr;
using testing::Not;

std::string rendered(const std::string& markdown) {
  const auto answer =
      support::feed("cmark-gfm -e table -e autolink -e strikethrough --unsafe", markdown);
  EXPECT_EQ(answer.exit, 0) << "cmark-gfm (Debian package cmark-gfm): " << answer.out;
  return answer.out;
}

constexpr std::string_view k_zero_width = "\u200b";

// Returns the names of all elements in rendered HTML.
std::set<std::string> elements(const std::string& html) {
  std::set<std::string> names;
  for (std::size_t at = html.find('<'); at != std::string::npos; at = html.find('<', at + 1)) {
    std::size_t end = at + 1;
    if (end < html.size() && html[end] == '/') ++end;
    const std::size_t begin = end;
    while (end < html.size() && html[end] != '>' && html[end] != ' ' && html[end] != '\n') ++end;
    names.insert(html.substr(begin, end - begin));
  }
  return names;
}

TEST(Markdown, FetchesWhatACommandToTryNamesAndAFreshCloneLacks) {
  auto gate = fixtures::red();
  MarkdownStyle style;
  style.verbs = {"gate --counts-only"};
  EXPECT_THAT(markdown(Document(gate), style), HasSubstr("Try it: `weir gate"));
  gate.options["--waivers-ref"] = "origin/perf-baselines";
  gate.options["--pr"] = "12";
  EXPECT_THAT(markdown(Document(gate), style),
              HasSubstr("Try it: `git fetch && weir gate --waivers-ref "
                        "origin/perf-baselines --pr 12"));
}

TEST(Markdown, RendersTheFailingMetricsOfABlockAsATableThatFitsAPhone) {
  const std::string html = rendered(markdown(fixtures::red(), {}));
  EXPECT_THAT(html, HasSubstr("<h3>\u274c weir: 1 of 8 cells broke a limit</h3>"));
  EXPECT_THAT(html,
              HasSubstr("<p>\u274c <code>llama.cpp / tiny-llama / vulkan / decode</code></p>\n"
                        "<p>Limit: must not change</p>"));
  EXPECT_THAT(html, HasSubstr("<th>what</th>\n<th>base \u2192 now</th>\n</tr>"));
  EXPECT_THAT(html, HasSubstr("<td>dispatches/token</td>\n<td>65\u00a0\u2192\u00a0<strong>77"
                              "</strong>, +12</td>\n</tr>"));
  // One table of failures, and a folded one of the seven cells that pass.
  EXPECT_EQ(occurrences(html, "<table>"), 2U);
  EXPECT_EQ(occurrences(html, ">6</td>"), 7U);
}

TEST(Markdown, IsTwoLinesWhenAllIsFine) {
  const std::string green = markdown(fixtures::green(), {});
  EXPECT_EQ(occurrences(green, "\n\n"), 2U) << green;  // verdict, what was checked, the foot
}

TEST(Markdown, SaysWhyACellHasNoNumbersHoweverMuchThereIs) {
  auto gate = fixtures::unlike(60);
  gate.cells.push_back(gate.cells[0]);
  fixtures::absent_device(gate.cells.back());
  gate.cells.back().cell.model = "absent";
  MarkdownStyle style;
  style.limit = 6000;
  const std::string comment = markdown(gate, style);
  EXPECT_LE(comment.size(), 6000U);
  EXPECT_THAT(comment, HasSubstr("asked for Vulkan")) << comment;
}

TEST(Markdown, KeepsAReasonWhyNothingWasJudgedInert) {
  auto gate = fixtures::green();
  gate.verdict = Outcome::error;
  gate.nothing_judged_reason = "<img src=x> @octocat <!-- weir:gate -->";
  const std::string comment = markdown(gate, {});
  EXPECT_THAT(comment, Not(HasSubstr("<img")));
  EXPECT_THAT(comment, Not(HasSubstr("<!--")));
}

TEST(Markdown, CountsLinesOfAListThatHaveNoRoom) {
  auto gate = fixtures::red();
  for (int i = 0; i < 40; ++i) {
    verdict::Proposal proposal;
    proposal.what = "limits.decode_tokens_per_second of a long name " + std::to_string(i);
    gate.proposals.push_back(std::move(proposal));
  }
  EXPECT_THAT(markdown(gate, {}), HasSubstr("- and 28 more\n"));
}

TEST(Markdown, NamesTheGateWhereThereAreSeveral) {
  MarkdownStyle style;
  style.gate = "default";
  EXPECT_THAT(markdown(fixtures::red(), style), HasSubstr("### \u274c weir: 1 of 8"));
  style.gate = "nightly-gpu";
  EXPECT_THAT(markdown(fixtures::red(), style), HasSubstr("### \u274c weir `nightly-gpu`: 1 of 8"));
}

TEST(Markdown, OffersToAcceptByACommentWhereARobotReadsThem) {
  EXPECT_THAT(markdown(fixtures::red(), {}), Not(HasSubstr("/weir")));
  MarkdownStyle style;
  style.verbs = {"/weir waive", "baseline accept"};
  EXPECT_THAT(
      markdown(fixtures::red(), style),
      HasSubstr("Meant? Comment `/weir waive CODE REASON` or run `weir baseline accept --cell "
                "'llama.cpp/tiny-llama/vulkan/decode'`\n"));
  EXPECT_THAT(markdown(fixtures::green(), style), Not(HasSubstr("/weir")));
  EXPECT_THAT(markdown(fixtures::undecided(), style), Not(HasSubstr("/weir")));
}

TEST(Markdown, IsNotGreenWhereNothingWasMeasured) {
  EXPECT_THAT(markdown(fixtures::all_skipped(), {}), testing::StartsWith("### \u26aa weir: "));
  auto empty = fixtures::green();
  empty.cells.clear();
  EXPECT_THAT(markdown(empty, {}), testing::StartsWith("### \u26aa weir: "));
}

TEST(Markdown, SaysOnceWhatHoldsForSeveralCells) {
  // Four cells fail by the same kernels, two could not be measured for one reason.
  auto gate = fixtures::many(4);
  for (const char* model : {"x", "y"}) {
    gate.cells.push_back(gate.cells[0]);
    fixtures::absent_device(gate.cells.back());
    gate.cells.back().cell.model = model;
  }
  const std::string comment = markdown(gate, {});
  EXPECT_EQ(occurrences(comment, "**Kernels per token**: +12 `mul_f32`"), 1U) << comment;
  EXPECT_EQ(occurrences(comment, "asked for Vulkan"), 1U) << comment;
  EXPECT_THAT(comment, HasSubstr("error: 2 of 6 cells: x, y \u00d7 vulkan \u00d7 decode"));
}

TEST(Markdown, KeepsItsFirstLineAndWhatToDoNextHoweverMuchThereIs) {
  auto gate = fixtures::unlike(10'000);
  gate.not_judged = {"throughput not decided in 3 of 10000 cells"};
  MarkdownStyle style;
  style.verbs = {"/weir waive"};
  style.run_url = "https://example.org/runs/1";
  for (const std::size_t limit : {std::size_t{2000}, k_comment_limit}) {
    style.limit = limit;
    const std::string comment = markdown(gate, style);
    EXPECT_LE(comment.size(), limit);
    EXPECT_THAT(comment,
                testing::StartsWith("### \u274c weir: 10000 of 10000 cells broke a limit "
                                    "\u00b7 throughput not decided in 3 of 10000 cells\n"));
    EXPECT_THAT(comment, HasSubstr("Meant? Comment `/weir waive CODE REASON`"));
    EXPECT_THAT(comment, HasSubstr("[The report of the run](https://example.org/runs/1) has all"));
    EXPECT_THAT(comment, HasSubstr("weir 0.1.0</sub>"));
  }
  // Thirty cells are unfolded, the others are folded.
  const std::string comment = markdown(gate, style);
  const std::string open = comment.substr(0, comment.find("<details>"));
  EXPECT_EQ(occurrences(open, "| dispatches/token | 65"), 30U);
  EXPECT_THAT(comment, HasSubstr("<details><summary>9970 more cells that changed</summary>"));
}

TEST(Markdown, NamesDevicesAndTheMachineInItsLastLine) {
  const std::string comment = markdown(fixtures::red(), {});
  EXPECT_THAT(comment,
              HasSubstr("<sub>`a1b2c3d` against stored baselines in baselines, commit "
                        "`e4f5a6b` \u00b7 llvmpipe (LLVM 15.0.6, 256 bits) "
                        "`vulkan-10005-0-d-1-0a1b2c3d` \u00b7 Example CPU, 2 cores, 8 GiB"));
  auto gate = fixtures::red();
  gate.base_origin = "no stored baselines: there is no folder perf";
  EXPECT_THAT(markdown(gate, {}),
              HasSubstr("<sub>`a1b2c3d` no stored baselines: there is no folder perf"));
}

TEST(Markdown, ShowsTheLastWordsOfAnEngineIfTheyAreFew) {
  auto gate = fixtures::errors();
  for (auto& cell : gate.cells) {
    if (cell.verdict == verdict::Outcome::error) cell.stderr_tail = "loading\nout of memory";
  }
  EXPECT_THAT(markdown(gate, {}), HasSubstr("<details open><summary>"));
  for (auto& cell : gate.cells) {
    if (!cell.stderr_tail.empty()) cell.stderr_tail = "a\nb\nc\nd";
  }
  EXPECT_THAT(markdown(gate, {}), testing::Not(HasSubstr("<details open>")));
}

TEST(Markdown, NamesTheGateBeforeTheCommandThatExplainsItsRun) {
  MarkdownStyle style;
  style.verbs = {"explain", "gate --counts-only", "gate --from"};
  const std::string comment = markdown(fixtures::red(), style);
  ASSERT_THAT(comment, HasSubstr("Why: `weir explain`"));
  EXPECT_LT(comment.find("Try it: `weir gate"), comment.find("Why: `weir explain`"));
  EXPECT_THAT(comment, testing::Not(HasSubstr("--html")));
}

TEST(Markdown, KeepsTextFromOutsideInert) {
  const std::string html = rendered(markdown(fixtures::hostile(), {}));
  const std::set<std::string> own = {"h3",  "table", "thead",  "tbody", "tr",      "th",
                                     "td",  "code",  "strong", "p",     "details", "summary",
                                     "pre", "sub",   "ul",     "li",    "em",      "span"};
  for (const std::string& name : elements(html)) {
    EXPECT_TRUE(own.contains(name)) << "an element that weir never writes: " << name;
  }
  EXPECT_EQ(occurrences(html, "<table>"), 2U) << "a '|' must not break a row into other columns";
  // Every row of the first table has all its columns.
  const std::string table = html.substr(html.find("<table>"), html.find("</table>"));
  EXPECT_EQ(occurrences(table, "<td") % (occurrences(table, "<th") - 1), 0U);  // <thead>
  // GitHub links these patterns in finished text outside of code, so all of them must be split.
  std::string prose;
  for (std::size_t at = 0; at < html.size();) {
    const std::size_t code = std::min(html.find("<code", at), html.size());
    prose += html.substr(at, code - at);
    at = code == html.size() ? code : html.find("</code>", code) + 7;
  }
  for (const char* bait : {"@octocat", "#123", "GH-7", "https://evil", "www.evil", "<a "}) {
    EXPECT_THAT(prose, Not(HasSubstr(bait)));
  }
}

TEST(Markdown, EscapesTextSoThatItReadsAsWritten) {
  struct Row {
    const char* text;
    const char* html;  // as rendered by CommonMark
  };
  for (const auto& [text, html] : {
           Row{"a | b", "<p>a | b</p>\n"},
           Row{"**b** _i_ `c` ~~s~~", "<p>**b** _i_ `c` ~~s~~</p>\n"},
           Row{"<b>&lt;", "<p>&lt;b&gt;&amp;lt;</p>\n"},
           Row{"[l](x) ![i](y)", "<p>[l](x) ![i](y)</p>\n"},
           Row{"two\nlines", "<p>two lines</p>\n"},
           Row{"- list", "<p>- list</p>\n"},
           Row{"+ list", "<p>+ list</p>\n"},
           Row{"back\\slash \\| pipe", "<p>back\\slash \\| pipe</p>\n"},
       }) {
    std::string shown = rendered(markdown_text(text));
    for (std::size_t at = shown.find(k_zero_width); at != std::string::npos;
         at = shown.find(k_zero_width)) {
      shown.erase(at, k_zero_width.size());
    }
    EXPECT_EQ(shown, html) << text;
  }
  EXPECT_EQ(markdown_code("a|b`c"), "<code>a&#124;b&#96;c</code>");
  EXPECT_EQ(markdown_code("a_b*c<d>"), "`a_b*c<d>`");
}

TEST(Markdown, FitsIntoACommentAndCountsWhatItLeftOut) {
  const std::size_t cells = 3000;
  const std::string comment = markdown(fixtures::unlike(cells), {});
  EXPECT_LE(comment.size(), 65'536U);  // GitHub's limit for a comment
  const std::size_t shown = occurrences(comment, "| dispatches/token | 65");
  EXPECT_GT(shown, 100U);
  EXPECT_THAT(comment, HasSubstr(std::to_string(cells - shown) + " more cells left out"));
  EXPECT_THAT(rendered(comment), Not(HasSubstr("<p>|")));  // no torn table

  MarkdownStyle summary;
  summary.limit = k_summary_limit;
  const std::string longer = markdown(fixtures::unlike(cells), summary);
  EXPECT_LE(longer.size(), std::size_t{1} << 20U);
  EXPECT_EQ(occurrences(longer, "| dispatches/token | 65"), cells);
  EXPECT_THAT(longer, Not(HasSubstr("left out")));
}

TEST(Markdown, FitsAlsoWhereOneCellAloneIsTooMuch) {
  for (const std::size_t limit : {std::size_t{2000}, std::size_t{5000}, std::size_t{20'000}}) {
    MarkdownStyle style;
    style.limit = limit;
    EXPECT_LE(markdown(fixtures::hostile(), style).size(), limit);
    EXPECT_LE(markdown(fixtures::errors(), style).size(), limit);
  }
}

TEST(Markdown, LinksARunOnlyByAPlainAddress) {
  MarkdownStyle style;
  for (const char* bad : {"javascript:alert(1)", "https://a) [b](https://c", "http://plain"}) {
    style.run_url = bad;
    EXPECT_THAT(markdown(fixtures::green(), style), Not(HasSubstr("[run]"))) << bad;
  }
  style.run_url = "https://example.org/runs/1";
  EXPECT_THAT(markdown(fixtures::green(), style), HasSubstr("[run](https://example.org/runs/1)"));
}

}  // namespace markdown_test
}  // namespace weir::report
