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

Part changes(std::string head, const Block& block, const ChangedIn& all) {
  Part part{.kind = Kind::changes, .head = plain(std::move(head)), .in = block.in(all.cells)};
  for (const auto& [change, name] : all.changes) {
    part.items.push_back({{change}, {name, true}});
  }
  part.most = 12;
  return part;
}

// Each of the sets; a comment and a brief reader have the first four.
void add_changes(Parts& parts, const std::string& head, const Block& block,
                 const std::vector<ChangedIn>& all, Readers readers = k_all) {
  constexpr std::size_t k_most = 4;
  if (readers == 0) return;
  for (std::size_t i = 0; i < all.size(); ++i) {
    parts.push_back(read_by(i < k_most ? readers : readers & k_long, changes(head, block, all[i])));
  }
  if (all.size() <= k_most) return;
  const std::string sets = plural(all.size() - k_most, "set of cells", "sets of cells");
  parts.push_back(read_by(readers & (k_brief | k_comment),
                          paragraph("", fmt::format("and others in {} more", sets), true)));
}

// "+45 ops elsewhere": how many more there are that ran elsewhere.
std::string moved_ops(const std::vector<verdict::Changed>& ops) {
  std::optional<Rational> sum(Rational(0));
  for (const verdict::Changed& one : ops) {
    const auto by = one.current.value_or(Rational(0)).minus(one.baseline.value_or(Rational(0)));
    sum = sum && by ? sum->plus(*by) : std::nullopt;
  }
  return ops.empty() || !sum ? "" : signed_show(*sum) + " ops elsewhere";
}

// "Kernels per token": what they are counted over.
std::string kernels_head(const CellVerdict& cell) {
  for (const Judgement& metric : cell.metrics()) {
    if (!adds_up_kernels(cell, metric.metric)) continue;
    if (metric.metric.scope == unit::Scope::per_request) return "Kernels per request";
    if (metric.metric.scope == unit::Scope::per_token) return "Kernels per token";
    if (metric.metric.scope == unit::Scope::per_prefill) return "Kernels per prefill";
  }
  return "Kernels";
}

Number number_of(const MetricRow& row) {
  const Judgement& of = *row.of;
  Number number = row.words;
  if (number.now.empty() && !number.base.empty()) {
    number.now = "not measured";
  } else if (!number.differs()) {
    number.base.clear();
  }
  number.why = reason_is_plain(of) ? "" : one_line(of.reason, 600);
  number.outcome = of.verdict;
  const bool wrong = of.verdict < Outcome::pass && (of.is_metric() || row.broken_rule());
  const bool beside = observed_change(of) || (of.verdict == Outcome::pass && key_metric(of.metric));
  number.readers = wrong ? k_all : of.is_metric() && beside ? k_terminal | k_page : k_long;
  return number;
}

Part ratios_of(const MetricRow& row) {
  Part part{.kind = Kind::ratios, .words = plain(row.words.label), .judged = row.of};
  part.data = ratios_figure(row);
  for (const std::string& line : spread_words(*row.of)) part.items.push_back(plain(line));
  return part;
}

// Metrics and broken rules, each with what adds up to it, which stands alone where a reader has no
// such row.
void add_numbers(Parts& parts, const Block& block) {
  const CellVerdict& cell = block.of();
  Part part = number_table("metrics of " + block.title, {});
  if (block.one()) part.noun = "metric";
  Readers kernels = 0, functions = 0;  // who has them
  for (const MetricRow* row : block.rows) {
    const Judgement& of = *row->of;
    Number number = number_of(*row);
    if (of.is_metric() && of.reason == cell.reason) number.why.clear();  // it stands above
    if (of.metric.name == verdict::k_placement && row->broken_rule()) {
      number.evidence = moved_ops(of.changed);
      add_changes(number.below, "Ops", block, block.ops);
    }
    const bool counts = of.metric.name == verdict::k_kernels
                            ? row->broken_rule()
                            : adds_up_kernels(cell, of.metric) && row->words.differs();
    if (counts && kernels == 0) {
      kernels = number.readers;
      add_changes(number.below, kernels_head(cell), block, block.kernels);
    }
    if (explained_by_functions(cell, of.metric) && functions == 0) {
      functions = number.readers;
      add_changes(number.below, "Functions", block, block.functions);
    }
    if (has_picture(of)) number.below.push_back(ratios_of(*row));
    part.numbers.push_back(std::move(number));
  }
  parts.push_back(std::move(part));
  constexpr Readers k_always = k_comment | k_page;
  add_changes(parts, kernels_head(cell), block, block.kernels, k_always & ~kernels);
  add_changes(parts, "Functions", block, block.functions, k_always & ~functions);
  // Ops that moved as they may.
  if (cell.of(verdict::k_placement).verdict >= Outcome::pass) {
    add_changes(parts, "Ops", block, block.ops, k_always);
  }
}

// The best explanation of each, with its arithmetic.
void add_why(Parts& parts, const Block& block) {
  constexpr std::size_t k_most = 3;
  for (std::size_t i = 0; i < block.why.size(); ++i) {
    const Shared& one = block.why[i];
    Part why = paragraph("Why", one.text);
    why.in = block.in(one.cells);
    parts.push_back(read_by(i < k_most ? k_all : k_long, std::move(why)));
    const auto lines =
        collect<std::string>(one.cells.front()->of->findings.front().lines,
                             [](const std::string& line) { return one_line(line, 400); });
    if (!lines.empty()) parts.push_back(read_by(k_long, list("", lines)));
  }
}

// Values that cells share, each once.
std::string distinct(const auto& cells, auto get) {
  std::vector<std::string> values;
  for (const auto& cell : cells) {
    const std::string value = one_line(std::invoke(get, cell), 300);
    if (!value.empty() && !holds(values, value)) values.push_back(value);
  }
  return text::join(values, "; ");
}

// Table of the server's own metrics of its load.
Part server_figures(const CellDocument& cell) {
  Part table{.kind = Kind::table,
             .head = plain("the server's own metrics of " + cell.title),
             .columns = {"metric", "kind", "#value"}};
  for (const profile::ServerFigure& figure : cell.of->server) {
    table.rows.push_back({{{one_line(figure.name, 200), true}},
                          plain(std::string(profile::to_string(figure.kind))),
                          plain(show(figure))});
  }
  Part note = paragraph("",
                        "Its own metrics of one load: how much counters grew, gauges at the end, "
                        "means of histograms. They judge nothing.",
                        true);
  return fold(plain("What the server itself counted"), {std::move(note), std::move(table)});
}

// Figures of one cell alone, and the devices of a block.
void add_page(Parts& parts, const Block& block) {
  if (block.one()) {
    for (const Json& one : served_figures(block.of())) {
      parts.push_back({.kind = Kind::figure, .readers = k_page, .data = one});
    }
    if (!block.of().server.empty()) {
      parts.push_back(read_by(k_page, server_figures(block.first())));
    }
  }
  std::vector<std::string> facts;
  for (const auto fact :
       {&CellVerdict::device_name, &CellVerdict::device_class, &CellVerdict::machine_name}) {
    facts.push_back(distinct(block.cells, [&](const auto* one) { return one->of->*fact; }));
  }
  const std::string base =
      distinct(block.cells, [](const CellDocument* one) { return one->of->base.value_or(""); });
  facts.push_back(base.empty() ? "" : "base: " + base);
  std::erase(facts, "");
  parts.push_back(read_by(k_page, paragraph("", text::join(facts, " \u00b7 "), true)));
}

Part part_of(const Block& block) {
  const CellVerdict& cell = block.of();
  Part part = section({{block.title, block.one()}});
  part.outcome = cell.verdict;
  part.cells = block.cells.size();
  Parts& parts = part.parts;
  if (!block.one()) {
    parts.push_back(read_by(k_brief | k_comment, paragraph("", block.list(block.cells, 12), true)));
    parts.push_back(
        read_by(k_long, list("", collect<std::string>(block.cells, &CellDocument::title))));
  }
  const bool says_all = reason_says_all(cell);
  const std::string& reason = says_all ? block.first().reason : block.reason;
  if (!reason.empty()) parts.push_back(paragraph("", clip(text::printable(reason), 2000)));
  if (cell.verdict == Outcome::error && !text::trim(cell.stderr_tail).empty()) {
    const char* head = block.one() ? "its last words" : "last words of one of them";
    parts.push_back({.kind = Kind::preformatted, .head = plain(head), .text = cell.stderr_tail});
  }
  if (says_all) {
    Parts measured;
    for (const CellDocument* one : block.cells) {
      const Block alone({one});
      Parts numbers;
      add_numbers(numbers, alone);
      add_page(numbers, alone);
      if (!one->rows.empty()) measured.push_back(section({{one->title, true}}, std::move(numbers)));
    }
    if (!measured.empty()) {
      parts.push_back(
          read_by(k_long, fold(plain("What was measured"), std::move(measured), k_verbose)));
    }
    return part;
  }
  if (std::string base = judged_by(cell); !base.empty()) {
    parts.push_back(read_by(k_terminal, paragraph("", std::move(base), true)));
  }
  add_numbers(parts, block);
  add_why(parts, block);
  add_page(parts, block);
  return part;
}

// Causes, and what none of them explains.
void add_causes(Parts& parts, const Document& document) {
  if (!document.cause_first) return;
  Part all = section(plain(document.headline), document.causes);
  all.outcome = Outcome::fail;
  all.titled = k_terminal;
  all.most = 8;
  all.noun = "cause";
  parts.push_back(std::move(all));
  if (document.unexplained) parts.push_back(*document.unexplained);
}

// "3 of 8 cells: …", once a report.
Part said(const char* tag, std::string head, const Document& document,
          const std::vector<Shared>& all) {
  Part part = list(std::move(head), {});
  part.tag = tag;
  part.most = document.cause_first ? 3 : 8;
  for (const Shared& one : all) {
    std::string where;
    if (one.cells.size() == 1) where = one_line(one.cells.front()->of->cell.str(), 300) + ": ";
    if (one.cells.size() > 1) {
      where = fmt::format("{} of {}: ", one.cells.size(), plural(document.cells.size(), "cell"));
    }
    part.items.push_back(plain(where + one.text));
  }
  return part;
}

// Rows of one cell under its title.
Part alone(const CellDocument& cell, const std::vector<const MetricRow*>& rows) {
  Part numbers = number_table("metrics of " + cell.title, {});
  for (const MetricRow* row : rows) {
    Number& number = numbers.numbers.emplace_back(number_of(*row));
    if (has_picture(*row->of)) number.below.push_back(ratios_of(*row));
    number.readers = k_all;
  }
  return section({{cell.title, true}}, {std::move(numbers)});
}

// Metrics at `mode: report` that moved in cells that are otherwise fine.
void add_unjudged(Parts& parts, const Document& document) {
  Part all = fold({}, {}, k_brief);
  all.readers = k_brief;
  all.noun = "cell";
  all.most = 8;
  for (const CellDocument& cell : document.cells) {
    if (cell.of->verdict < Outcome::pass) continue;
    std::vector<const MetricRow*> moved;
    for (const MetricRow& one : cell.rows) {
      if (observed_change(*one.of)) moved.push_back(&one);
    }
    if (moved.empty()) continue;
    all.parts.push_back(alone(cell, moved));
    all.parts.back().tag = "seen";
  }
  if (!all.parts.empty()) parts.push_back(std::move(all));
}

// Times that pairs have found fine: how sure that is can be seen.
void add_decided(Parts& parts, const Document& document) {
  Part all = fold(plain("Times compared with the base build"), {});
  all.readers = k_brief | k_comment;
  all.noun = "cell";
  all.most = 8;
  if (document.gate.verdict >= Outcome::new_) all.open = k_brief;
  for (const CellDocument& cell : document.cells) {
    if (cell.of->verdict < Outcome::pass) continue;
    std::vector<const MetricRow*> judged = pictured(cell);
    std::erase_if(judged, [](const MetricRow* one) { return one->of->verdict > Outcome::pass; });
    if (judged.empty()) continue;
    all.parts.push_back(alone(cell, judged));
    all.parts.back().outcome = Outcome::pass;
  }
  if (all.parts.empty()) return;
  parts.push_back(std::move(all));
}

// The line of a green verdict: limits, and how many cells were skipped.
std::string checked_words(const Document& document) {
  std::string line = "Checked: ";
  const auto judged = static_cast<std::size_t>(document.gate.metrics_judged);
  line += document.rule.empty() ? plural(judged, "metric") : document.rule;
  const std::size_t skipped = document.cells_with(Outcome::skipped);
  if (skipped > 0) line += fmt::format("; {} skipped", skipped);
  return line + ".";
}

// A line of what is fine, and behind it each cell.
Part passed_of(const Document& document, bool quiet) {
  Part table{.kind = Kind::table, .readers = k_comment, .columns = {"cell", "#metrics"}};
  Parts cells;
  std::size_t metrics = 0;
  for (const CellDocument& cell : document.cells) {
    if (cell.of->verdict != Outcome::pass) continue;
    metrics += cell.passed;
    table.rows.push_back({{{cell.title, true}}, plain(std::to_string(cell.passed))});
    Part one = part_of(Block({&cell}));
    one.kind = Kind::fold;
    one.readers = k_long;
    one.open = k_verbose;
    cells.push_back(std::move(one));
  }
  Part all =
      fold(plain(fmt::format("{}, {}", plural(cells.size(), "cell"), plural(metrics, "metric"))),
           {std::move(table)}, k_verbose);
  all.outcome = Outcome::pass;
  if (cells.size() == document.cells.size()) all.readers &= ~k_brief;  // its headline says it
  if (quiet) all.readers &= ~k_comment;
  if (cells.empty()) all.readers = 0;
  std::ranges::move(cells, std::back_inserter(all.parts));
  return all;
}

void add_skipped(Parts& parts, const Document& document, bool quiet) {
  for (const Shared& skipped : document.by_reason(Outcome::skipped)) {
    const std::string cells = plural(skipped.cells.size(), "cell");
    Part& part = parts.emplace_back(section(plain(cells + ": " + skipped.text)));
    part.outcome = Outcome::skipped;
    if (quiet) part.readers &= ~k_comment;  // counted in the line of what was checked
    const auto names =
        collect<std::string>(skipped.cells, [](const CellDocument* cell) { return cell->title; });
    part.parts.push_back(read_by(k_long, list("", names)));
  }
}

// A fold for each kernel whose compiled code is known on both sides.
void add_machine_code(Parts& parts, const GateVerdict& gate) {
  std::set<std::string> shown;
  for (const CellVerdict& cell : gate.cells) {
    const Judgement& code = cell.of(verdict::k_kernel_code);
    for (const verdict::OtherCode& one : code.code) {
      if (one.machine_code.empty() || !shown.insert(one.kernel + one.machine_code).second) continue;
      Words head{{"Machine code of "},
                 {one_line(one.kernel, 200), true},
                 {" " + one_line(code.compiler, 100)}};
      Part lines{.kind = Kind::preformatted, .text = one.machine_code};
      parts.push_back(read_by(k_page, fold(std::move(head), {std::move(lines)})));
    }
  }
}

void add_loads(Parts& parts, const GateVerdict& gate) {
  const std::vector<LoadedCell> cells = loaded_cells(gate);
  if (cells.empty()) return;
  Part table{
      .kind = Kind::table,
      .head = plain("latency against load"),
      .columns = {"cell", "#TTFT p50", "#p90", "#p99", "#TPOT p50", "#p90", "#p99", "#tok/s"}};
  for (const LoadedCell& cell : cells) {
    auto& row = table.rows.emplace_back(1, plain(cell_title(cell.of->cell)));
    for (const Judgement* metric : cell.metrics) {
      row.push_back(
          plain(metric == nullptr ? "not measured" : unit::show(metric->metric, *metric->current)));
    }
  }
  Part figure{.kind = Kind::figure, .data = load_figure(cells)};
  parts.push_back(read_by(
      k_page, section(plain("Latency against load"), {std::move(figure), std::move(table)})));
}

Part proposals_of(const GateVerdict& gate) {
  const ProposalWords all = proposal_words(gate, verdict::k_most_proposals);
  Part lines = list("", all.lines);
  lines.most = 12;
  Part part = section(plain(all.head), {std::move(lines)});
  part.tag = "rules";
  return part;
}

// All that a page says of the run itself.
Part facts_of(const Document& document) {
  const GateVerdict& gate = document.gate;
  Part table{.kind = Kind::table, .head = plain("facts of the run"), .columns = {"what", "value"}};
  const auto add = [&](const char* name, std::string value) {
    if (!value.empty()) table.rows.push_back({plain(name), plain(std::move(value))});
  };
  const auto took = [](const std::optional<double>& seconds) {
    return seconds ? unit::show_duration(*seconds) : "";
  };
  add("config", one_line(gate.config, 300));
  add("commit", one_line(gate.commit.value_or(""), 64));
  add("base", document.base);
  add("device", distinct(gate.cells, &CellVerdict::device_name));
  add("device class", distinct(gate.cells, &CellVerdict::device_class));
  add("machine", distinct(gate.cells, &CellVerdict::machine_name));
  add("limits", document.rule);
  if (!document.beside_base) add("rule", one_line(gate.decision_rule, 4000));
  add("took", took(gate.seconds));
  add("budget", took(gate.budget_seconds));
  if (const auto cost = gate.profiling_cost) {
    add("profiling", fmt::format("cost {:.1f} % of throughput", *cost * 100));
  }
  add("run", one_line(gate.run.value_or(""), 300));
  add("exit code", std::to_string(static_cast<int>(gate.exit_code)));
  add("weir", one_line(gate.weir_version, 30));
  return read_by(k_page, section(plain("Facts"), {std::move(table)}));
}

}  // namespace

Parts compose(const Document& document) {
  const GateVerdict& gate = document.gate;
  Parts parts;
  if (!gate.proposals.empty()) parts.push_back(proposals_of(gate));
  add_causes(parts, document);
  Parts behind;
  std::size_t cells_behind = 0;
  for (const Block& block : document.blocks) {
    (block.folded ? behind : parts).push_back(part_of(block));
    if (block.folded) cells_behind += block.cells.size();
  }
  for (const Hint& hint : hints(gate, {})) {
    if (hint.what != "allow") continue;
    parts.push_back(
        read_by(k_page, list("Meant to run on the CPU? Say why in the configuration", hint.words)));
  }
  if (Part code = said("code", "Kernels with other code", document, document.other_code());
      !code.items.empty()) {
    parts.push_back(std::move(code));
  }
  add_unjudged(parts, document);
  if (!behind.empty()) {
    Part all = fold(plain("Every number of " + plural(cells_behind, "cell")), std::move(behind),
                    k_verbose);
    parts.push_back(std::move(all));
  }
  add_decided(parts, document);
  if (document.beside_base) {
    Part rule =
        fold(plain("How sure this is"), {paragraph("", one_line(gate.decision_rule, 2000))});
    parts.push_back(read_by(k_comment, std::move(rule)));
  }
  Part warnings = said("warn", "Warnings", document, document.warnings());
  const bool quiet = gate.verdict == Outcome::pass && warnings.items.empty();
  for (Part& part :
       std::array{std::move(warnings), said("note", "Notes", document, document.notes())}) {
    if (part.items.empty()) continue;
    Part& shut = parts.emplace_back(fold(part.head, {part}, k_terminal | k_page));
    if (quiet) shut.readers &= ~k_comment;
  }
  if (quiet && !document.cells.empty()) {
    parts.push_back(read_by(k_comment, paragraph("", checked_words(document))));
  }
  add_machine_code(parts, gate);
  add_loads(parts, gate);
  parts.push_back(passed_of(document, quiet));
  add_skipped(parts, document, quiet);
  parts.push_back(facts_of(document));
  return parts;
}

}  // namespace weir::report
