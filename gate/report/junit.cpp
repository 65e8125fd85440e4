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

struct Suite {
  std::string name;
  std::string cases;
  std::size_t tests = 0, failures = 0, errors = 0, skipped = 0;
};

class Junit {
 public:
  explicit Junit(const Document& document) : document_(document), gate_(document.gate) {}

  std::string write() {
    proposals();
    for (const CellDocument& cell : document_.cells) add(cell);
    Suite all;
    std::string body;
    for (const Suite& suite : suites_) {
      all.tests += suite.tests;
      all.failures += suite.failures;
      all.errors += suite.errors;
      all.skipped += suite.skipped;
      body += fmt::format("  <testsuite {}>\n{}  </testsuite>\n", numbers(suite), suite.cases);
    }
    all.name = "weir: " + document_.first_line();
    // On the line of the declaration: what was not judged stands in the first line of each report.
    return fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?> <testsuites {}>\n{}</testsuites>\n",
        numbers(all), body);
  }

 private:
  static std::string numbers(const Suite& suite) {
    return fmt::format("name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"",
                       xml_text(suite.name), suite.tests, suite.failures, suite.errors,
                       suite.skipped);
  }

  // Skipped: what is proposed was not judged, and a reader of skipped tests sees it.
  void proposals() {
    const ProposalWords all = proposal_words(gate_, verdict::k_most_proposals);
    if (all.head.empty()) return;
    Suite& suite = suites_.emplace_back(Suite{.name = "rules: " + all.head, .cases = {}});
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

  void add(const CellDocument& document) {
    const CellVerdict& cell = *document.of;
    const std::string name =
        fmt::format("{}/{}/{}", cell.cell.engine_part(), cell.cell.model, cell.cell.backend);
    Suite* known = find_named(suites_, name);
    Suite& suite =
        known != nullptr ? *known : suites_.emplace_back(Suite{.name = name, .cases = {}});
    const std::string prompt = cell.cell.prompt_part();
    // The cell as a whole carries what belongs to no metric.
    const bool own = cell.verdict == Outcome::error || cell.verdict == Outcome::skipped ||
                     cell.metrics().empty();
    if (own) test(suite, prompt, cell.verdict, document.reason, whole_text(cell));
    for (const MetricRow& row : document.rows) {
      const std::string test_name = fmt::format("{}: {}", prompt, row.words.label);
      if (!row.of->is_metric()) {
        test(suite, test_name, row.of->verdict, row.of->reason,
             changed_text(changed_words(row.of->changed)));
        continue;
      }
      std::string body = row.of->reason;
      const bool functions = explained_by_functions(cell, row.of->metric);
      if (functions) body += "\n" + changed_text(document.functions);
      const std::string parts = row.words.parts();
      if (row.of->verdict == Outcome::info) continue;  // what is only shown is no test
      test(suite, test_name, row.of->verdict,
           row.words.from_to() + (parts.empty() ? "" : ", " + parts), body);
    }
  }

  void test(Suite& suite, const std::string& name, Outcome outcome, std::string_view brief,
            std::string_view body) const {
    ++suite.tests;
    suite.cases += fmt::format("    <testcase classname=\"{}\" name=\"{}\"", xml_text(suite.name),
                               xml_text(one_line(name, 400)));
    const bool undecided_fails = gate_.exit_code == verdict::ExitCode::inconclusive;
    const bool fails = outcome == Outcome::inconclusive && undecided_fails;
    const std::string_view element = fails ? "failure" : look_of(outcome).element;
    if (element.empty()) {
      suite.cases += "/>\n";
      return;
    }
    suite.failures += element == "failure" ? 1 : 0;
    suite.errors += element == "error" ? 1 : 0;
    suite.skipped += element == "skipped" ? 1 : 0;
    const std::string message =
        fmt::format("{}: {}", verdict::to_string(outcome), one_line(brief, 600));
    suite.cases += fmt::format(">\n      <{} message=\"{}\"", element, xml_text(message));
    const bool typed = element != "skipped";
    if (typed) suite.cases += fmt::format(" type=\"{}\"", verdict::to_string(outcome));
    suite.cases += body.empty() ? "/>\n" : fmt::format(">{}</{}>\n", xml_text(body), element);
    suite.cases += "    </testcase>\n";
  }

  static std::string whole_text(const CellVerdict& cell) {
    std::string out = text::printable(cell.reason);
    for (const std::string& line : last_lines(cell.stderr_tail, 50)) out += "\n" + line;
    return out;
  }

  static std::string changed_text(const std::vector<ChangedWords>& all) {
    std::vector<std::string> lines;
    for (const auto& [change, name] : all) lines.push_back(change + " " + name);
    return text::join(lines, "\n");
  }

  const Document& document_;
  const GateVerdict& gate_;
  std::vector<Suite> suites_;  // in plan order
};

}  // namespace

std::string junit(const Document& document) { return Junit(document).write(); }

}  // namespace weir::report
