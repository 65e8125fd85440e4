#include "gate/report/markdown_cell.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/report/layout.hpp"
#include "gate/report/markdown.hpp"
#include "gate/report/ratios.hpp"
#include "gate/report/words.hpp"

namespace weir::report {

using verdict::CellVerdict;
using verdict::MetricVerdict;
using verdict::Outcome;

namespace {

std::string row(std::string_view cell, const MetricVerdict& metric) {
  const MetricWords all = words(metric);
  std::string change = all.change;
  if (!all.evidence.empty()) change += (change.empty() ? "" : ", ") + all.evidence;
  std::string what = markdown_text(all.label);
  if (metric.verdict != Outcome::fail) what += fmt::format(" ({})", tag(metric.verdict));
  std::string now = all.current.empty() ? "not measured" : all.current;
  if (metric.verdict == Outcome::fail) now = fmt::format("**{}**", now);
  return fmt::format("| {} | {} | {} | {} | {} | {} |\n", cell, what, all.baseline, now, change,
                     markdown_text(all.limit));
}

std::string special_row(std::string_view cell, std::string_view what, std::string_view reason) {
  return fmt::format("| {} | {} | | | {} | must not change |\n", cell, what, markdown_text(reason));
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

// The ratios of a metric's pairs, with what their marks mean, and how the sides spread.
std::string picture(const MetricVerdict& metric, const std::string& name) {
  const std::string strip = ratio_strip(metric, k_markdown_strip);
  if (strip.empty()) return "";
  std::string out = fmt::format("**{}{}**, now / base: {}<br><sub>{}</sub>\n\n",
                                markdown_text(words(metric).label), name, markdown_code(strip),
                                markdown_text(strip_legend(metric)));
  if (const auto spread = spread_words(metric); !spread.empty())
    out += markdown_fence(spread) + "\n";
  return out;
}

}  // namespace

std::string markdown_cell_name(const CellVerdict& cell) {
  return markdown_code(fmt::format("{} \u00b7 {} \u00b7 {} \u00b7 {}", cell.cell.engine_part(),
                                   cell.cell.model, cell.cell.backend, cell.cell.prompt_part()));
}

std::string markdown_rows(const CellVerdict& cell) {
  std::string out;
  const auto name = [&] { return out.empty() ? markdown_cell_name(cell) : std::string(); };
  if (cell.placement_verdict < Outcome::pass) {
    out += special_row(name(), "placement", cell.placement_reason);
  }
  bool counted = false;
  for (const MetricVerdict* metric : worst_first(cell)) {
    if (metric->verdict >= Outcome::pass) continue;
    counted = counted || adds_up_kernels(cell, metric->metric);
    out += row(name(), *metric);
  }
  if (cell.kernels_verdict < Outcome::pass && !counted) {
    out += special_row(name(), "kernels", cell.kernels_reason);
  }
  return out;
}

std::string markdown_below(const CellVerdict& cell, bool named) {
  const std::string name = named ? fmt::format(" in {}", markdown_cell_name(cell)) : "";
  std::string out;
  if (!cell.kernels.empty() && cell.verdict < Outcome::pass) {
    out += fmt::format("**Kernels{}:** {}\n\n", name, changed_list(changed_words(cell.kernels)));
  }
  if (!cell.functions.empty() && cell.verdict < Outcome::pass) {
    out +=
        fmt::format("**Functions{}:** {}\n\n", name, changed_list(function_words(cell.functions)));
  }
  if (!cell.ops.empty()) {
    out += fmt::format("**Ops{}:** {}\n\n", name, changed_list(changed_words(cell.ops)));
  }
  std::vector<std::string> told;
  const auto tell = [&](const std::string& what, const std::string& reason) {
    const std::string line = markdown_text(reason);
    if (line.empty() || std::find(told.begin(), told.end(), line) != told.end()) return;
    told.push_back(line);
    out += fmt::format("**{}{}:** {}\n\n", what, name, line);
  };
  if (cell.verdict != Outcome::error) tell("Note", cell.reason);
  for (const MetricVerdict& metric : cell.metrics) {
    if (metric.verdict < Outcome::pass && !reason_is_plain(metric)) {
      tell(markdown_text(words(metric).label), metric.reason);
    }
    if (metric.verdict < Outcome::pass) out += picture(metric, name);
  }
  return out;
}

std::string markdown_error(const CellVerdict& cell) {
  std::string out = fmt::format("**{}** could not be measured: {}\n\n", markdown_cell_name(cell),
                                markdown_text(reason_of(cell), 1500));
  const auto tail = last_lines(cell.stderr_tail, 15, 4000);
  if (!tail.empty()) {
    out += fmt::format("<details><summary>its last words</summary>\n\n{}\n</details>\n\n",
                       markdown_fence(tail));
  }
  return out;
}

}  // namespace weir::report
