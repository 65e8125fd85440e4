// Composes the parts of a report from its document: which cells, numbers and reasons whom to show.
#include "gate/report/compose.hpp"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/report/figures.hpp"
#include "gate/report/hints.hpp"
#include "gate/report/layout.hpp"
#include "gate/report/proposals.hpp"
#include "gate/report/ratios.hpp"

namespace weir::report {

namespace {

using Kind = Part::Kind;

// Returns the changes that `all.cells` have in common as a list: "+12 mul_f32", …
Part changes_part(std::string head, const Block& block, const ChangedIn& all) {
  Part part{.kind = Kind::changes, .head = plain(std::move(head)), .in = block.in_cells(all.cells)};
  for (const auto& [change, name] : all.changes) {
    part.items.push_back({{change}, {name, true}});
  }
  part.max_shown = 12;
  return part;
}

// Adds a list for each set of changes. Comments and brief readers get the first four and a count of
// the rest. Adds nothing for no readers.
void add_changes(Parts& parts, const std::string& head, const Block& block,
                 const std::vector<ChangedIn>& all, Readers readers = k_all) {
  constexpr std::size_t k_max_sets_shown = 4;
  if (readers == 0) return;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Readers set_readers = i < k_max_sets_shown ? readers : readers & k_long;
    parts.push_back(shown_to(set_readers, changes_part(head, block, all[i])));
  }
  if (all.size() <= k_max_sets_shown) return;
  const std::string sets =
      text::plural(all.size() - k_max_sets_shown, "set of cells", "sets of cells");
  parts.push_back(
      shown_to(readers & (k_brief | k_comment),
               paragraph("", fmt::format("and others in {} more", sets), /*soft=*/true)));
}

// Returns how many more ops ran elsewhere: "+45 ops elsewhere"; "" without ops or a sum.
std::string moved_ops(const std::vector<verdict::Changed>& ops) {
  std::optional<Rational> sum(Rational(0));
  for (const verdict::Changed& op : ops) {
    const auto by = op.current.value_or(Rational(0)).minus(op.baseline.value_or(Rational(0)));
    sum = sum && by ? sum->plus(*by) : std::nullopt;
  }
  return ops.empty() || !sum ? "" : show_change(*sum) + " ops elsewhere";
}

// Returns "Kernels per token", "Kernels per request" or "Kernels per prefill": the scope of the
// first metric that the kernels add up to. "Kernels" without such a metric.
std::string kernels_head(const CellVerdict& cell) {
  for (const Judgement& metric : cell.metrics()) {
    if (!is_kernel_total(cell, metric.metric)) continue;
    if (metric.metric.scope == unit::Scope::per_request) return "Kernels per request";
    if (metric.metric.scope == unit::Scope::per_token) return "Kernels per token";
    if (metric.metric.scope == unit::Scope::per_prefill) return "Kernels per prefill";
  }
  return "Kernels";
}

// Returns the row's number with its reason and outcome, and the kinds of report (readers) that show
// it. What is wrong is for all; a fine key metric or an observed change for terminals and pages;
// the rest for long reports.
Number number_for_readers(const MetricRow& row) {
  const Judgement& judgement = *row.judgement;
  Number number = row.number;
  if (number.candidate.empty() && !number.base.empty()) {
    number.candidate = "not measured";
  } else if (!number.differs()) {
    number.base.clear();
  }
  number.why = reason_is_plain(judgement) ? "" : printable_line(judgement.reason, 600);
  number.outcome = judgement.verdict;
  const bool is_wrong =
      judgement.verdict < Outcome::pass && (judgement.is_metric() || row.is_broken_rule());
  const bool is_worth_showing =
      has_observed_change(judgement) ||
      (judgement.verdict == Outcome::pass && is_key_metric(judgement.metric));
  if (is_wrong) {
    number.readers = k_all;
  } else if (judgement.is_metric() && is_worth_showing) {
    number.readers = k_terminal | k_page;
  } else {
    number.readers = k_long;
  }
  return number;
}

// Returns the picture of the ratios of a metric's pairs, with how base and candidate spread.
Part ratios_part(const MetricRow& row) {
  Part part{.kind = Kind::ratios, .words = plain(row.number.label), .judged = row.judgement};
  part.data = ratios_figure(row);
  for (const std::string& line : spread_lines(*row.judgement)) part.items.push_back(plain(line));
  return part;
}

// Adds the table of the block's metrics and broken rules. Kernels, functions or ops that explain a
// row stand below it; reports without that row get them as parts of their own.
void add_numbers(Parts& parts, const Block& block) {
  const CellVerdict& cell = block.first_verdict();
  Part part = number_table("metrics of " + block.title, {});
  if (block.is_single()) part.noun = "metric";
  Readers kernels_readers = 0, functions_readers = 0;  // readers who see them below a row
  for (const MetricRow* row : block.rows) {
    const Judgement& judgement = *row->judgement;
    Number number = number_for_readers(*row);
    // The cell's reason stands above the table already.
    if (judgement.is_metric() && judgement.reason == cell.reason) number.why.clear();
    if (judgement.metric.name == verdict::k_placement && row->is_broken_rule()) {
      number.evidence = moved_ops(judgement.changed);
      add_changes(number.below, "Ops", block, block.ops);
    }
    const bool explained_by_kernels =
        judgement.metric.name == verdict::k_kernels
            ? row->is_broken_rule()
            : is_kernel_total(cell, judgement.metric) && row->number.differs();
    if (explained_by_kernels && kernels_readers == 0) {
      kernels_readers = number.readers;
      add_changes(number.below, kernels_head(cell), block, block.kernels);
    }
    if (explained_by_functions(cell, judgement.metric) && functions_readers == 0) {
      functions_readers = number.readers;
      add_changes(number.below, "Functions", block, block.functions);
    }
    if (has_picture(judgement)) number.below.push_back(ratios_part(*row));
    part.numbers.push_back(std::move(number));
  }
  parts.push_back(std::move(part));
  constexpr Readers k_always = k_comment | k_page;
  add_changes(parts, kernels_head(cell), block, block.kernels, k_always & ~kernels_readers);
  add_changes(parts, "Functions", block, block.functions, k_always & ~functions_readers);
  // Ops that moved without breaking the placement rule have no row of their own.
  if (cell.judgement_of(verdict::k_placement).verdict >= Outcome::pass) {
    add_changes(parts, "Ops", block, block.ops, k_always);
  }
}

// Adds the explanations that the block's cells share; long reports show their arithmetic, and those
// after the third.
void add_explanations(Parts& parts, const Block& block) {
  constexpr std::size_t k_max_reasons_shown = 3;
  for (std::size_t i = 0; i < block.why.size(); ++i) {
    const Shared& explanation = block.why[i];
    Part why = paragraph("Why", explanation.text);
    why.in = block.in_cells(explanation.cells);
    parts.push_back(shown_to(i < k_max_reasons_shown ? k_all : k_long, std::move(why)));
    const auto lines =
        collect<std::string>(explanation.cells.front()->cell_verdict->findings.front().lines,
                             [](const std::string& line) { return printable_line(line, 400); });
    if (!lines.empty()) parts.push_back(shown_to(k_long, list("", lines)));
  }
}

// Joins the values that `get` returns for the cells with "; ", each value once.
std::string distinct(const auto& cells, auto get) {
  std::vector<std::string> values;
  std::set<std::string> seen;
  for (const auto& cell : cells) {
    const std::string value = printable_line(std::invoke(get, cell), 300);
    if (value.empty()) continue;
    const bool is_new = seen.insert(value).second;
    if (is_new) values.push_back(value);
  }
  return text::join(values, "; ");
}

// Returns a fold with a table of the metrics that the inference server reported about its load.
Part server_figures_part(const CellDocument& cell) {
  Part table{.kind = Kind::table,
             .head = plain("the server's own metrics of " + cell.title),
             .columns = {"metric", "kind", "#value"}};
  for (const profile::ServerFigure& figure : cell.cell_verdict->server) {
    table.rows.push_back({{{printable_line(figure.name, 200), true}},
                          plain(std::string(profile::to_string(figure.kind))),
                          plain(show(figure))});
  }
  Part note = paragraph("",
                        "Its own metrics of one load: how much counters grew, gauges at the end, "
                        "means of histograms. They judge nothing.",
                        /*soft=*/true);
  return fold(plain("What the server itself counted"), {std::move(note), std::move(table)});
}

// Adds what only pages show: the figures of a single cell, and a line with the devices, machines
// and bases of the block.
void add_page_details(Parts& parts, const Block& block) {
  if (block.is_single()) {
    for (const Json& data : served_figures(block.first_verdict())) {
      parts.push_back({.kind = Kind::figure, .readers = k_page, .data = data});
    }
    if (!block.first_verdict().server.empty()) {
      parts.push_back(shown_to(k_page, server_figures_part(block.first())));
    }
  }
  std::vector<std::string> facts;
  for (const auto fact :
       {&CellVerdict::device_name, &CellVerdict::device_class, &CellVerdict::machine_name}) {
    facts.push_back(
        distinct(block.cells, [&](const auto* cell) { return cell->cell_verdict->*fact; }));
  }
  const std::string base = distinct(
      block.cells, [](const CellDocument* cell) { return cell->cell_verdict->base.value_or(""); });
  facts.push_back(text::prefix_if_any("base: ", base));
  std::erase(facts, "");
  parts.push_back(shown_to(k_page, paragraph("", text::join(facts, " \u00b7 "), /*soft=*/true)));
}

// Returns the section of a block: its cells, reason, last output, numbers and explanations.
Part block_part(const Block& block) {
  const CellVerdict& cell = block.first_verdict();
  Part part = section({{block.title, block.is_single()}});
  part.outcome = cell.verdict;
  part.cell_count = block.cells.size();
  Parts& parts = part.parts;
  if (!block.is_single()) {
    const std::string names = block.list_cells(block.cells, 12);
    if (!block.title.ends_with(names))
      parts.push_back(shown_to(k_brief | k_comment, paragraph("", names, /*soft=*/true)));
    parts.push_back(
        shown_to(k_long, list("", collect<std::string>(block.cells, &CellDocument::title))));
  }
  const bool says_all = reason_is_all(cell);
  const std::string& reason = says_all ? block.first().reason : block.reason;
  if (!reason.empty()) parts.push_back(paragraph("", clip(text::printable(reason), 2000)));
  if (cell.verdict == Outcome::error && !text::trim(cell.stderr_tail).empty()) {
    const char* head = block.is_single() ? "its last words" : "last words of one of them";
    parts.push_back({.kind = Kind::preformatted, .head = plain(head), .text = cell.stderr_tail});
  }
  if (says_all) {
    Parts measured;
    for (const CellDocument* member : block.cells) {
      const Block single({member});
      Parts numbers;
      add_numbers(numbers, single);
      add_page_details(numbers, single);
      if (member->rows.empty()) continue;
      if (block.is_single()) {
        measured = std::move(numbers);
      } else {
        measured.push_back(section({{member->title, true}}, std::move(numbers)));
      }
    }
    if (!measured.empty()) {
      parts.push_back(
          shown_to(k_long, fold(plain("What was measured"), std::move(measured), k_verbose)));
    }
    return part;
  }
  if (std::string base = judged_by(cell); !base.empty()) {
    parts.push_back(shown_to(k_terminal, paragraph("", std::move(base), /*soft=*/true)));
  }
  add_numbers(parts, block);
  add_explanations(parts, block);
  add_page_details(parts, block);
  return part;
}

// Adds the causes, and then the changes that no cause explains, if the report begins with causes.
void add_causes(Parts& parts, const Document& document) {
  if (!document.cause_first) return;
  Part all = section(plain(document.headline), document.causes);
  all.outcome = Outcome::fail;
  all.titled = k_terminal;
  all.max_shown = 8;
  all.noun = "cause";
  parts.push_back(std::move(all));
  if (document.unexplained) parts.push_back(*document.unexplained);
}

// Returns a list of messages, each after the cells that share it: "3 of 8 cells: …".
Part messages_part(const char* tag, std::string head, const Document& document,
                   const std::vector<Shared>& all) {
  Part part = list(std::move(head), {});
  part.tag = tag;
  part.max_shown = document.cause_first ? 3 : 8;
  for (const Shared& message : all) {
    std::string where;
    if (message.cells.size() == 1)
      where = printable_line(message.cells.front()->cell_verdict->cell.str(), 300) + ": ";
    if (message.cells.size() > 1) {
      where = fmt::format("{} of {}: ", message.cells.size(),
                          text::plural(document.cells.size(), "cell"));
    }
    part.items.push_back(plain(where + message.text));
  }
  return part;
}

// Returns these rows of a cell as a table under the cell's title, for all readers. `shows_equal`:
// with the base's value, too, where it is the same.
Part cell_rows_part(const CellDocument& cell, const std::vector<const MetricRow*>& rows,
                    bool shows_equal = false) {
  Part numbers = number_table("metrics of " + cell.title, {});
  for (const MetricRow* row : rows) {
    Number& number = numbers.numbers.emplace_back(number_for_readers(*row));
    if (has_picture(*row->judgement)) number.below.push_back(ratios_part(*row));
    if (shows_equal) number.base = row->number.base;
    number.readers = k_all;
  }
  return section({{cell.title, true}}, {std::move(numbers)});
}

// Adds the metrics at `mode: report`, which judges nothing, that changed in cells that are
// otherwise fine.
void add_unjudged(Parts& parts, const Document& document) {
  Part all = fold({}, {}, k_brief);
  all.readers = k_brief;
  all.noun = "cell";
  all.max_shown = 8;
  for (const CellDocument& cell : document.cells) {
    if (cell.cell_verdict->verdict < Outcome::pass) continue;
    std::vector<const MetricRow*> changed_rows;
    for (const MetricRow& row : cell.rows) {
      if (has_observed_change(*row.judgement)) changed_rows.push_back(&row);
    }
    if (changed_rows.empty()) continue;
    all.parts.push_back(cell_rows_part(cell, changed_rows));
    all.parts.back().tag = "seen";
  }
  if (!all.parts.empty()) parts.push_back(std::move(all));
}

// Adds what will be judged from the next pull request on, if this one brings weir's configuration
// along.
void add_brought(Parts& parts, const Document& document) {
  if (!verdict::brings_rules(document.gate.rules)) return;
  Part all = fold(plain("What was measured"), {}, k_all);
  all.noun = "cell";
  all.max_shown = 8;
  for (const CellDocument& cell : document.cells) {
    if (cell.cell_verdict->verdict == Outcome::fail) continue;  // listed above
    std::vector<const MetricRow*> limited;
    for (const MetricRow& row : cell.rows) {
      const Judgement& judgement = *row.judgement;
      if (judgement.current && judgement.verdict != Outcome::info) limited.push_back(&row);
    }
    if (!limited.empty()) all.parts.push_back(cell_rows_part(cell, limited, /*shows_equal=*/true));
  }
  if (!all.parts.empty()) parts.push_back(std::move(all));
}

// Adds a fold with the times that were judged fine by pairs, so that readers see how sure that is.
void add_decided(Parts& parts, const Document& document) {
  Part all = fold(plain("Times compared with the base build"), {});
  all.readers = k_brief | k_comment;
  all.noun = "cell";
  all.max_shown = 8;
  if (document.gate.verdict >= Outcome::new_) all.open = k_brief;
  for (const CellDocument& cell : document.cells) {
    if (cell.cell_verdict->verdict < Outcome::pass) continue;
    std::vector<const MetricRow*> judged = rows_with_picture(cell);
    std::erase_if(judged,
                  [](const MetricRow* row) { return row->judgement->verdict > Outcome::pass; });
    if (judged.empty()) continue;
    all.parts.push_back(cell_rows_part(cell, judged));
    all.parts.back().outcome = Outcome::pass;
  }
  if (all.parts.empty()) return;
  parts.push_back(std::move(all));
}

// Returns the line of a green verdict: "Checked: counts exact; 2 skipped."
std::string checked_text(const Document& document) {
  std::string line = "Checked: ";
  const auto judged = static_cast<std::size_t>(document.gate.metrics_judged);
  line += document.rule.empty() ? text::plural(judged, "metric") : document.rule;
  const std::size_t skipped = document.cells_with(Outcome::skipped);
  if (skipped > 0) line += fmt::format("; {} skipped", skipped);
  return line + ".";
}

// Returns a fold with the cells that passed: "8 cells, 40 metrics". A `quiet` comment leaves it
// out.
Part passed_part(const Document& document, bool quiet) {
  Part table{.kind = Kind::table, .readers = k_comment, .columns = {"cell", "#metrics"}};
  Parts cells;
  std::size_t metrics = 0;
  for (const CellDocument& cell : document.cells) {
    if (cell.cell_verdict->verdict != Outcome::pass) continue;
    metrics += cell.passed;
    table.rows.push_back({{{cell.title, true}}, plain(std::to_string(cell.passed))});
    Part cell_part = block_part(Block({&cell}));
    cell_part.kind = Kind::fold;
    cell_part.readers = k_long;
    cell_part.open = k_verbose;
    cells.push_back(std::move(cell_part));
  }
  Part all = fold(plain(fmt::format("{}, {}", text::plural(cells.size(), "cell"),
                                    text::plural(metrics, "metric"))),
                  {std::move(table)}, k_verbose);
  all.outcome = Outcome::pass;
  if (cells.size() == document.cells.size()) all.readers &= ~k_brief;  // its headline says it
  if (quiet) all.readers &= ~k_comment;
  if (cells.empty()) all.readers = 0;
  std::ranges::move(cells, std::back_inserter(all.parts));
  return all;
}

// Adds a section for each reason why cells were skipped. A `quiet` comment leaves them out.
void add_skipped(Parts& parts, const Document& document, bool quiet) {
  for (const Shared& skipped : document.by_reason(Outcome::skipped)) {
    const std::string cells = text::plural(skipped.cells.size(), "cell");
    Part& part = parts.emplace_back(section(plain(cells + ": " + skipped.text)));
    part.outcome = Outcome::skipped;
    if (quiet) part.readers &= ~k_comment;  // checked_text() counts them
    const auto names =
        collect<std::string>(skipped.cells, [](const CellDocument* cell) { return cell->title; });
    part.parts.push_back(shown_to(k_long, list("", names)));
  }
}

// Adds a fold with the machine code of each changed kernel whose code is known in both builds.
void add_machine_code(Parts& parts, const GateVerdict& gate) {
  std::set<std::string> shown;
  for (const CellVerdict& cell : gate.cells) {
    const Judgement& code = cell.judgement_of(verdict::k_kernel_code);
    for (const verdict::KernelChange& kernel_change : code.code) {
      if (kernel_change.machine_code.empty()) continue;
      if (!shown.insert(kernel_change.kernel + kernel_change.machine_code).second) continue;
      Words head{{"Machine code of "},
                 {printable_line(kernel_change.kernel, 200), true},
                 {" " + printable_line(code.compiler, 100)}};
      Part lines{.kind = Kind::preformatted, .text = kernel_change.machine_code};
      parts.push_back(shown_to(k_page, fold(std::move(head), {std::move(lines)})));
    }
  }
}

// Adds the figure and the table of latency against load, if cells were measured at several
// concurrencies.
void add_loads(Parts& parts, const GateVerdict& gate) {
  const std::vector<LoadedCell> cells = loaded_cells(gate);
  if (cells.empty()) return;
  Part table{
      .kind = Kind::table,
      .head = plain("latency against load"),
      .columns = {"cell", "#TTFT p50", "#p90", "#p99", "#TPOT p50", "#p90", "#p99", "#tok/s"}};
  for (const LoadedCell& cell : cells) {
    auto& row = table.rows.emplace_back(1, plain(cell_title(cell.cell_verdict->cell)));
    for (const Judgement* metric : cell.metrics) {
      row.push_back(
          plain(metric == nullptr ? "not measured" : unit::show(metric->metric, *metric->current)));
    }
  }
  Part figure{.kind = Kind::figure, .data = load_figure(cells)};
  parts.push_back(shown_to(
      k_page, section(plain("Latency against load"), {std::move(figure), std::move(table)})));
}

Part proposals_part(const GateVerdict& gate) {
  const ProposalText all = proposal_text(gate, verdict::k_max_proposals);
  Part lines = list("", all.lines);
  lines.max_shown = 12;
  Part part = section(plain(all.head), {std::move(lines)});
  part.tag = "rules";
  return part;
}

// Returns the table of facts of the run itself, for pages: commit, devices, duration, version, …
Part facts_part(const Document& document) {
  const GateVerdict& gate = document.gate;
  Part table{.kind = Kind::table, .head = plain("facts of the run"), .columns = {"what", "value"}};
  const auto add_if_known = [&](const char* name, std::string value) {
    if (!value.empty()) table.rows.push_back({plain(name), plain(std::move(value))});
  };
  const auto duration = [](const std::optional<double>& seconds) {
    return seconds ? unit::show_duration(*seconds) : "";
  };
  add_if_known("config", printable_line(gate.config, 300));
  add_if_known("commit", printable_line(gate.commit.value_or(""), 64));
  add_if_known("base", document.base);
  add_if_known("device", distinct(gate.cells, &CellVerdict::device_name));
  add_if_known("device class", distinct(gate.cells, &CellVerdict::device_class));
  add_if_known("machine", distinct(gate.cells, &CellVerdict::machine_name));
  add_if_known("limits", document.rule);
  if (!document.has_paired_times) add_if_known("rule", printable_line(gate.decision_rule, 4000));
  add_if_known("took", duration(gate.seconds));
  add_if_known("budget", duration(gate.budget_seconds));
  if (const auto cost = gate.profiling_cost) {
    add_if_known("profiling", fmt::format("cost {:.1f} % of throughput", *cost * 100));
  }
  add_if_known("run", printable_line(gate.run.value_or(""), 300));
  add_if_known("exit code", std::to_string(static_cast<int>(gate.exit_code)));
  add_if_known("weir", printable_line(gate.weir_version, 30));
  return shown_to(k_page, section(plain("Facts"), {std::move(table)}));
}

}  // namespace

Parts compose(const Document& document) {
  const GateVerdict& gate = document.gate;
  Parts parts;
  if (!gate.proposals.empty()) parts.push_back(proposals_part(gate));
  add_causes(parts, document);
  Parts folded;
  std::size_t folded_cells = 0;
  for (const Block& block : document.blocks) {
    // add_brought() lists what was measured.
    const bool is_new = block.first_verdict().verdict == Outcome::new_;
    if (is_new && verdict::brings_rules(gate.rules)) continue;
    if (block.folded) {
      folded.push_back(block_part(block));
      folded_cells += block.cells.size();
    } else {
      parts.push_back(block_part(block));
    }
  }
  for (const Hint& hint : hints(gate, {})) {
    if (hint.what != "allow") continue;
    Part allow = list("Meant to run on the CPU? Say why in the configuration", {});
    for (const std::string& line : hint.words) allow.items.push_back({{line, true}});
    parts.push_back(shown_to(k_page, std::move(allow)));
  }
  if (Part code = messages_part("code", "Kernels with other code", document,
                                document.shared_kernel_changes());
      !code.items.empty()) {
    parts.push_back(std::move(code));
  }
  add_unjudged(parts, document);
  if (!folded.empty()) {
    Part all = fold(plain("Every number of " + text::plural(folded_cells, "cell")),
                    std::move(folded), k_verbose);
    parts.push_back(std::move(all));
  }
  add_brought(parts, document);
  add_decided(parts, document);
  if (document.has_paired_times) {
    Part rule =
        fold(plain("How sure this is"), {paragraph("", printable_line(gate.decision_rule, 2000))});
    parts.push_back(shown_to(k_comment, std::move(rule)));
  }
  Part warnings = messages_part("warn", "Warnings", document, document.warnings());
  const bool quiet = gate.verdict == Outcome::pass && warnings.items.empty();
  Part notes = messages_part("note", "Notes", document, document.notes());
  for (Part& messages : std::array{std::move(warnings), std::move(notes)}) {
    if (messages.items.empty()) continue;
    Part& shut = parts.emplace_back(fold(messages.head, {messages}, k_terminal | k_page));
    if (quiet) shut.readers &= ~k_comment;
  }
  if (quiet && !document.cells.empty()) {
    parts.push_back(shown_to(k_comment, paragraph("", checked_text(document))));
  }
  add_machine_code(parts, gate);
  add_loads(parts, gate);
  parts.push_back(passed_part(document, quiet));
  add_skipped(parts, document, quiet);
  parts.push_back(facts_part(document));
  return parts;
}

}  // namespace weir::report
