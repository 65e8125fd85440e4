#include "gate/report/html.hpp"

#include <functional>
#include <set>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "gate/base/find.hpp"
#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/report/document.hpp"
#include "gate/report/escape.hpp"
#include "gate/report/figures.hpp"
#include "gate/report/html_style.hpp"
#include "gate/report/layout.hpp"
#include "gate/report/ratios.hpp"

namespace weir::report {
namespace {

std::string word(Outcome outcome) {
  const std::string_view name = verdict::to_string(outcome);
  return fmt::format("<span class=\"word {}\">{}</span>", name, name);
}

std::string soft(std::string_view text) {
  return fmt::format("<p class=\"soft\">{}</p>\n", xml_text(text));
}

std::string titled(std::string_view title, const std::string& body) {
  return body.empty() ? "" : fmt::format("<h2>{}</h2>\n{}", title, body);
}

std::string fold(std::string_view summary, std::string_view body) {
  return fmt::format("<details>\n<summary>{}</summary>\n<div>\n{}</div>\n</details>\n", summary,
                     body);
}

std::string list(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += fmt::format("<li>{}</li>\n", xml_text(line));
  return out.empty() ? "" : "<ul>\n" + out + "</ul>\n";
}

std::string changes(std::string_view what, const Block& block,
                    const std::vector<ChangedIn>& shared) {
  constexpr std::size_t k_most = 200;
  std::string out;
  for (const auto& [all, cells] : shared) {
    out += soft(block.in(cells) + std::string(what)) + "<ul class=\"changes\">\n";
    std::vector<std::string> items;
    for (const auto& [change, name] : all) {
      items.push_back(fmt::format("{} <code>{}</code>", change, xml_text(name)));
    }
    for (const std::string& item : shortened(std::move(items), k_most)) {
      out += fmt::format("<li>{}</li>\n", item);
    }
    out += "</ul>\n";
  }
  return out;
}

std::string table_row(const MetricRow& row) {
  const Judgement& metric = *row.of;
  const MetricWords& all = row.words;
  const std::string between = all.change.empty() || all.evidence.empty() ? "" : ", ";
  const std::string numbers = !metric.is_metric()
                                  ? "<td></td><td></td><td></td>"
                                  : fmt::format(
                                        "<td class=\"number\">{}</td><td class=\"number\">{}</td>"
                                        "<td class=\"change\">{}</td>",
                                        xml_text(all.baseline), xml_text(all.now()),
                                        xml_text(all.change + between + all.evidence));
  return fmt::format(
      "<tr class=\"{0}\"><th scope=\"row\">{1}</th><td class=\"{0}\">{0}</td>{2}"
      "<td class=\"limit\">{3}</td><td class=\"why\">{4}</td></tr>\n",
      verdict::to_string(metric.verdict), xml_text(all.label), numbers, xml_text(all.limit),
      xml_text(reason_is_plain(metric) ? "" : one_line(metric.reason)));
}

// The worst first. What is within its limit folds where anything else stands there.
std::string table(const Block& block) {
  std::vector<std::pair<Outcome, std::string>> rows;
  for (const MetricRow* one : block.rows) {
    // What is only observed, and moved, is there to be seen.
    rows.emplace_back(observed_change(*one->of) ? Outcome::accepted : one->of->verdict,
                      table_row(*one));
  }
  std::ranges::stable_sort(rows, {}, &std::pair<Outcome, std::string>::first);
  const auto shown = [&](std::string_view which, bool fine) {
    std::string out;
    for (const auto& [outcome, html] : rows) out += (outcome >= Outcome::pass) == fine ? html : "";
    if (out.empty()) return out;
    return "<div class=\"metrics\">\n" +
           html_table(fmt::format("{}metrics of {}", which, block.title),
                      {"metric", "verdict", "#base", "#now", "change", "limit", "why"}, out) +
           "</div>\n";
  };
  const std::string changed = shown("", false), fine = shown(changed.empty() ? "" : "other ", true);
  if (changed.empty() || fine.empty()) return changed + fine;
  const auto passed =
      std::ranges::count(rows, Outcome::pass, &std::pair<Outcome, std::string>::first);
  const auto others =
      std::ranges::count_if(rows, [](const auto& one) { return one.first > Outcome::pass; });
  return changed + fold(fmt::format("{} within limits{}", passed,
                                    others > 0 ? fmt::format(", {} without a limit", others) : ""),
                        fine);
}

// The data of a figure, in whose place the page's script draws it.
std::string drawn(const Json& figure) {
  return fmt::format("<script type=\"application/json\" class=\"figure\">{}</script>\n",
                     script_json(dump_json(figure)));
}

std::string figure(const Json& of, const std::vector<std::string>& more = {}) {
  std::string out = fmt::format("<figure>\n<figcaption>{}</figcaption>\n{}{}",
                                xml_text(of["caption"].get<std::string>()), drawn(of),
                                soft(of["words"].get<std::string>()));
  for (const std::string& line : more) out += soft(line);
  return out + "</figure>\n";
}

// The ratios of the metrics that pairs have judged, and what a server did.
std::string figures_of(const CellDocument& cell) {
  std::string out;
  for (const MetricRow* row : pictured(cell)) {
    out += figure(ratios_figure(*row), spread_words(*row->of));
  }
  for (const Json& one : served_figures(*cell.of)) out += figure(one);
  return out;
}

// What the server's own metrics said of its load.
std::string server_figures(const CellDocument& cell) {
  if (cell.of->server.empty()) return "";
  std::string rows;
  for (const profile::ServerFigure& figure : cell.of->server) {
    rows += fmt::format(
        "<tr><th scope=\"row\"><code>{}</code></th><td>{}</td><td "
        "class=\"number\">{}</td></tr>\n",
        xml_text(one_line(figure.name, 200)), profile::to_string(figure.kind), show(figure));
  }
  return fold(
      "What the server itself counted",
      html_table("the server's own metrics of " + cell.title, {"metric", "kind", "#value"}, rows,
                 "Its own metrics of one load: how much counters grew, gauges at the end, "
                 "means of histograms. They judge nothing."));
}

// The best explanation, with its arithmetic.
std::string explained(const Block& block) {
  std::string out;
  for (const Shared& one : block.why) {
    out +=
        fmt::format("<p><strong>Why:</strong> {}</p>\n", xml_text(block.in(one.cells) + one.text));
    out += list(collect<std::string>(one.cells.front()->of->findings.front().lines,
                                     [](const std::string& line) { return one_line(line, 400); }));
  }
  return out;
}

// Values that cells share, each listed once behind those that are there.
template <class Get>
void add_distinct(std::vector<std::string>& values, const auto& cells, Get get) {
  const std::size_t before = values.size();
  for (const auto& cell : cells) {
    const std::string value = one_line(std::invoke(get, cell), 300);
    if (!value.empty() && !holds(std::span(values).subspan(before), value)) {
      values.push_back(value);
    }
  }
}

// Everything of a block but its title and verdict.
std::string body(const Block& block) {
  const CellVerdict& cell = block.of();
  std::string out;
  if (!block.one()) out += soft(block.list(block.cells, 40));
  for (const std::string& line : text::lines(text::printable(block.reason))) {
    out += fmt::format("<p>{}</p>\n", xml_text(one_line(line)));
  }
  if (const auto tail = last_lines(cell.stderr_tail, 100, 16384);
      cell.verdict == Outcome::error && !tail.empty()) {
    out += soft(block.one() ? "its last words" : "last words of one of them") +
           fmt::format("<pre>{}</pre>\n", xml_text(text::join(tail, "\n")));
  }
  out += explained(block);
  out += changes("kernels that changed", block, block.kernels);
  out += changes("functions that changed", block, block.functions);
  out += changes("ops that moved", block, block.ops);
  out += table(block);
  if (block.one()) {
    out += figures_of(block.first()) + server_figures(block.first());
  }
  std::vector<std::string> where;
  for (const auto fact :
       {&CellVerdict::device_name, &CellVerdict::device_class, &CellVerdict::machine_name}) {
    add_distinct(where, block.cells, [&](const CellDocument* one) { return one->of->*fact; });
  }
  add_distinct(where, block.cells, [](const CellDocument* one) {
    const std::string base = one->of->base.value_or("");
    return base.empty() ? "" : "base: " + base;
  });
  return where.empty() ? out : out + soft(text::join(where, " \u00b7 "));
}

// Once a page, with how many cells say it.
std::string said(std::string_view title, const Document& document, const std::vector<Shared>& all) {
  std::vector<std::string> lines;
  for (const Shared& one : all) {
    std::string where;
    if (one.cells.size() == 1) where = one.cells.front()->title + ": ";
    if (one.cells.size() > 1) {
      where = fmt::format("{} of {}: ", one.cells.size(), plural(document.cells.size(), "cell"));
    }
    lines.push_back(where + one.text);
  }
  return titled(title, list(lines));
}

// A fold for each kernel whose compiled code is known on both sides.
std::string machine_code(const GateVerdict& gate) {
  std::string out;
  std::set<std::string> shown;
  for (const CellVerdict& cell : gate.cells) {
    const Judgement& code = cell.of(verdict::k_kernel_code);
    for (const verdict::OtherCode& one : code.code) {
      if (one.machine_code.empty() || !shown.insert(one.kernel + one.machine_code).second) continue;
      out += fmt::format(
          "<details>\n<summary>Machine code of <code>{}</code> <span class=\"soft\">{}</span>"
          "</summary>\n<pre tabindex=\"0\">{}</pre>\n</details>\n",
          xml_text(one_line(one.kernel, 200)), xml_text(one_line(code.compiler, 100)),
          xml_text(one.machine_code));
    }
  }
  return out;
}

std::string loads(const GateVerdict& gate) {
  const std::vector<LoadedCell> cells = loaded_cells(gate);
  if (cells.empty()) return "";
  std::string rows;
  for (const LoadedCell& cell : cells) {
    rows += fmt::format("<tr><th scope=\"row\">{}</th>", xml_text(cell_title(cell.of->cell)));
    for (const Judgement* metric : cell.metrics) {
      rows += fmt::format(
          "<td class=\"number\">{}</td>",
          metric == nullptr ? "not measured" : unit::show(metric->metric, *metric->current));
    }
    rows += "</tr>\n";
  }
  return titled("Latency against load",
                drawn(load_figure(cells)) + html_table("latency against load",
                                                       {"cell", "#TTFT p50", "#p90", "#p99",
                                                        "#TPOT p50", "#p90", "#p99", "#tok/s"},
                                                       rows));
}

std::string section(std::string_view head, std::string_view body) {
  return fmt::format("<section class=\"cell\">\n<h3>{}</h3>\n{}</section>\n", head, body);
}

// Blocks of these verdicts, each with all that is known of it: those that causes report, or the
// others.
std::string sections(const Document& document, Outcome from, Outcome to, bool folded = false) {
  std::string out;
  for (const Block& block : document.blocks) {
    if (block.of().verdict < from || block.of().verdict > to || block.folded != folded) continue;
    out += section(word(block.of().verdict) + " " + xml_text(block.title), body(block));
  }
  return out;
}

// Metrics over several cells.
std::string number_table(const std::string& label, const std::vector<NumberWords>& all) {
  std::string rows;
  for (const NumberWords& one : all) {
    rows += fmt::format(
        "<tr><th scope=\"row\">{}</th><td>{}</td><td class=\"change\">{}</td>"
        "<td class=\"why\">{}</td></tr>\n",
        xml_text(one.label), xml_text(one.from_to), xml_text(one.change), xml_text(one.where));
  }
  if (rows.empty()) return rows;
  return html_table(label, {"metric", "base \u2192 now", "change", "cells"}, rows);
}

// Causes, and what none of them explains.
std::string causes(const Document& document) {
  if (!document.cause_first) return "";
  std::string out;
  for (const CauseWords& cause : document.causes) {
    std::string body;
    if (!cause.where.empty()) body += fmt::format("<p>In {}.</p>\n", xml_text(cause.where));
    body += number_table("what carries " + cause.headline, cause.numbers);
    if (!cause.follow.empty()) body += soft(cause.follow + ".");
    if (!cause.cause.empty()) body += soft("Typical cause: " + cause.cause);
    if (!cause.look_at.empty()) {
      body += fmt::format("<p><strong>Look at:</strong> {}</p>\n", xml_text(cause.look_at));
    }
    out += section(xml_text(cause.headline), body);
  }
  const std::string rest = number_table("what no cause explains", document.unexplained);
  if (!rest.empty()) out += section("Not explained", rest);
  return out;
}

// The cells that causes report.
std::string behind_causes(const Document& document) {
  if (!document.cause_first) return "";
  std::size_t cells = 0;
  for (const Block& block : document.blocks) cells += block.folded ? block.cells.size() : 0;
  return fold("Every number of " + plural(cells, "cell"),
              sections(document, Outcome::fail, Outcome::fail, true));
}

// Cells of one verdict, each folded.
std::string folded(const Document& document, Outcome outcome) {
  std::string out;
  for (const CellDocument& cell : document.cells) {
    if (cell.of->verdict != outcome) continue;
    const std::string summary =
        cell.passed > 0 ? plural(cell.passed, "metric") + " passed" : one_line(cell.reason, 120);
    out += fold(fmt::format("{} {} <span class=\"soft\">{}</span>", word(outcome),
                            xml_text(cell.title), xml_text(summary)),
                body(Block({&cell})));
  }
  return out;
}

std::string passed(const Document& document) {
  const std::string cells = folded(document, Outcome::pass);
  if (cells.empty()) return "";
  return titled("What passed",
                fold(plural(document.cells_with(Outcome::pass), "cell") + " within limits", cells));
}

std::string fact(std::string_view name, std::string_view value) {
  if (value.empty()) return "";
  return fmt::format("<dt>{}</dt><dd>{}</dd>\n", name, xml_text(value));
}

std::string facts(const Document& document) {
  const GateVerdict& gate = document.gate;
  std::string out = "<h2>Facts</h2>\n<dl>\n";
  out += fact("config", one_line(gate.config, 300));
  if (gate.commit) out += fact("commit", one_line(*gate.commit, 64));
  out += fact("base", document.base);
  const auto of_cells = [&](std::string_view name, std::string CellVerdict::*value) {
    std::vector<std::string> values;
    add_distinct(values, gate.cells, value);
    out += fact(name, text::join(values, "; "));
  };
  of_cells("device", &CellVerdict::device_name);
  of_cells("device class", &CellVerdict::device_class);
  of_cells("machine", &CellVerdict::machine_name);
  out += fact("limits", document.rule);
  if (!document.beside_base) out += fact("rule", one_line(gate.decision_rule, 4000));
  if (gate.seconds) out += fact("took", unit::show_duration(*gate.seconds));
  if (gate.budget_seconds) out += fact("budget", unit::show_duration(*gate.budget_seconds));
  if (const auto cost = gate.profiling_cost) {
    out += fact("profiling", fmt::format("cost {:.1f} % of throughput", *cost * 100));
  }
  if (gate.run) out += fact("run", one_line(*gate.run, 300));
  out += fact("exit code", fmt::format("{}", static_cast<int>(gate.exit_code)));
  out += fact("weir", one_line(gate.weir_version, 30));
  return out + "</dl>\n";
}

}  // namespace

std::string html_page(std::string_view title, std::string_view more_style, std::string_view body,
                      std::string_view figures) {
  constexpr std::string_view k_no_script =
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n";
  return fmt::format(
      "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{}</title>\n{}"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<style>{}{}</style>\n</head>\n<body>\n<main>\n{}</main>\n</body>\n</html>\n",
      xml_text(title), figures.empty() ? k_no_script : figures, k_html_style, more_style, body);
}

std::string html_table(std::string_view label, std::initializer_list<std::string_view> columns,
                       std::string_view rows, std::string_view caption) {
  std::string head;
  for (const std::string_view title : columns) {
    head += title.starts_with('#')
                ? fmt::format("<th scope=\"col\" class=\"number\">{}</th>", title.substr(1))
                : fmt::format("<th scope=\"col\">{}</th>", title);
  }
  return fmt::format(
      "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">\n<table>\n{}"
      "<thead><tr>{}</tr></thead>\n<tbody>\n{}</tbody>\n</table>\n</div>\n",
      xml_text(label), caption.empty() ? "" : fmt::format("<caption>{}</caption>\n", caption), head,
      rows);
}

std::string html(const Document& document, std::string_view figures) {
  const GateVerdict& gate = document.gate;
  std::string out;
  out += fmt::format("<h1>{} {}</h1>\n", word(gate.verdict), xml_text(document.headline));
  if (!document.not_judged.empty()) {
    out += fmt::format("<p class=\"missing\">Not judged: {}</p>\n", xml_text(document.not_judged));
  }
  if (!document.rule.empty()) out += soft(document.rule);
  if (document.beside_base) out += soft(one_line(gate.decision_rule, 4000));
  const ProposalWords all = proposal_words(gate, verdict::k_most_proposals);
  out += titled(xml_text(all.head), list(all.lines));
  out += titled("What is wrong or inconclusive",
                causes(document) + sections(document, Outcome::fail, Outcome::inconclusive) +
                    behind_causes(document));
  for (const Hint& hint : hints(gate, {})) {
    if (hint.what == "allow") {
      out += titled("Meant to run on the CPU? Say why in the configuration", list(hint.words));
    }
  }
  out += said("Warnings", document, document.warnings());
  out += titled("What is new or was not measured",
                folded(document, Outcome::new_) + folded(document, Outcome::skipped));
  out += titled("What improved or was accepted",
                sections(document, Outcome::improved, Outcome::accepted));
  out += said("Kernels with other code", document, document.other_code()) + machine_code(gate);
  out += loads(gate) + passed(document);
  out += said("Notes", document, document.notes()) + facts(document);
  return html_page("weir: " + document.first_line(), "", out, figures);
}

}  // namespace weir::report
