#include "gate/report/annotations.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/report/document.hpp"
#include "gate/report/escape.hpp"
#include "gate/report/layout.hpp"

namespace weir::report {
namespace {

// The runner undoes exactly these, in data and in properties.
constexpr Replacement k_escapes[] = {
    {'%', "%25"}, {'\r', "%0D"}, {'\n', "%0A"}, {':', "%3A"}, {',', "%2C"}};

// The last two in properties alone.
std::string escaped(std::string_view text, bool property) {
  return replace_each(text, std::span(k_escapes).first(property ? 5 : 3));
}

std::string command(std::string_view kind, std::string_view title, std::string_view message) {
  return fmt::format("::{} title={}::{}\n", kind, escaped(text::disarm(title), true),
                     escaped(text::disarm(message), false));
}

std::string metric_line(const MetricRow& row) {
  const std::string parts = row.words.parts();
  if (!row.of->is_metric()) return row.words.label + ": " + one_line(row.of->reason, 300);
  std::string line = fmt::format("{}: {}{}", row.words.label, row.words.from_to(),
                                 parts.empty() ? "" : " (" + parts + ")");
  if (!reason_is_plain(*row.of) && !row.of->reason.empty()) {
    line += ": " + one_line(row.of->reason, 300);
  }
  return line;
}

// What all cells of a block share.
void list(std::string_view what, const Block& block, const std::vector<ChangedIn>& all,
          std::vector<std::string>& lines) {
  constexpr std::size_t k_most = 8;
  if (all.empty() || all.front().cells.size() < block.cells.size()) return;
  std::vector<std::string> parts;
  for (const auto& [change, name] : all.front().changes) parts.push_back(change + " " + name);
  parts.resize(std::min(k_most, parts.size()));
  lines.push_back(fmt::format("{}: {}", what, text::join(parts)));
}

std::string title_of(const Block& block) {
  return fmt::format("{}: {}", verdict::to_string(block.of().verdict),
                     block.one() ? block.title : plural(block.cells.size(), "cell"));
}

std::string message_of(const Block& block) {
  const CellDocument& document = block.first();
  const CellVerdict& cell = *document.of;
  std::vector<std::string> lines;
  if (!block.reason.empty()) lines.push_back(one_line(block.reason, 600));
  for (const MetricRow* row : block.rows) {
    // A new cell has one reason; that none of its metrics can be judged follows from it.
    if (cell.verdict == Outcome::new_ && !lines.empty()) break;
    const bool metric = row->of->is_metric() && row->of->verdict == cell.verdict;
    // Kernels that are new or fewer say nothing of what broke.
    const bool aside =
        row->of->metric.name == verdict::k_kernels && row->of->verdict >= Outcome::new_;
    if (metric || (row->broken_rule() && !aside)) lines.push_back(metric_line(*row));
  }
  if (cell.of(verdict::k_kernels).verdict < Outcome::pass || cell.verdict == Outcome::fail) {
    list("kernels", block, block.kernels, lines);
  }
  list("functions", block, block.functions, lines);
  constexpr std::size_t k_most_lines = 12, k_most_cells = 20;
  if (lines.size() > k_most_lines) lines = shortened(std::move(lines), k_most_lines - 1);
  if (block.one()) return text::join(lines, "\n");
  std::vector<std::string> names;
  for (const CellDocument* one : block.cells) names.push_back("- " + one->title);
  if (!lines.empty()) lines.emplace_back();
  return text::join(lines, "\n") + text::join(shortened(std::move(names), k_most_cells), "\n");
}

std::string line_of(const NumberWords& words) {
  std::vector<std::string> parts{words.from_to, words.change, words.where};
  std::erase(parts, "");
  return fmt::format("{}: {}", words.label, text::join(parts));
}

Annotation annotation_of(const CauseWords& cause, std::size_t cells) {
  std::vector<std::string> lines{cause.where.empty() ? "" : "in " + cause.where};
  for (const NumberWords& one : cause.numbers) lines.push_back(line_of(one));
  lines.push_back(cause.follow);
  if (!cause.look_at.empty()) lines.push_back("look at: " + cause.look_at);
  std::erase(lines, "");
  return {Outcome::fail, "fail: " + cause.headline, text::join(lines, "\n"), cells};
}

Annotation unexplained_of(const Document& document) {
  constexpr std::size_t k_most_lines = 12;
  std::set<std::string> cells;
  for (const verdict::Unexplained& one : document.gate.unexplained) {
    cells.insert(one.cells.begin(), one.cells.end());
  }
  const auto lines = collect<std::string>(document.unexplained, line_of);
  return {Outcome::fail, "fail: not explained",
          text::join(shortened(lines, k_most_lines - 1), "\n"), cells.size()};
}

}  // namespace

std::vector<Annotation> annotations_of(const Document& document) {
  std::vector<Annotation> all;
  if (document.cause_first) {
    for (std::size_t i = 0; i < document.causes.size(); ++i) {
      all.push_back(annotation_of(document.causes[i], document.gate.causes[i].cells.size()));
    }
    if (!document.unexplained.empty()) all.push_back(unexplained_of(document));
  }
  for (const Block& block : document.blocks) {
    if (block.folded) continue;
    all.push_back({block.of().verdict, title_of(block), message_of(block), block.cells.size()});
  }
  return all;
}

std::string annotations(const Document& document) {
  const std::string_view verdict = verdict::to_string(document.gate.verdict);
  std::string out = command("notice", fmt::format("weir {}", verdict), document.first_line());
  const ProposalWords rules = proposal_words(document.gate, 10);
  if (!rules.head.empty()) {
    out += command("warning", "weir: " + rules.head, text::join(rules.lines, "\n"));
  }
  const std::vector<Annotation> all = annotations_of(document);
  for (const std::string_view kind : {"error", "warning", "notice"}) {
    std::vector<const Annotation*> of_kind;
    std::size_t cells = 0;
    for (const Annotation& one : all) {
      if (look_of(one.verdict).level != kind) continue;
      of_kind.push_back(&one);
      cells += one.cells;
    }
    // One notice is the headline's.
    const std::size_t room = k_annotations_shown - (kind == "notice" ? 1 : 0);
    for (std::size_t i = 0; i < of_kind.size(); ++i) {
      if (i + 1 == room && of_kind.size() > room) {
        out += command(kind, "weir", "and " + plural(cells, "more cell"));
        break;
      }
      cells -= of_kind[i]->cells;
      out += command(kind, "weir " + of_kind[i]->title, of_kind[i]->message);
    }
  }
  return out;
}

}  // namespace weir::report
