// Tests JUnit, HTML and annotations: well-formed and inert with any input.
#include "gate/report/formats.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/text.hpp"
#include "gate/report/annotations.hpp"
#include "gate/report/html.hpp"
#include "gate/report/junit.hpp"
#include "gate/report/markdown.hpp"
#include "gate/report/open_metrics.hpp"

#include "tests/report/fixtures.hpp"
#include "tests/report/support.hpp"

namespace weir::report {
namespace formats_test {

using support::feed;
using support::first_line;
using support::occurrences;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// Returns the result of an XPath expression on `xml`, by xmllint (Debian package libxml2-utils).
std::string xpath(const std::string& xml, const std::string& expression) {
  const auto answer = feed("xmllint --nonet --xpath '" + expression + "' -", xml);
  EXPECT_EQ(answer.exit, 0) << "xmllint (Debian package libxml2-utils): " << answer.out;
  return std::string(text::trim(answer.out));
}

TEST(Junit, IsWellFormedWhateverNamesAndReasonsHold) {
  for (const auto& [name, gate] : fixtures::all()) {
    const auto answer = feed("xmllint --nonet --noout -", junit(gate));
    EXPECT_EQ(answer.exit, 0) << name << " (xmllint, package libxml2-utils): " << answer.out;
  }
}

TEST(Junit, CountsFailuresErrorsAndSkippedAsItsCasesHaveThem) {
  for (const auto& [name, gate] : fixtures::all()) {
    const std::string xml = junit(gate);
    for (const auto& [attribute, element] : {std::pair{"tests", "testcase"},
                                             {"failures", "failure"},
                                             {"errors", "error"},
                                             {"skipped", "skipped"}}) {
      const std::string counted = xpath(xml, std::string("count(//") + element + ")");
      EXPECT_EQ(xpath(xml, std::string("string(/testsuites/@") + attribute + ")"), counted) << name;
      EXPECT_EQ(xpath(xml, std::string("sum(//testsuite/@") + attribute + ")"), counted) << name;
    }
  }
}

TEST(Junit, NamesABrokenLimitAndACellThatCouldNotBeMeasured) {
  const std::string red = junit(fixtures::red());
  // Failures are two counts and the kernels.
  EXPECT_EQ(xpath(red, "string(/testsuites/@failures)"), "3");
  EXPECT_EQ(xpath(red, "string(//testcase[@name=\"decode: dispatches/token\"]/failure/@message)"),
            "fail: 65 \u2192 77, +12, must not change");
  const std::string errors = junit(fixtures::errors());
  EXPECT_EQ(xpath(errors, "string(/testsuites/@errors)"), "2");
  EXPECT_THAT(xpath(errors, "string(//testsuite[@name=\"llama.cpp/tiny-gemma3/cpu\"]//error)"),
              HasSubstr("GGML_ASSERT(n > 0) failed"));
}

TEST(Junit, FailsTheUndecidedOnlyWhereTheGateDoes) {
  auto gate = fixtures::undecided();
  EXPECT_EQ(xpath(junit(gate), "string(/testsuites/@failures)"), "0");
  EXPECT_EQ(xpath(junit(gate), "string(/testsuites/@skipped)"), "1");
  gate.exit_code = verdict::ExitCode::inconclusive;
  EXPECT_EQ(xpath(junit(gate), "string(/testsuites/@failures)"), "1");
}

TEST(Html, FetchesNothingAndRunsNothing) {
  for (const auto& [name, gate] : fixtures::all()) {
    const std::string page = html(gate);
    EXPECT_THAT(page, HasSubstr("default-src 'none'")) << name;
    for (const char* bait :
         {"<script", "<img", "<link", "<iframe", "src=\"", "href=", "url(", "@import"}) {
      EXPECT_THAT(page, Not(HasSubstr(bait))) << name;
    }
    EXPECT_EQ(occurrences(page, "<!--"), 0U) << name;
  }
}

TEST(Html, IsWellFormed) {
  // Parses the page as XML, where every element is closed. The doctype and two void elements are
  // corrected first.
  for (const auto& [name, gate] : fixtures::all()) {
    std::string page = html(gate);
    page.erase(0, std::string("<!doctype html>").size());
    for (std::size_t at = page.find("<meta"); at != std::string::npos;
         at = page.find("<meta", at + 1)) {
      page.insert(page.find('>', at), "/");
    }
    const auto answer = feed("xmllint --nonet --noout -", page);
    EXPECT_EQ(answer.exit, 0) << name << ": " << answer.out;
  }
}

TEST(Html, NamesEveryCellAndItsHeadings) {
  const std::string page = html(fixtures::mixed());
  for (const auto& cell : fixtures::mixed().cells) {
    EXPECT_THAT(page, HasSubstr(cell_title(cell.cell)));
  }
  EXPECT_EQ(occurrences(page, "<th>"), 0U) << "every heading says what it heads (scope)";
  EXPECT_THAT(page, HasSubstr("<html lang=\"en\">"));
}

TEST(Reports, TellInTheirFirstLineWhatWasNotJudged) {
  const auto gate = fixtures::mixed();
  for (const std::string& report : {junit(gate), html(gate), annotations(gate)}) {
    EXPECT_THAT(first_line(report),
                HasSubstr("throughput not decided in 3 of 8 cells, 2 cells new"));
  }
}

TEST(Annotations, AreOneLineEachWithTheirSpecialCharactersEscaped) {
  const std::string hostile = annotations(fixtures::hostile());
  for (const std::string& line : text::lines(hostile)) {
    if (line.empty()) continue;
    const bool is_command = line.starts_with("::error title=weir ") ||
                            line.starts_with("::warning title=weir ") ||
                            line.starts_with("::notice title=weir ");
    EXPECT_TRUE(is_command) << line;
    // A property ends at the first ',' and the title at the first "::".
    const std::string title =
        line.substr(line.find("title="), line.find("::", 2) - line.find("title="));
    EXPECT_EQ(title.find(','), std::string::npos) << line;
    EXPECT_EQ(title.find(':'), std::string::npos) << line;
  }
  EXPECT_EQ(hostile.find('\r'), std::string::npos);
  EXPECT_EQ(occurrences(hostile, " %0A "), 0U) << "the text's own percent sign is %25";
  const std::string red = annotations(fixtures::red());
  EXPECT_THAT(red, HasSubstr("::dispatches/token: 65 \u2192 77 (+12, must not change)%0AKernels"));
}

TEST(Annotations, StopAtTenOfAKindAndSayHowManyMore) {
  // 25 cells fail: nine lines, and a tenth for the other 16.
  const std::string many = annotations(fixtures::unlike(25));
  EXPECT_EQ(occurrences(many, "::error "), k_annotations_shown);
  EXPECT_THAT(many, HasSubstr("and 16 more cells"));
  const std::string ten = annotations(fixtures::unlike(10));
  EXPECT_EQ(occurrences(ten, "::error "), 10U);
  EXPECT_THAT(ten, Not(HasSubstr("more")));
}

TEST(ReportFormats, AreFilesWithAnOptionEach) {
  const ReportContext around{{"doctor"}, "https://example.org/runs/1"};
  std::vector<std::string> texts;
  for (const ReportFormat& format : report_formats()) {
    EXPECT_THAT(std::string(format.option), StartsWith("--"));
    texts.push_back(format.render(fixtures::red(), around));
  }
  const verdict::GateVerdict gate = fixtures::red();
  EXPECT_THAT(texts, testing::ElementsAre(
                         markdown(gate, {.verbs = around.verbs, .run_url = around.run_url}),
                         junit(gate), html(gate), open_metrics(gate)));
}

}  // namespace formats_test
}  // namespace weir::report
