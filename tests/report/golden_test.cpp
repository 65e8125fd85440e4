// Every format of every fixture, as whole files.
#include <gtest/gtest.h>

#include "gate/report/annotations.hpp"
#include "gate/report/formats.hpp"
#include "gate/report/html.hpp"
#include "gate/report/junit.hpp"
#include "gate/report/markdown.hpp"
#include "gate/report/terminal.hpp"

#include "tests/report/fixtures.hpp"
#include "tests/report/paired_fixtures.hpp"
#include "tests/report/support.hpp"

namespace weir::report {
namespace golden_test {

using support::expect_golden;

const Verbs k_verbs{"baseline accept", "baseline accept --reason", "doctor"};
const Verbs k_all_verbs{"baseline accept", "gate --counts-only", "gate --resume", "doctor"};

// As its option writes it to a file.
std::string written(std::string_view option, const GateVerdict& gate) {
  for (const ReportFormat& format : report_formats()) {
    if (format.option == option) return format.render(gate, {});
  }
  ADD_FAILURE() << "no report has the option " << option;
  return "";
}

TEST(Golden, TerminalReportsLookAsStored) {
  for (const auto& [name, gate] : fixtures::all()) {
    TerminalStyle style;
    style.verbs = k_verbs;
    expect_golden(name + ".txt", terminal(gate, style));
  }
  TerminalStyle verbose;
  verbose.verbose = true;
  expect_golden("red-verbose.txt", terminal(fixtures::red(), verbose));
  TerminalStyle colored;
  colored.color = true;
  expect_golden("red-color.txt", terminal(fixtures::red(), colored));
}

TEST(Golden, MarkdownReportsLookAsStored) {
  for (const auto& [name, gate] : fixtures::all()) {
    MarkdownStyle style;
    style.verbs = k_verbs;
    style.run_url = "https://example.org/runs/1";
    expect_golden(name + ".md", markdown(gate, style));
  }
}

TEST(Golden, ReportsBesideABaseLookAsStored) {
  for (const auto& [name, gate] : fixtures::all_beside()) {
    TerminalStyle style;
    style.verbs = k_all_verbs;
    expect_golden(name + ".txt", terminal(gate, style));
    MarkdownStyle markdown_style;
    markdown_style.verbs = k_all_verbs;
    expect_golden(name + ".md", markdown(gate, markdown_style));
    expect_golden(name + ".xml", junit(gate));
    expect_golden(name + ".annotations", annotations(gate));
    expect_golden(name + ".html", html(gate));
  }
}

TEST(Golden, OtherFormatsLookAsStored) {
  for (const auto& [name, gate] : fixtures::all()) {
    expect_golden(name + ".xml", junit(gate));
    expect_golden(name + ".annotations", annotations(gate));
  }
  expect_golden("red.openmetrics", written("--openmetrics", fixtures::red()));
  expect_golden("hostile.openmetrics", written("--openmetrics", fixtures::hostile()));
  for (const char* name : {"alike", "cache_on_host", "red", "removed", "mixed", "hostile"}) {
    for (const auto& one : fixtures::all()) {
      if (one.name == name) expect_golden(one.name + ".html", html(one.gate));
    }
  }
}

}  // namespace golden_test
}  // namespace weir::report
