// Tests every format of every fixture, as whole files.
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

// Returns the report that `option` writes to a file.
std::string written(std::string_view option, const GateVerdict& gate) {
  for (const ReportFormat& format : report_formats()) {
    if (format.option == option) return format.render(gate, {});
  }
  ADD_FAILURE() << "no report has the option " << option;
  return "";
}

// A cell that failed, a gate with everything, times judged by pairs.
std::vector<fixtures::Case> scenes() {
  std::vector<fixtures::Case> all{{"red", fixtures::red()}, {"mixed", fixtures::mixed()}};
  for (auto& fixture : fixtures::all_beside()) {
    if (fixture.name == "beside-fail") all.push_back(std::move(fixture));
  }
  return all;
}

TEST(Golden, EveryFormatOfThreeScenesLooksAsStored) {
  for (const auto& [name, gate] : scenes()) {
    TerminalStyle style;
    style.verbs = k_verbs;
    expect_golden(name + ".txt", terminal(gate, style));
    MarkdownStyle markdown_style;
    markdown_style.verbs = k_verbs;
    markdown_style.run_url = "https://example.org/runs/1";
    expect_golden(name + ".md", markdown(gate, markdown_style));
    expect_golden(name + ".html", html(gate));
    expect_golden(name + ".xml", junit(gate));
    expect_golden(name + ".annotations", annotations(gate));
  }
}

TEST(Golden, AGateWhoseBudgetWasUsedUpLooksAsStored) {
  expect_golden("beside-open.txt", terminal(fixtures::beside_open(), {}));
  expect_golden("beside-open.md", markdown(fixtures::beside_open(), {}));
}

TEST(Golden, OptionsOfATerminalLookAsStored) {
  TerminalStyle verbose;
  verbose.verbose = true;
  expect_golden("red-verbose.txt", terminal(fixtures::red(), verbose));
  TerminalStyle colored;
  colored.color = true;
  expect_golden("red-color.txt", terminal(fixtures::red(), colored));
}

TEST(Golden, NumbersForMachinesLookAsStored) {
  for (const auto& [name, gate] :
       {fixtures::Case{"red", fixtures::red()}, fixtures::Case{"hostile", fixtures::hostile()}}) {
    expect_golden(name + ".openmetrics", written("--openmetrics", gate));
  }
}

}  // namespace golden_test
}  // namespace weir::report
