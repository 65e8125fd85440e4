#include "gate/report/markdown_cell.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/report/document.hpp"
#include "gate/report/escape.hpp"
#include "gate/report/formats.hpp"
#include "gate/report/layout.hpp"
#include "gate/report/pictures.hpp"

namespace weir::report {

using verdict::CellVerdict;
using verdict::MetricVerdict;
using verdict::Outcome;

namespace {

// Narrow columns break "5 %" and "12 pairs" apart otherwise.
std::string unbroken(std::string_view words) {
  std::string out;
  for (const char c : words) out += c == ' ' ? std::string(k_no_break) : std::string(1, c);
  return out;
}

std::string row(std::string_view cell, const MetricVerdict& metric) {
  const MetricWords all = words(metric);
  std::string change = unbroken(all.change);
  if (!all.evidence.empty()) change += (change.empty() ? "" : ", ") + unbroken(all.evidence);
  constexpr std::size_t k_narrow = 30;
  std::string what = markdown_text(all.label);
  if (text::columns(what) <= k_narrow) what = unbroken(what);
  if (metric.verdict != Outcome::fail)
    what += fmt::format("{}({})", k_no_break, tag(metric.verdict));
  std::string now = all.current.empty() ? "not measured" : unbroken(all.current);
  if (metric.verdict == Outcome::fail) now = fmt::format("**{}**", now);
  return fmt::format("| {} | {} | {} | {} | {} | {} |\n", cell, what, unbroken(all.baseline), now,
                     change, unbroken(markdown_text(all.limit)));
}

std::string special_row(std::string_view cell, std::string_view what, std::string_view change) {
  return fmt::format("| {} | {} | | | {} | {} |\n", cell, what, change,
                     unbroken("must not change"));
}

// "+45 ops": how many more there are that ran elsewhere.
std::string moved_ops(const CellVerdict& cell) {
  std::optional<Rational> sum(Rational(0));
  for (const verdict::Changed& one : cell.ops) {
    const auto by = one.current.value_or(Rational(0)).minus(one.baseline.value_or(Rational(0)));
    sum = sum && by ? sum->plus(*by) : std::nullopt;
  }
  return cell.ops.empty() || !sum ? "see below" : unbroken(signed_show(*sum) + " ops elsewhere");
}

std::string changed_list(const std::vector<ChangedWords>& all) {
  constexpr std::size_t k_most = 12;
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < std::min(k_most, all.size()); ++i) {
    parts.push_back(fmt::format("{} {}", all[i].change, markdown_code(all[i].name)));
  }
  if (all.size() > k_most) parts.push_back(fmt::format("and {} more", all.size() - k_most));
  return text::join(parts);
}

// " per token": what kernels are counted over.
std::string_view scope_of(const CellVerdict& cell) {
  for (const MetricVerdict& metric : cell.metrics) {
    if (!adds_up_kernels(cell, metric.metric)) continue;
    if (metric.metric.scope == unit::Scope::per_token) return " per token";
    if (metric.metric.scope == unit::Scope::per_prefill) return " per prefill";
  }
  return "";
}

// The ratios of a metric's pairs, with what their marks mean.
std::string picture(const MetricVerdict& metric) {
  const std::string strip = ratio_strip(metric, k_markdown_strip);
  if (strip.empty()) return "";
  return fmt::format("now / base: {}<br><sub>{}</sub>", markdown_code(strip),
                     markdown_text(strip_legend(metric)));
}

}  // namespace

CellNames cell_names(const verdict::GateVerdict& gate) {
  CellNames names;
  names.engine = std::any_of(gate.cells.begin(), gate.cells.end(), [&](const CellVerdict& cell) {
    return cell.cell.engine_part() != gate.cells.front().cell.engine_part();
  });
  return names;
}

std::string markdown_cell_name(const CellVerdict& cell, CellNames names) {
  std::vector<std::string> parts;
  if (names.engine) parts.push_back(cell.cell.engine_part());
  for (const std::string& part : {cell.cell.model, cell.cell.backend, cell.cell.prompt_part()}) {
    parts.push_back(part);
  }
  for (std::string& part : parts) part = one_line(part, 96);
  return markdown_code(text::join(parts, " \u00b7 "));
}

std::string markdown_rows(const CellVerdict& cell, CellNames names) {
  std::string out;
  const auto name = [&] { return out.empty() ? markdown_cell_name(cell, names) : std::string(); };
  if (cell.placement_verdict < Outcome::pass) {
    out += special_row(name(), "placement", moved_ops(cell));
  }
  bool counted = false;
  for (const MetricVerdict* metric : worst_first(cell)) {
    if (metric->verdict >= Outcome::pass) continue;
    counted = counted || adds_up_kernels(cell, metric->metric);
    out += row(name(), *metric);
  }
  if (cell.kernels_verdict < Outcome::pass && !counted) {
    out += special_row(name(), "kernels", markdown_text(cell.kernels_reason, 200));
  }
  return out;
}

std::vector<Paragraph> markdown_paragraphs(const CellVerdict& cell) {
  std::vector<Paragraph> out;
  const auto tell = [&](std::string what, std::string text, std::string behind = "") {
    const bool told =
        std::any_of(out.begin(), out.end(), [&](const Paragraph& one) { return one.text == text; });
    if (!text.empty() && !told) {
      out.push_back({std::move(what), std::move(text), std::move(behind)});
    }
  };
  if (!cell.findings.empty() && cell.verdict < Outcome::pass) {
    tell("Why", markdown_text(cell.findings.front().headline, 400));
  }
  if (cell.placement_verdict < Outcome::pass) {
    tell("Placement", markdown_text(cell.placement_reason, 600));
  }
  if (!cell.kernels.empty() && cell.verdict < Outcome::pass) {
    tell(fmt::format("Kernels{}", scope_of(cell)), changed_list(changed_words(cell.kernels)));
  }
  if (!cell.functions.empty() && cell.verdict < Outcome::pass) {
    tell("Functions", changed_list(function_words(cell.functions)));
  }
  // Where ops broke the rule, the reason names them.
  if (cell.placement_verdict >= Outcome::pass) {
    tell("Ops", changed_list(changed_words(cell.ops)));
  }
  if (cell.verdict != Outcome::error) tell("Note", markdown_text(cell.reason));
  for (const MetricVerdict& metric : cell.metrics) {
    if (metric.verdict >= Outcome::pass) continue;
    std::string text = reason_is_plain(metric) ? "" : markdown_text(metric.reason);
    if (const std::string strip = picture(metric); !strip.empty()) {
      text += (text.empty() ? "" : "<br>") + strip;
    }
    const auto spread = spread_words(metric);
    tell(markdown_text(words(metric).label), std::move(text),
         spread.empty() ? "" : markdown_fence(spread));
  }
  return out;
}

std::string markdown_last_words(const CellVerdict& cell, std::string_view title) {
  const auto tail = last_lines(cell.stderr_tail, 15, 4000);
  if (tail.empty()) return "";
  return fmt::format("<details><summary>{}</summary>\n\n{}\n</details>\n\n", title,
                     markdown_fence(tail));
}

}  // namespace weir::report
