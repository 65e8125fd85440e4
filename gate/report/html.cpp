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
namespace {

std::string word(Outcome outcome) {
  const std::string_view name = verdict::to_string(outcome);
  return fmt::format("<span class=\"word {}\">{}</span>", name, name);
}

std::string soft(std::string_view text) {
  return fmt::format("<p class=\"soft\">{}</p>\n", xml_text(text));
}

std::string list(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += fmt::format("<li>{}</li>\n", xml_text(line));
  return out.empty() ? "" : "<ul>\n" + out + "</ul>\n";
}

std::string changes(std::string_view what, const std::vector<ChangedWords>& all) {
  if (all.empty()) return "";
  constexpr std::size_t k_most = 200;
  std::string out = soft(what) + "<ul class=\"changes\">\n";
  for (std::size_t i = 0; i < std::min(k_most, all.size()); ++i) {
    out += fmt::format("<li>{} <code>{}</code></li>\n", all[i].change, xml_text(all[i].name));
  }
  if (all.size() > k_most) out += fmt::format("<li>and {} more</li>\n", all.size() - k_most);
  return out + "</ul>\n";
}

std::string row(const MetricRow& row) {
  const MetricVerdict& metric = *row.of;
  std::vector<std::string> why;
  if (!metric.reason.empty() && !reason_is_plain(metric)) why.push_back(one_line(metric.reason));
  for (const std::string& warning : metric.warnings) why.push_back("doubt: " + one_line(warning));
  return fmt::format(
      "<tr class=\"{0}\"><th scope=\"row\">{1}</th><td class=\"{0}\">{0}</td>"
      "<td class=\"number\">{2}</td><td class=\"number\">{3}</td><td class=\"change\">{4}</td><td "
      "class=\"limit\">{5}</td>"
      "<td class=\"why\">{6}</td></tr>\n",
      verdict::to_string(metric.verdict), xml_text(row.words.label), xml_text(row.words.baseline),
      xml_text(row.words.now()), xml_text(row.words.change_and_evidence()),
      xml_text(row.words.limit), xml_text(text::join(why, "; ")));
}

std::string special_row(std::string_view name, Outcome outcome, std::string_view reason) {
  if (outcome == Outcome::info) return "";
  return fmt::format(
      "<tr class=\"{0}\"><th scope=\"row\">{1}</th><td class=\"{0}\">{0}</td><td></td><td></td>"
      "<td></td><td class=\"limit\">must not change</td><td class=\"why\">{2}</td></tr>\n",
      verdict::to_string(outcome), name, xml_text(one_line(reason)));
}

std::string table(const CellDocument& document) {
  const CellVerdict& cell = *document.of;
  const std::string placement =
      special_row("placement", cell.placement_verdict, cell.placement_reason);
  const bool misplaced = cell.placement_verdict < Outcome::pass;
  std::string rows = misplaced ? placement : "";
  for (const MetricRow* one : document.worst_first) rows += row(*one);
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
      xml_text(document.title), rows);
}

// The ratios of the metrics that pairs have judged, each with its numbers below.
std::string pictures(const CellDocument& cell) {
  std::string out;
  for (const MetricRow* row : pictured(cell)) {
    out +=
        fmt::format("<figure>\n<figcaption>{}, now against base: {}</figcaption>\n{}",
                    xml_text(row->words.label), xml_text(row->words.parts()), ratio_svg(*row->of));
    for (const std::string& line : spread_words(*row->of)) out += soft(line);
    out += "</figure>\n";
  }
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
  return fmt::format(
      "<details>\n<summary>What the server itself counted</summary>\n<div class=\"wide\" "
      "tabindex=\"0\" role=\"region\" aria-label=\"the server's own metrics of {}\">\n<table>\n"
      "<caption>Its own metrics of one load: how much counters grew, gauges at the end, means of "
      "histograms. They judge nothing.</caption>\n"
      "<thead><tr><th scope=\"col\">metric</th><th scope=\"col\">kind</th>"
      "<th scope=\"col\" class=\"number\">value</th></tr></thead>\n"
      "<tbody>\n{}</tbody>\n</table>\n</div>\n</details>\n",
      xml_text(cell.title), rows);
}

// The best explanation, with its arithmetic.
std::string explained(const CellVerdict& cell) {
  if (cell.findings.empty()) return "";
  const verdict::Finding& best = cell.findings.front();
  std::string out =
      fmt::format("<p><strong>Why:</strong> {}</p>\n", xml_text(one_line(best.headline, 400)));
  std::vector<std::string> lines;
  for (const std::string& line : best.lines) lines.push_back(one_line(line, 400));
  return out + list(lines);
}

// Everything of a cell but its name and verdict.
std::string body(const CellDocument& document) {
  const CellVerdict& cell = *document.of;
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
  out += table(document) + pictures(document) + server_figures(document);
  out += explained(cell);
  out += changes("kernels that changed", document.kernels);
  out += changes("functions that changed", document.functions);
  out += changes("ops that moved", document.ops);
  for (const std::string& warning : cell.warnings) out += soft("doubt: " + one_line(warning));
  for (const std::string& note : cell.notes) out += soft("note: " + one_line(note));
  std::vector<std::string> where;
  for (const std::string& part : {cell.device_name, cell.device_class, cell.machine_name}) {
    if (!part.empty()) where.push_back(one_line(part, 200));
  }
  if (cell.base && !cell.base->empty()) where.push_back("base: " + one_line(*cell.base, 200));
  return where.empty() ? out : out + soft(text::join(where, " \u00b7 "));
}

std::string loads(const GateVerdict& gate) {
  std::string out;
  for (const LoadCurve& curve : load_curves(gate)) out += load_figure(curve);
  return out.empty() ? "" : "<h2>Latency against load</h2>\n" + out;
}

std::string proposed(const GateVerdict& gate) {
  const ProposalWords all = proposal_words(gate, verdict::k_most_proposals);
  return all.head.empty() ? ""
                          : fmt::format("<h2>{}</h2>\n{}", xml_text(all.head), list(all.lines));
}

std::string wrong(const Document& document) {
  std::string out;
  for (const CellDocument* cell : document.to_read) {
    if (cell->of->verdict > Outcome::inconclusive) continue;
    out += fmt::format("<section class=\"cell\">\n<h3>{} {}</h3>\n{}</section>\n",
                       word(cell->of->verdict), xml_text(cell->title), body(*cell));
  }
  return out.empty() ? "" : "<h2>What is wrong or open</h2>\n" + out;
}

std::string matrix(const Document& document) {
  std::string out;
  for (const CellDocument& cell : document.cells) {
    // Those above are shown in full there; here stands their name.
    const std::string inside =
        cell.of->verdict <= Outcome::inconclusive ? soft("See above.") : body(cell);
    const std::string summary =
        cell.passed > 0 ? plural(cell.passed, "metric") + " passed" : one_line(cell.reason, 120);
    out += fmt::format(
        "<details>\n<summary>{} {} <span "
        "class=\"soft\">{}</span></summary>\n<div>\n{}</div>\n</details>\n",
        word(cell.of->verdict), xml_text(cell.title), xml_text(summary), inside);
  }
  return out.empty() ? "" : "<h2>All cells</h2>\n" + out;
}

std::string fact(std::string_view name, std::string_view value) {
  if (value.empty()) return "";
  return fmt::format("<dt>{}</dt><dd>{}</dd>\n", name, xml_text(value));
}

// Values that cells share, each listed once.
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

std::string facts(const Document& document) {
  const GateVerdict& gate = document.gate;
  std::string out = "<h2>Facts</h2>\n<dl>\n";
  out += fact("config", one_line(gate.config, 300));
  if (gate.commit) out += fact("commit", one_line(*gate.commit, 64));
  out += fact("base", document.base);
  out += fact("device", distinct(gate, [](const CellVerdict& cell) { return cell.device_name; }));
  out += fact("device class",
              distinct(gate, [](const CellVerdict& cell) { return cell.device_class; }));
  out += fact("machine", distinct(gate, [](const CellVerdict& cell) { return cell.machine_name; }));
  out += fact("limits", document.rule);
  if (!document.beside_base) out += fact("rule", one_line(gate.decision_rule, 4000));
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

std::string html(const Document& document) {
  const GateVerdict& gate = document.gate;
  std::string out = fmt::format(
      "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{}</title>\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<style>{}</style>\n</head>\n<body>\n<main>\n",
      xml_text("weir: " + document.first_line()), k_html_style);
  out += fmt::format("<h1>{} {}</h1>\n", word(gate.verdict), xml_text(document.headline));
  if (!document.not_judged.empty()) {
    out += fmt::format("<p class=\"missing\">Not judged: {}</p>\n", xml_text(document.not_judged));
  }
  if (!document.rule.empty()) out += soft(document.rule);
  if (document.beside_base) out += soft(one_line(gate.decision_rule, 4000));
  out += proposed(gate) + wrong(document) + loads(gate) + matrix(document) + facts(document);
  return out + "</main>\n</body>\n</html>\n";
}

}  // namespace weir::report
