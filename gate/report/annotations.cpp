// Writes a gate's verdict as workflow commands that GitHub shows as annotations.
#include "gate/report/annotations.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/report/compose.hpp"
#include "gate/report/document.hpp"
#include "gate/report/escape.hpp"
#include "gate/report/layout.hpp"
#include "gate/report/proposals.hpp"

namespace weir::report {
namespace {

// Characters that GitHub's runner decodes; the last two only in properties.
constexpr Replacement k_escapes[] = {
    {'%', "%25"}, {'\r', "%0D"}, {'\n', "%0A"}, {':', "%3A"}, {',', "%2C"}};

std::string escape(std::string_view text) {
  return replace_each(text, std::span(k_escapes).first(3));
}

std::string escape_property(std::string_view text) { return replace_each(text, k_escapes); }

std::string command(std::string_view kind, std::string_view title, std::string_view message) {
  return fmt::format("::{} title={}::{}\n", kind,
                     escape_property(text::neutralize_ci_commands(title)),
                     escape(text::neutralize_ci_commands(message)));
}

// Returns a row as a line: "dispatches/token: 65 → 77 (+12, must not change)", with its reason.
std::string number_line(const Number& number) {
  std::vector<std::string> values{number.base, number.candidate};
  std::erase(values, "");
  std::string line = text::join(values, k_arrow);
  if (const std::string parts = number.parts(); !parts.empty() && has_numbers(number)) {
    text::append_item(line, " ", fmt::format("({})", parts));
  }
  if (!has_numbers(number)) line = number.where;
  if (!number.why.empty()) text::append_item(line, ": ", printable_line(number.why, 300));
  return number.label + ": " + line;
}

// Adds the lines of those parts of a report that a comment shows, and of what stands below their
// numbers.
void add_lines(std::vector<std::string>& lines, const Parts& parts) {
  constexpr std::size_t k_max_changes = 8;
  for (const Part& part : parts) {
    if ((part.readers & k_comment) == 0) continue;
    const std::string head = part.head.empty() ? part.in : plain_text(part.head) + ": " + part.in;
    if (part.kind == Part::Kind::paragraph) {
      lines.push_back(head + printable_line(plain_text(part.words), 600));
    } else if (part.kind == Part::Kind::changes) {
      const auto all = collect<std::string>(
          part.items, [](const Words& item) { return item.front().text + " " + item.back().text; });
      lines.push_back(head + text::join(shortened(all, k_max_changes)));
    }
    for (const Number& number : part.numbers) {
      if ((number.readers & k_comment) == 0) continue;
      lines.push_back(number_line(number));
      add_lines(lines, number.below);
    }
  }
}

// Adds an annotation for each section about cells (benchmarks). A section without an outcome, such
// as a cause, takes `outcome` from the section around it.
void add_annotations(std::vector<Annotation>& all, const Parts& parts, Outcome outcome) {
  constexpr std::size_t k_max_lines = 12;
  for (const Part& part : parts) {
    if (part.kind != Part::Kind::section) continue;
    const Outcome section_outcome = part.outcome.value_or(outcome);
    if (part.cell_count == 0) {
      add_annotations(all, part.parts, section_outcome);
      continue;
    }
    std::vector<std::string> lines;
    add_lines(lines, part.parts);
    all.push_back(
        {section_outcome,
         fmt::format("{}: {}", verdict::to_string(section_outcome), plain_text(part.head)),
         text::join(shortened(std::move(lines), k_max_lines), "\n"), part.cell_count});
  }
}

}  // namespace

std::vector<Annotation> list_annotations(const Document& document) {
  std::vector<Annotation> all;
  add_annotations(all, compose(document), document.gate.verdict);
  return all;
}

// Returns the first `max_annotations`. If there are more, the last says how many cells are left
// out.
std::vector<Annotation> limit_annotations(std::vector<Annotation> all,
                                          std::size_t max_annotations) {
  if (all.size() <= max_annotations) return all;
  std::size_t cells_left_out = 0;
  for (std::size_t i = std::max<std::size_t>(max_annotations, 1) - 1; i < all.size(); ++i) {
    cells_left_out += all[i].cells;
  }
  all.resize(max_annotations);
  if (max_annotations > 0) {
    all.back().title = "";
    all.back().message = "and " + text::plural(cells_left_out, "more cell");
    all.back().cells = cells_left_out;
  }
  return all;
}

// Writes the verdict as annotations of GitHub, a command a line: an error, warning or notice for
// each finding.
std::string annotations(const Document& document) {
  const std::string_view verdict = verdict::to_string(document.gate.verdict);
  std::string out = command("notice", fmt::format("weir {}", verdict), document.first_line());
  const ProposalText rules = proposal_text(document.gate, 10);
  if (!rules.head.empty()) {
    out += command("warning", "weir: " + rules.head, text::join(rules.lines, "\n"));
  }
  const std::vector<Annotation> all = list_annotations(document);
  for (const std::string_view kind : {"error", "warning", "notice"}) {
    std::vector<Annotation> of_kind = all;
    std::erase_if(of_kind, [&](const Annotation& annotation) {
      return outcome_look(annotation.verdict).level != kind;
    });
    // The headline takes one notice.
    std::size_t max_of_kind = k_annotations_shown;
    if (kind == "notice") --max_of_kind;
    for (const Annotation& annotation : limit_annotations(std::move(of_kind), max_of_kind)) {
      const std::string title = "weir" + text::prefix_if_any(" ", annotation.title);
      out += command(kind, title, annotation.message);
    }
  }
  return out;
}

}  // namespace weir::report
