#include <vector>

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/report/document.hpp"
#include "gate/report/formats.hpp"
#include "gate/report/layout.hpp"

namespace weir::report {

using verdict::CellVerdict;
using verdict::GateVerdict;
using verdict::MetricVerdict;
using verdict::Outcome;

namespace {

// The runner undoes exactly these, in data and in properties.
std::string escaped(std::string_view text, bool property) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '%':
        out += "%25";
        break;
      case '\r':
        out += "%0D";
        break;
      case '\n':
        out += "%0A";
        break;
      case ':':
        out += property ? "%3A" : ":";
        break;
      case ',':
        out += property ? "%2C" : ",";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string command(std::string_view kind, std::string_view title, std::string_view message) {
  return fmt::format("::{} title={}::{}\n", kind, escaped(text::disarm(title), true),
                     escaped(text::disarm(message), false));
}

std::string metric_line(const MetricVerdict& metric) {
  const MetricWords all = words(metric);
  std::string line = all.label + ": ";
  const std::string now = all.current.empty() ? "not measured" : all.current;
  line += all.baseline.empty() ? now : all.baseline + std::string(k_arrow) + now;
  std::vector<std::string> parts;
  for (const std::string& part : {all.change, all.evidence, all.limit}) {
    if (!part.empty()) parts.push_back(part);
  }
  if (!parts.empty()) line += fmt::format(" ({})", text::join(parts));
  if (!reason_is_plain(metric) && !metric.reason.empty())
    line += ": " + one_line(metric.reason, 300);
  return line;
}

void list(std::string_view what, const std::vector<ChangedWords>& all,
          std::vector<std::string>& lines) {
  constexpr std::size_t k_most = 8;
  std::vector<std::string> parts;
  for (const ChangedWords& changed : all) {
    if (parts.size() == k_most) break;
    parts.push_back(changed.change + " " + changed.name);
  }
  if (!parts.empty()) lines.push_back(fmt::format("{}: {}", what, text::join(parts)));
}

std::string_view kind_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::fail:
    case Outcome::error:
      return "error";
    case Outcome::inconclusive:
    case Outcome::fresh:
      return "warning";
    default:
      return "notice";
  }
}

}  // namespace

std::string annotation_message(const CellVerdict& cell) {
  std::vector<std::string> lines;
  if (!cell.reason.empty()) lines.push_back(one_line(cell.reason, 600));
  if (cell.placement_verdict < Outcome::pass) {
    lines.push_back("placement: " + one_line(cell.placement_reason, 300));
  }
  for (const MetricVerdict* metric : worst_first(cell)) {
    // A new cell has one reason; that none of its metrics can be judged follows from it.
    if (cell.verdict == Outcome::fresh && !lines.empty()) break;
    if (metric->verdict == cell.verdict) lines.push_back(metric_line(*metric));
  }
  if (cell.kernels_verdict < Outcome::pass ||
      (!cell.kernels.empty() && cell.verdict == Outcome::fail)) {
    list("kernels", changed_words(cell.kernels), lines);
  }
  list("functions", function_words(cell.functions), lines);
  constexpr std::size_t k_most_lines = 12;
  if (lines.size() > k_most_lines) {
    const std::size_t more = lines.size() - k_most_lines + 1;
    lines.resize(k_most_lines - 1);
    lines.push_back(fmt::format("and {} more", more));
  }
  return text::join(lines, "\n");
}

std::string annotations(const GateVerdict& gate) {
  std::string out;
  const auto cells = cells_to_read(gate);
  for (const std::string_view kind : {"error", "warning", "notice"}) {
    std::vector<const CellVerdict*> of_kind;
    for (const CellVerdict* cell : cells) {
      if (kind_of(cell->verdict) == kind) of_kind.push_back(cell);
    }
    // One notice is the headline's.
    const std::size_t room = k_annotations_shown - (kind == "notice" ? 1 : 0);
    for (std::size_t i = 0; i < of_kind.size(); ++i) {
      if (i + 1 == room && of_kind.size() > room) {
        out +=
            command(kind, "weir", fmt::format("and {}", plural(of_kind.size() - i, "more cell")));
        break;
      }
      const CellVerdict& cell = *of_kind[i];
      out += command(
          kind, fmt::format("weir {}: {}", verdict::to_string(cell.verdict), cell_title(cell.cell)),
          annotation_message(cell));
    }
  }
  std::string line = headline(gate);
  if (const std::string missing = not_judged_line(gate); !missing.empty()) line += "; " + missing;
  // First, so that it is the first line of this report as of every other.
  const ProposalWords rules = proposal_words(gate, 10);
  if (!rules.head.empty()) {
    out = command("warning", "weir: " + rules.head, text::join(rules.lines, "\n")) + out;
  }
  return command("notice", "weir " + std::string(verdict::to_string(gate.verdict)), line) + out;
}

}  // namespace weir::report
