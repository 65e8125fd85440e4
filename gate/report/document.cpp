// Makes the document of a verdict: headline, rule, cells, blocks, warnings and notes.
#include "gate/report/document.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "gate/base/find.hpp"
#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/report/ratios.hpp"

namespace weir::report {
namespace {

// Counts the cells or metrics with an outcome.
std::size_t count_outcome(const auto& all, Outcome outcome) {
  return static_cast<std::size_t>(
      std::ranges::count_if(all, [&](const auto& judged) { return judged.verdict == outcome; }));
}

// Returns true for kernels whose count changed too and has the same verdict.
bool follows_count(const Judgement& judgement, const CellVerdict& cell) {
  return judgement.metric.name == verdict::k_kernels &&
         std::ranges::any_of(cell.judgements, [&](const Judgement& count) {
           return is_kernel_total(cell, count.metric) && count.verdict == judgement.verdict &&
                  count.baseline != count.current;
         });
}

// Makes the rows and changes of a cell, the worst rows first. `to_keep`: an improvement's limit
// says that it is to be kept.
CellDocument make_cell_document(const CellVerdict& cell, bool to_keep) {
  CellDocument document{&cell, cell_title(cell.cell), cell.reason, {}, {}, {}, {}, {}, 0, {}, {}};
  document.kernels = named_changes(cell.judgement_of(verdict::k_kernels).changed);
  document.functions = named_function_changes(cell.functions);
  document.ops = named_changes(cell.judgement_of(verdict::k_placement).changed);
  to_keep = to_keep && cell.verdict != Outcome::fail && cell.verdict != Outcome::error;
  for (const Judgement& judgement : cell.judgements) {
    if (!judgement.is_metric() && judgement.verdict == Outcome::info) continue;
    document.rows.push_back(
        {&judgement, words(judgement, to_keep), follows_count(judgement, cell)});
    if (document.reason.empty() && judgement.is_metric() && judgement.verdict == cell.verdict) {
      document.reason = judgement.reason;
    }
  }
  document.passed = count_outcome(cell.metrics(), Outcome::pass);
  for (const MetricRow& row : document.rows) {
    document.worst_first.push_back(&row);
    document.by_metric.try_emplace(row.judgement->metric.name, &row);
    document.by_label.try_emplace(row.number.label, &row);
  }
  // Outcome is declared in order of precedence. Fine rows keep their order after the others.
  // Placement comes first within a verdict, because counts change with where the work ran.
  const auto rank = [](const MetricRow* row) {
    return std::pair(std::min(row->judgement->verdict, Outcome::pass),
                     row->judgement->metric.name != verdict::k_placement);
  };
  std::ranges::stable_sort(document.worst_first, {}, rank);
  return document;
}

}  // namespace

// Returns true if the change of a time in pairs is more than a point from what its two numbers
// give.
static bool differs_from_medians(const Judgement& metric) {
  constexpr double k_point = 0.01;
  if (!metric.pairs || !metric.change || !metric.baseline || !metric.current) return false;
  if (*metric.baseline == 0) return false;
  const double of_medians = (*metric.current - *metric.baseline) / std::fabs(*metric.baseline);
  return std::fabs(of_medians - *metric.change) > k_point;
}

Document::Document(const GateVerdict& verdict)
    : gate(verdict),
      headline(report::headline(verdict)),
      rule(short_rule(verdict)),
      has_paired_times(report::has_paired_times(verdict)) {
  std::vector<std::string> parts;
  if (gate.verdict == Outcome::fail && gate.nothing_judged_reason) {  // else it is the headline
    parts.push_back(printable_line(*gate.nothing_judged_reason, 600));
  }
  for (const std::string& part : gate.not_judged) parts.push_back(printable_line(part, 200));
  not_judged = text::join(parts);
  base = printable_line(gate.base_origin, 300);
  const bool named = gate.base_commit && gate.base_commit->size() >= 7 &&
                     base.find(text::short_commit(*gate.base_commit)) != std::string::npos;
  if (gate.base_commit && !named) {
    if (!base.empty()) base += ", ";
    base += "commit " + printable_line(text::short_commit(*gate.base_commit), 12);
  }
  for (const CellVerdict& cell : gate.cells)
    cells.push_back(make_cell_document(cell, !gate.against && !gate.runs));
  for (const CellDocument& cell : cells) {
    if (cell.cell_verdict->verdict < Outcome::pass) to_read.push_back(&cell);
  }
  std::ranges::stable_sort(to_read, {},
                           [](const CellDocument* cell) { return cell->cell_verdict->verdict; });
  blocks = make_blocks(to_read, collect<profile::CellKey>(gate.cells, &CellVerdict::cell));
  // Blocks with more cells come first within a verdict.
  std::ranges::stable_sort(blocks, {}, [](const Block& block) {
    return std::pair(block.first_verdict().verdict, -std::ssize(block.cells));
  });
  find_causes();
}

std::string Document::first_line(std::string_view between) const {
  return not_judged.empty() ? headline : fmt::format("{}{}{}", headline, between, not_judged);
}

std::size_t Document::cells_with(Outcome outcome) const {
  return count_outcome(gate.cells, outcome);
}

// Returns the warnings of cells and their metrics, each once with its cells. `filter`, if set,
// selects cells.
std::vector<Shared> Document::warnings(
    const std::function<bool(const verdict::CellVerdict&)>& filter) const {
  SharedTexts out;
  for (const CellDocument& cell : cells) {
    if (filter && !filter(*cell.cell_verdict)) continue;
    for (const std::string& warning : cell.cell_verdict->warnings)
      out.add(printable_line(warning), cell);
    for (const MetricRow& row : cell.rows) {
      for (const std::string& warning : row.judgement->warnings) {
        out.add(fmt::format("{}: {}", row.number.label, printable_line(warning)), cell);
      }
    }
  }
  return std::move(out).take();
}

// Returns the notes of all cells, each with the cells that share it, and then the gate's. A note
// explains times whose change differs from that of their medians.
std::vector<Shared> Document::notes() const {
  SharedTexts out;
  for (const CellDocument& cell : cells) {
    for (const std::string& note : cell.cell_verdict->notes) out.add(printable_line(note), cell);
    out.add(judged_by(*cell.cell_verdict), cell);
  }
  std::vector<Shared> notes = std::move(out).take();
  for (const std::string& note : gate.notes) notes.push_back({printable_line(note), {}});
  const bool disagrees = std::ranges::any_of(gate.cells, [](const CellVerdict& cell) {
    return std::ranges::any_of(cell.metrics(), differs_from_medians);
  });
  if (disagrees) {
    notes.push_back(
        {"a change of times is the median of pairs, the numbers beside it are medians of each side",
         {}});
  }
  return notes;
}

std::vector<Shared> Document::shared_kernel_changes() const {
  SharedTexts out;
  for (const CellDocument& cell : cells) {
    for (const verdict::KernelChange& kernel :
         cell.cell_verdict->judgement_of(verdict::k_kernel_code).code) {
      out.add(printable_line(fmt::format("{}: {}", kernel.kernel, kernel.words())), cell);
    }
  }
  return std::move(out).take();
}

std::vector<Shared> Document::by_reason(Outcome outcome) const {
  SharedTexts out;
  for (const CellDocument& cell : cells) {
    if (cell.cell_verdict->verdict != outcome) continue;
    const std::string reason = printable_line(cell.reason);
    out.add(reason.empty() ? "no reason given" : reason, cell);
  }
  return std::move(out).take();
}

std::string judged_by(const CellVerdict& cell) {
  if (!cell.base || cell.base->empty() || *cell.base == "same device class") return "";
  return "judged by: " + printable_line(*cell.base);
}

// Returns the headline's end about causes: ", 1 cause, 2 changes unexplained". "" for a single
// failed cell with a single cause.
static std::string causes_text(const GateVerdict& gate) {
  const std::size_t causes = gate.causes.size(), rest = gate.unexplained.size();
  const bool single = causes == 1 && count_outcome(gate.cells, Outcome::fail) == 1;
  if (gate.verdict != Outcome::fail || causes == 0 || single) return "";
  std::string out = ", " + text::plural(causes, "cause");
  if (rest > 0) out += fmt::format(", {} unexplained", text::plural(rest, "change"));
  return out;
}

// Returns the verdict in one line: "1 of 8 cells broke a limit, 1 could not be measured".
std::string headline(const GateVerdict& gate) {
  const std::size_t all = gate.cells.size();
  const std::string cells = text::plural(all, "cell");
  std::string out;
  const std::size_t errors = count_outcome(gate.cells, Outcome::error);
  if (gate.cells.empty()) {
    out = "no cell was measured";
  } else if (gate.verdict != Outcome::fail && gate.nothing_judged_reason) {
    out = printable_line(*gate.nothing_judged_reason, 600);
    const auto number = std::ranges::count_if(gate.cells, is_unmeasured);
    if (number > 0) out += fmt::format("; {} could not be measured", number);
  } else if (const std::string_view result = outcome_look(gate.verdict).headline; !result.empty()) {
    const std::size_t number = count_outcome(gate.cells, gate.verdict);
    out = fmt::format("{} of {}", number, cells) +
          fmt::format(fmt::runtime(result), fmt::arg("are", number == 1 ? "is" : "are"));
  } else {
    std::size_t passed = 0;
    for (const CellVerdict& cell : gate.cells)
      passed += count_outcome(cell.metrics(), Outcome::pass);
    const std::size_t fine = count_outcome(gate.cells, Outcome::pass);
    out = fmt::format("{}, {} within limits",
                      fine == all ? cells : fmt::format("{} of {}", fine, cells),
                      text::plural(passed, "metric"));
  }
  out += causes_text(gate);
  if (gate.verdict == Outcome::fail && errors > 0) {
    out += fmt::format(", {} could not be measured", text::plural(errors, "cell"));
  }
  if (gate.exit_code == verdict::ExitCode::interrupted) out += "; interrupted before the end";
  return out;
}

// Returns the limits in a few words: "counts exact, throughput may drop 5 %".
std::string short_rule(const GateVerdict& gate) {
  bool has_exact = false;
  std::size_t varied = 0;
  std::map<std::string, std::string> others;  // times, sizes and shares: label -> limit
  std::optional<double> min_drop, max_drop;
  for (const CellVerdict& cell : gate.cells) {
    for (const Judgement& metric : cell.metrics()) {
      const verdict::Limit& limit = metric.limit;
      if (limit.mode != verdict::Mode::gate) continue;
      has_exact = has_exact || limit.exact;
      const bool is_nearly_exact = metric.nature == profile::Nature::nearly_exact;
      if (limit.exact && is_nearly_exact && !limit.allowed_variation) ++varied;
      const bool is_count =
          metric.metric.kind == unit::Kind::count || metric.metric.kind == unit::Kind::usage;
      const bool is_throughput = metric.metric.unit == unit::Unit::tokens_per_second;
      if (metric.is_metric() && !is_count && !is_throughput && limit.is_set() &&
          metric.verdict != Outcome::info) {
        others.emplace(printable_line(unit::display_name(metric.metric), 40), limit.words());
      }
      if (!is_throughput || !limit.max_drop) continue;
      if (!limit.max_drop->amount.relative) continue;
      const double drop = limit.max_drop->amount.value;
      min_drop = std::min(min_drop.value_or(drop), drop);
      max_drop = std::max(max_drop.value_or(drop), drop);
    }
  }
  std::string out = has_exact ? "counts exact" : "";
  if (varied > 0) out += fmt::format(" ({} {})", varied, varied == 1 ? "varies" : "vary");
  if (min_drop && max_drop) {
    if (!out.empty()) out += ", ";
    out += *min_drop == *max_drop
               ? fmt::format("throughput may drop {}", verdict::show({*max_drop, true}))
               : fmt::format("throughput may drop {} to {}", verdict::show({*min_drop, true}),
                             verdict::show({*max_drop, true}));
  }
  constexpr std::size_t k_max_others = 2;
  if (others.size() > k_max_others) {
    text::append_item(out, ", ", fmt::format("{} more limits", others.size()));
  } else {
    for (const auto& [label, words] : others) text::append_item(out, ", ", label + " " + words);
  }
  return out;
}

}  // namespace weir::report
