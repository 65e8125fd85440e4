#include "gate/report/document.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "gate/base/find.hpp"
#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/report/ratios.hpp"

namespace weir::report {
namespace {

// Of cells or metrics.
std::size_t count_of(const auto& all, Outcome outcome) {
  return static_cast<std::size_t>(
      std::ranges::count_if(all, [&](const auto& one) { return one.verdict == outcome; }));
}

// Kernels whose count has the same verdict, and changed.
bool follows_count(const Judgement& one, const CellVerdict& cell) {
  return one.metric.name == verdict::k_kernels &&
         std::ranges::any_of(cell.judgements, [&](const Judgement& count) {
           return adds_up_kernels(cell, count.metric) && count.verdict == one.verdict &&
                  count.baseline != count.current;
         });
}

CellDocument document_of(const CellVerdict& cell, bool to_keep) {
  CellDocument document{&cell, cell_title(cell.cell), cell.reason, {}, {}, {}, {}, {}};
  document.kernels = changed_words(cell.of(verdict::k_kernels).changed);
  document.functions = function_words(cell.functions);
  document.ops = changed_words(cell.of(verdict::k_placement).changed);
  to_keep = to_keep && cell.verdict != Outcome::fail && cell.verdict != Outcome::error;
  for (const Judgement& one : cell.judgements) {
    if (!one.is_metric() && one.verdict == Outcome::info) continue;
    document.rows.push_back({&one, words(one, to_keep), follows_count(one, cell)});
    if (document.reason.empty() && one.is_metric() && one.verdict == cell.verdict) {
      document.reason = one.reason;
    }
  }
  document.passed = count_of(cell.metrics(), Outcome::pass);
  for (const MetricRow& row : document.rows) document.worst_first.push_back(&row);
  // Outcome is declared in order of precedence. What is fine keeps its place after what is not.
  // Counts change with where the work ran.
  const auto rank = [](const MetricRow* row) {
    return std::pair(std::min(row->of->verdict, Outcome::pass),
                     row->of->metric.name != verdict::k_placement);
  };
  std::ranges::stable_sort(document.worst_first, {}, rank);
  return document;
}

}  // namespace

Document::Document(const GateVerdict& verdict)
    : gate(verdict),
      headline(report::headline(verdict)),
      rule(short_rule(verdict)),
      beside_base(report::beside_base(verdict)) {
  std::vector<std::string> parts;
  if (gate.verdict == Outcome::fail && gate.unjudged) {  // else it is the headline
    parts.push_back(one_line(*gate.unjudged, 300));
  }
  for (const std::string& part : gate.not_judged) parts.push_back(one_line(part, 200));
  not_judged = text::join(parts);
  base = one_line(gate.base_source, 300);
  const bool named = gate.base_commit && gate.base_commit->size() >= 7 &&
                     base.find(gate.base_commit->substr(0, 7)) != std::string::npos;
  if (gate.base_commit && !named) {
    if (!base.empty()) base += ", ";
    base += "commit " + one_line(*gate.base_commit, 12);
  }
  for (const CellVerdict& cell : gate.cells)
    cells.push_back(document_of(cell, !gate.against && !gate.runs));
  for (const CellDocument& cell : cells) {
    if (cell.of->verdict < Outcome::pass) to_read.push_back(&cell);
  }
  std::ranges::stable_sort(to_read, {}, [](const CellDocument* one) { return one->of->verdict; });
  blocks = blocks_of(to_read, collect<profile::CellKey>(gate.cells, &CellVerdict::cell));
  // Of one verdict, what holds for more cells comes first.
  std::ranges::stable_sort(blocks, {}, [](const Block& one) {
    return std::pair(one.of().verdict, -std::ssize(one.cells));
  });
  find_causes();
}

std::string Document::first_line(std::string_view between) const {
  return not_judged.empty() ? headline : fmt::format("{}{}{}", headline, between, not_judged);
}

std::size_t Document::cells_with(Outcome outcome) const { return count_of(gate.cells, outcome); }

std::vector<Shared> Document::warnings(
    const std::function<bool(const verdict::CellVerdict&)>& of) const {
  std::vector<Shared> out;
  for (const CellDocument& cell : cells) {
    if (of && !of(*cell.of)) continue;
    for (const std::string& warning : cell.of->warnings) share(out, one_line(warning), cell);
    for (const MetricRow& row : cell.rows) {
      for (const std::string& warning : row.of->warnings) {
        share(out, fmt::format("{}: {}", row.words.label, one_line(warning)), cell);
      }
    }
  }
  return out;
}

std::vector<Shared> Document::notes() const {
  std::vector<Shared> out;
  for (const CellDocument& cell : cells) {
    for (const std::string& note : cell.of->notes) share(out, one_line(note), cell);
    share(out, judged_by(*cell.of), cell);
  }
  for (const std::string& note : gate.notes) out.push_back({one_line(note), {}});
  return out;
}

std::vector<Shared> Document::other_code() const {
  std::vector<Shared> out;
  for (const CellDocument& cell : cells) {
    for (const verdict::OtherCode& one : cell.of->of(verdict::k_kernel_code).code) {
      share(out, one_line(fmt::format("{}: {}", one.kernel, one.words())), cell);
    }
  }
  return out;
}

std::vector<Shared> Document::by_reason(Outcome outcome) const {
  std::vector<Shared> out;
  for (const CellDocument& cell : cells) {
    if (cell.of->verdict != outcome) continue;
    const std::string reason = one_line(cell.reason);
    share(out, reason.empty() ? "no reason given" : reason, cell);
  }
  return out;
}

std::string judged_by(const CellVerdict& cell) {
  if (!cell.base || cell.base->empty() || *cell.base == "same device class") return "";
  return "judged by: " + one_line(*cell.base);
}

// ", 1 cause, 2 changes unexplained"; "" of one cell with one cause.
static std::string causes_of(const GateVerdict& gate) {
  const std::size_t causes = gate.causes.size(), rest = gate.unexplained.size();
  const bool single = causes == 1 && count_of(gate.cells, Outcome::fail) == 1;
  if (gate.verdict != Outcome::fail || causes == 0 || single) return "";
  std::string out = ", " + plural(causes, "cause");
  if (rest > 0) out += fmt::format(", {} unexplained", plural(rest, "change"));
  return out;
}

std::string headline(const GateVerdict& gate) {
  const std::size_t all = gate.cells.size();
  const std::string cells = plural(all, "cell");
  std::string out;
  const std::size_t errors = count_of(gate.cells, Outcome::error);
  if (gate.cells.empty()) {
    out = "no cell was measured";
  } else if (gate.verdict != Outcome::fail && gate.unjudged) {
    out = one_line(*gate.unjudged, 300);
    const auto number = std::ranges::count_if(gate.cells, unmeasured);
    if (number > 0) out += fmt::format("; {} could not be measured", number);
  } else if (const std::string_view did = look_of(gate.verdict).headline; !did.empty()) {
    const std::size_t number = count_of(gate.cells, gate.verdict);
    out = fmt::format("{} of {}", number, cells) +
          fmt::format(fmt::runtime(did), fmt::arg("are", number == 1 ? "is" : "are"));
  } else {
    std::size_t passed = 0;
    for (const CellVerdict& cell : gate.cells) passed += count_of(cell.metrics(), Outcome::pass);
    const std::size_t fine = count_of(gate.cells, Outcome::pass);
    out = fmt::format("{}, {} within limits",
                      fine == all ? cells : fmt::format("{} of {}", fine, cells),
                      plural(passed, "metric"));
  }
  out += causes_of(gate);
  if (gate.verdict == Outcome::fail && errors > 0) {
    out += fmt::format(", {} could not be measured", errors);
  }
  if (gate.exit_code == verdict::ExitCode::interrupted) out += "; interrupted before the end";
  return out;
}

std::string short_rule(const GateVerdict& gate) {
  bool exact = false;
  std::optional<double> least, most;
  for (const CellVerdict& cell : gate.cells) {
    for (const Judgement& metric : cell.metrics()) {
      const verdict::Limit& limit = metric.limit;
      if (limit.mode != verdict::Mode::gate) continue;
      exact = exact || limit.exact;
      if (metric.metric.unit != unit::Unit::tokens_per_second || !limit.max_drop) continue;
      if (!limit.max_drop->amount.relative) continue;
      const double drop = limit.max_drop->amount.value;
      least = std::min(least.value_or(drop), drop);
      most = std::max(most.value_or(drop), drop);
    }
  }
  std::string out = exact ? "counts exact" : "";
  if (least && most) {
    if (!out.empty()) out += ", ";
    out += *least == *most
               ? fmt::format("throughput may drop {}", verdict::show({*most, true}))
               : fmt::format("throughput may drop {} to {}", verdict::show({*least, true}),
                             verdict::show({*most, true}));
  }
  return out;
}

}  // namespace weir::report
