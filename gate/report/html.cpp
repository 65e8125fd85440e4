#include <algorithm>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/report/document.hpp"
#include "gate/report/escape.hpp"
#include "gate/report/formats.hpp"
#include "gate/report/html_style.hpp"
#include "gate/report/layout.hpp"
#include "gate/report/pictures.hpp"

namespace weir::report {

using verdict::CellVerdict;
using verdict::GateVerdict;
using verdict::MetricVerdict;
using verdict::Outcome;

namespace {

std::string word(Outcome outcome) {
  const std::string_view name = verdict::to_string(outcome);
  return fmt::format("<span class=\"word {}\">{}</span>", name, name);
}

std::string changes(std::string_view what, const std::vector<ChangedWords>& all) {
  if (all.empty()) return "";
  constexpr std::size_t k_most = 200;
  std::string out = fmt::format("<p class=\"soft\">{}</p>\n<ul class=\"changes\">\n", what);
  for (std::size_t i = 0; i < std::min(k_most, all.size()); ++i) {
    out += fmt::format("<li>{} <code>{}</code></li>\n", all[i].change, xml_text(all[i].name));
  }
  if (all.size() > k_most) out += fmt::format("<li>and {} more</li>\n", all.size() - k_most);
  return out + "</ul>\n";
}

std::string row(const MetricVerdict& metric) {
  const MetricWords all = words(metric);
  std::string change = all.change;
  if (!all.evidence.empty()) change += (change.empty() ? "" : ", ") + all.evidence;
  std::vector<std::string> why;
  if (!metric.reason.empty() && !reason_is_plain(metric)) why.push_back(one_line(metric.reason));
  for (const std::string& warning : metric.warnings) why.push_back("doubt: " + one_line(warning));
  const std::string now = all.current.empty() ? "not measured" : all.current;
  return fmt::format(
      "<tr class=\"{0}\"><th scope=\"row\">{1}</th><td class=\"{0}\">{0}</td>"
      "<td class=\"number\">{2}</td><td class=\"number\">{3}</td><td class=\"change\">{4}</td><td "
      "class=\"limit\">{5}</td>"
      "<td class=\"why\">{6}</td></tr>\n",
      verdict::to_string(metric.verdict), xml_text(all.label), xml_text(all.baseline),
      xml_text(now), xml_text(change), xml_text(all.limit), xml_text(text::join(why, "; ")));
}

std::string special_row(std::string_view name, Outcome outcome, std::string_view reason) {
  if (outcome == Outcome::info) return "";
  return fmt::format(
      "<tr class=\"{0}\"><th scope=\"row\">{1}</th><td class=\"{0}\">{0}</td><td></td><td></td>"
      "<td></td><td class=\"limit\">must not change</td><td class=\"why\">{2}</td></tr>\n",
      verdict::to_string(outcome), name, xml_text(one_line(reason)));
}

std::string table(const CellVerdict& cell) {
  const std::string placement =
      special_row("placement", cell.placement_verdict, cell.placement_reason);
  const bool misplaced = cell.placement_verdict < Outcome::pass;
  std::string rows = misplaced ? placement : "";
  for (const MetricVerdict* metric : worst_first(cell)) rows += row(*metric);
  rows += special_row("kernels", cell.kernels_verdict, cell.kernels_reason);
  if (!misplaced) rows += placement;
  if (rows.empty()) return "";
  // Focusable, since it scrolls sideways on a narrow screen.
  return fmt::format(
      "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"metrics of {}\">\n<table>\n"
      "<thead><tr><th scope=\"col\">metric</th><th scope=\"col\">verdict</th>"
      "<th scope=\"col\" class=\"number\">base</th><th scope=\"col\" class=\"number\">now</th>"
      "<th scope=\"col\">change</th><th scope=\"col\">limit</th><th scope=\"col\">why</th></tr>"
      "</thead>\n<tbody>\n{}</tbody>\n</table>\n</div>\n",
      xml_text(cell_title(cell.cell)), rows);
}

// The ratios of the metrics that pairs have judged, each with its numbers below.
std::string pictures(const CellVerdict& cell) {
  std::string out;
  for (const MetricVerdict* metric : pictured(cell)) {
    const MetricWords all = words(*metric);
    std::vector<std::string> parts;
    for (const std::string& part : {all.change, all.evidence, all.limit}) {
      if (!part.empty()) parts.push_back(part);
    }
    out += fmt::format("<figure>\n<figcaption>{}, now against base: {}</figcaption>\n{}",
                       xml_text(all.label), xml_text(text::join(parts)), ratio_svg(*metric));
    for (const std::string& line : spread_words(*metric)) {
      out += fmt::format("<p class=\"soft\">{}</p>\n", xml_text(line));
    }
    out += "</figure>\n";
  }
  return out;
}

// What the server's own metrics said of its load.
std::string server_figures(const CellVerdict& cell) {
  if (cell.server.empty()) return "";
  std::string rows;
  for (const profile::ServerFigure& figure : cell.server) {
    rows += fmt::format(
        "<tr><th scope=\"row\"><code>{}</code></th><td>{}</td><td "
        "class=\"number\">{}</td></tr>\n",
        xml_text(one_line(figure.name, 200)), profile::to_string(figure.kind), show(figure));
  }
  return fmt::format(
      "<details>\n<summary>What the server itself counted</summary>\n<div class=\"wide\" "
      "tabindex=\"0\" role=\"region\" aria-label=\"the server's own metrics of {}\">\n<table>\n"
      "<caption>Its own metrics of one load: how much counters grew, gauges at the end, means of "
      "histograms. They judge nothing.</caption>\n"
      "<thead><tr><th scope=\"col\">metric</th><th scope=\"col\">kind</th>"
      "<th scope=\"col\" class=\"number\">value</th></tr></thead>\n"
      "<tbody>\n{}</tbody>\n</table>\n</div>\n</details>\n",
      xml_text(cell_title(cell.cell)), rows);
}

// The best explanation, with its arithmetic.
std::string explained(const CellVerdict& cell) {
  if (cell.findings.empty()) return "";
  const verdict::Finding& best = cell.findings.front();
  std::string out =
      fmt::format("<p><strong>Why:</strong> {}</p>\n", xml_text(one_line(best.headline, 400)));
  if (best.lines.empty()) return out;
  out += "<ul>\n";
  for (const std::string& line : best.lines) {
    out += fmt::format("<li>{}</li>\n", xml_text(one_line(line, 400)));
  }
  return out + "</ul>\n";
}

// Everything of a cell but its name and verdict.
std::string body(const CellVerdict& cell) {
  std::string out;
  if (!cell.reason.empty()) {
    for (const std::string& line : text::lines(text::printable(cell.reason))) {
      out += fmt::format("<p>{}</p>\n", xml_text(one_line(line)));
    }
  }
  if (cell.verdict == Outcome::error) {
    const auto tail = last_lines(cell.stderr_tail, 100, 16384);
    if (!tail.empty()) {
      out += fmt::format("<p class=\"soft\">its last words</p>\n<pre>{}</pre>\n",
                         xml_text(text::join(tail, "\n")));
    }
  }
  out += table(cell) + pictures(cell) + server_figures(cell);
  out += explained(cell);
  out += changes("kernels that changed", changed_words(cell.kernels));
  out += changes("functions that changed", function_words(cell.functions));
  out += changes("ops that moved", changed_words(cell.ops));
  for (const std::string& warning : cell.warnings) {
    out += fmt::format("<p class=\"soft\">doubt: {}</p>\n", xml_text(one_line(warning)));
  }
  for (const std::string& note : cell.notes) {
    out += fmt::format("<p class=\"soft\">note: {}</p>\n", xml_text(one_line(note)));
  }
  std::vector<std::string> where;
  for (const std::string& part : {cell.device_name, cell.device_class, cell.machine_name}) {
    if (!part.empty()) where.push_back(one_line(part, 200));
  }
  if (cell.base && !cell.base->empty()) where.push_back("base: " + one_line(*cell.base, 200));
  if (!where.empty()) {
    out += fmt::format("<p class=\"soft\">{}</p>\n", xml_text(text::join(where, " \u00b7 ")));
  }
  return out;
}

std::string loads(const GateVerdict& gate) {
  std::string out;
  for (const LoadCurve& curve : load_curves(gate)) out += load_figure(curve);
  return out.empty() ? "" : "<h2>Latency against load</h2>\n" + out;
}

std::string proposed(const GateVerdict& gate) {
  const ProposalWords all = proposal_words(gate, verdict::k_most_proposals);
  if (all.head.empty()) return "";
  std::string out = fmt::format("<h2>{}</h2>\n<ul>\n", xml_text(all.head));
  for (const std::string& line : all.lines) out += fmt::format("<li>{}</li>\n", xml_text(line));
  return out + "</ul>\n";
}

std::string wrong(const GateVerdict& gate) {
  std::string out;
  for (const CellVerdict* cell : cells_to_read(gate)) {
    if (cell->verdict > Outcome::inconclusive) continue;
    out += fmt::format("<section class=\"cell\">\n<h3>{} {}</h3>\n{}</section>\n",
                       word(cell->verdict), xml_text(cell_title(cell->cell)), body(*cell));
  }
  return out.empty() ? "" : "<h2>What is wrong or open</h2>\n" + out;
}

std::string summary_of(const CellVerdict& cell) {
  const std::size_t passed = passed_metrics(cell);
  return passed > 0 ? plural(passed, "metric") + " passed" : one_line(reason_of(cell), 120);
}

std::string matrix(const GateVerdict& gate) {
  if (gate.cells.empty()) return "";
  std::string out = "<h2>All cells</h2>\n";
  for (const CellVerdict& cell : gate.cells) {
    // Those above are told in full there; here stands their name.
    const std::string inside =
        cell.verdict <= Outcome::inconclusive ? "<p class=\"soft\">See above.</p>\n" : body(cell);
    out += fmt::format(
        "<details>\n<summary>{} {} <span "
        "class=\"soft\">{}</span></summary>\n<div>\n{}</div>\n</details>\n",
        word(cell.verdict), xml_text(cell_title(cell.cell)), xml_text(summary_of(cell)), inside);
  }
  return out;
}

std::string fact(std::string_view name, std::string_view value) {
  if (value.empty()) return "";
  return fmt::format("<dt>{}</dt><dd>{}</dd>\n", name, xml_text(value));
}

// Values that cells share, each told once.
template <class Get>
std::string distinct(const GateVerdict& gate, Get get) {
  std::vector<std::string> values;
  std::set<std::string> seen;
  for (const CellVerdict& cell : gate.cells) {
    const std::string value = one_line(get(cell), 300);
    if (!value.empty() && seen.insert(value).second) values.push_back(value);
  }
  return text::join(values, "; ");
}

std::string facts(const GateVerdict& gate) {
  std::string out = "<h2>Facts</h2>\n<dl>\n";
  out += fact("config", one_line(gate.config, 300));
  if (gate.commit) out += fact("commit", one_line(*gate.commit, 64));
  out += fact("base", base_words(gate));
  out += fact("device", distinct(gate, [](const CellVerdict& cell) { return cell.device_name; }));
  out += fact("device class",
              distinct(gate, [](const CellVerdict& cell) { return cell.device_class; }));
  out += fact("machine", distinct(gate, [](const CellVerdict& cell) { return cell.machine_name; }));
  out += fact("limits", short_rule(gate));
  if (!beside_base(gate)) out += fact("rule", one_line(gate.decision_rule, 4000));
  if (gate.seconds) out += fact("took", unit::show_duration(*gate.seconds));
  if (gate.budget_seconds) out += fact("budget", unit::show_duration(*gate.budget_seconds));
  if (gate.profiling_cost) {
    out +=
        fact("profiling", fmt::format("cost {:.1f} % of throughput", *gate.profiling_cost * 100));
  }
  if (gate.run) out += fact("run", one_line(*gate.run, 300));
  for (const std::string& note : gate.notes) out += fact("note", one_line(note));
  out += fact("exit code", fmt::format("{}", static_cast<int>(gate.exit_code)));
  out += fact("weir", one_line(gate.weir_version, 30));
  return out + "</dl>\n";
}

}  // namespace

std::string html(const GateVerdict& gate) {
  const std::string missing = not_judged_line(gate);
  std::string title = "weir: " + headline(gate);
  if (!missing.empty()) title += "; " + missing;
  std::string out = fmt::format(
      "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{}</title>\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<style>{}</style>\n</head>\n<body>\n<main>\n",
      xml_text(title), k_html_style);
  out += fmt::format("<h1>{} {}</h1>\n", word(gate.verdict), xml_text(headline(gate)));
  if (!missing.empty()) {
    out += fmt::format("<p class=\"missing\">Not judged: {}</p>\n", xml_text(missing));
  }
  if (const std::string rule = short_rule(gate); !rule.empty()) {
    out += fmt::format("<p class=\"soft\">{}</p>\n", xml_text(rule));
  }
  if (beside_base(gate)) {
    out += fmt::format("<p class=\"soft\">{}</p>\n", xml_text(one_line(gate.decision_rule, 4000)));
  }
  out += proposed(gate) + wrong(gate) + loads(gate) + matrix(gate) + facts(gate);
  return out + "</main>\n</body>\n</html>\n";
}

}  // namespace weir::report
