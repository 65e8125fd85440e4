// Writes a gate's verdict as JUnit XML.
#include "gate/report/junit.hpp"

#include <vector>

#include <fmt/format.h>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/report/document.hpp"
#include "gate/report/escape.hpp"
#include "gate/report/layout.hpp"
#include "gate/report/proposals.hpp"

namespace weir::report {
namespace {

// A test suite: the cells of one engine, model and backend.
struct Suite {
  std::string name;
  std::string cases;  // XML
  std::size_t tests = 0, failures = 0, errors = 0, skipped = 0;
};

// Collects test cases in suites and writes them.
class Junit {
 public:
  explicit Junit(const Document& document) : document_(document), gate_(document.gate) {}

  std::string write() {
    add_proposals();
    for (const CellDocument& cell : document_.cells) add_cell(cell);
    Suite total;
    std::string body;
    for (const auto& [name, suite] : suites_.all) {
      total.tests += suite.tests;
      total.failures += suite.failures;
      total.errors += suite.errors;
      total.skipped += suite.skipped;
      body +=
          fmt::format("  <testsuite {}>\n{}  </testsuite>\n", suite_attributes(suite), suite.cases);
    }
    total.name = "weir: " + document_.first_line();
    // On the line of the declaration, because the first line of a report says what was not judged.
    return fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?> <testsuites {}>\n{}</testsuites>\n",
        suite_attributes(total), body);
  }

 private:
  static std::string suite_attributes(const Suite& suite) {
    return fmt::format("name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"",
                       xml_text(suite.name), suite.tests, suite.failures, suite.errors,
                       suite.skipped);
  }

  // Returns the suite of this name; makes it if it isn't there.
  Suite& find_suite(const std::string& name) {
    Suite& suite = suites_.find_or_add(name, name);
    suite.name = name;
    return suite;
  }

  // Adds a skipped test for each edit to the rules: it was not judged, and readers see skipped
  // tests.
  void add_proposals() {
    const ProposalText all = proposal_text(gate_, verdict::k_max_proposals);
    if (all.head.empty()) return;
    Suite& suite = find_suite("rules: " + all.head);
    for (const std::string& line : all.lines) {
      ++suite.tests;
      ++suite.skipped;
      suite.cases += fmt::format(
          "    <testcase classname=\"rules\" name=\"{0}\">\n      <skipped message=\"proposed: "
          "{0}\"/>\n"
          "    </testcase>\n",
          xml_text(line));
    }
  }

  // Adds a test for each metric and rule of a cell, and one for the whole cell if it has an error,
  // was skipped or has no metrics.
  void add_cell(const CellDocument& document) {
    const CellVerdict& cell = *document.cell_verdict;
    const std::string name =
        fmt::format("{}/{}/{}", cell.cell.engine_part(), cell.cell.model, cell.cell.backend);
    Suite& suite = find_suite(name);
    const std::string prompt = cell.cell.prompt_part();
    const bool has_own_test = cell.verdict == Outcome::error || cell.verdict == Outcome::skipped ||
                              cell.metrics().empty();
    if (has_own_test) add_test(suite, prompt, cell.verdict, document.reason, cell_text(cell));
    for (const MetricRow& row : document.rows) {
      const std::string test_name = fmt::format("{}: {}", prompt, row.number.label);
      if (!row.judgement->is_metric()) {
        add_test(suite, test_name, row.judgement->verdict, row.judgement->reason,
                 changes_text(named_changes(row.judgement->changed)));
        continue;
      }
      std::string body = row.judgement->reason;
      if (explained_by_functions(cell, row.judgement->metric)) {
        body += "\n" + changes_text(document.functions);
      }
      const std::string parts = row.number.parts();
      if (row.judgement->verdict == Outcome::info) continue;  // not judged, so no test
      add_test(suite, test_name, row.judgement->verdict,
               row.number.from_to() + text::prefix_if_any(", ", parts), body);
    }
  }

  // Adds a test case; `brief` is the message of one that did not pass, `body` its text.
  void add_test(Suite& suite, const std::string& name, Outcome outcome, std::string_view brief,
                std::string_view body) const {
    ++suite.tests;
    suite.cases += fmt::format("    <testcase classname=\"{}\" name=\"{}\"", xml_text(suite.name),
                               xml_text(printable_line(name, 400)));
    const bool fails =
        outcome == Outcome::inconclusive && gate_.exit_code == verdict::ExitCode::inconclusive;
    const std::string_view element = fails ? "failure" : outcome_look(outcome).element;
    if (element.empty()) {
      suite.cases += "/>\n";
      return;
    }
    if (element == "failure") ++suite.failures;
    if (element == "error") ++suite.errors;
    if (element == "skipped") ++suite.skipped;
    const std::string message =
        fmt::format("{}: {}", verdict::to_string(outcome), printable_line(brief, 600));
    suite.cases += fmt::format(">\n      <{} message=\"{}\"", element, xml_text(message));
    if (element != "skipped")
      suite.cases += fmt::format(" type=\"{}\"", verdict::to_string(outcome));
    suite.cases += body.empty() ? "/>\n" : fmt::format(">{}</{}>\n", xml_text(body), element);
    suite.cases += "    </testcase>\n";
  }

  static std::string cell_text(const CellVerdict& cell) {
    std::string out = text::printable(cell.reason);
    for (const std::string& line : last_lines(cell.stderr_tail, 50)) out += "\n" + line;
    return out;
  }

  static std::string changes_text(const std::vector<NamedChange>& all) {
    std::vector<std::string> lines;
    for (const auto& [change, name] : all) lines.push_back(change + " " + name);
    return text::join(lines, "\n");
  }

  const Document& document_;
  const GateVerdict& gate_;
  Grouped<std::string, Suite> suites_;  // in plan order
};

}  // namespace

std::string junit(const Document& document) { return Junit(document).write(); }

}  // namespace weir::report
