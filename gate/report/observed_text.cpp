#include "gate/report/observed_text.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "gate/profile/observed_figures.hpp"
#include "gate/report/layout.hpp"

namespace weir::report {
namespace {

using profile::Observed;
using profile::OpTotal;

std::string more_rows(std::size_t all, std::size_t most) {
  return fmt::format("and {} more (--top {} shows them)", all - most, all);
}

// "llama.cpp · tiny.gguf · Vulkan · llvmpipe (vk-perf-logger)": what of it is said.
std::string observed_head(const Observed& observed) {
  std::string words;
  const auto& context = observed.context;
  for (const auto* part : {&context.engine, &context.engine_build, &context.model, &context.backend,
                           &context.device}) {
    if (!*part || (*part)->empty()) continue;
    words += words.empty() ? "" : " \u00b7 ";
    words += one_line(**part, 120);
  }
  const std::string format = "format " + one_line(observed.format, 60);
  return words.empty() ? format : fmt::format("{} ({})", words, format);
}

void observed_metrics(std::string& out, const Observed& observed, const ObservedStyle& style) {
  TextTable table;
  table.right = {false, true};
  for (const profile::ObservedFigure& one : profile::figures_of(observed)) {
    table.rows.push_back(
        {one_line(one.name, 60),
         one_line(one.value ? unit::show(one.metric, *one.value) : *one.error, 60)});
  }
  const std::size_t all = table.rows.size();
  table.rows.resize(std::min(all, style.most_rows));
  if (all != 0) out += "\n" + table.str(2, style.width);
  if (all > style.most_rows) say(out, more_rows(all, style.most_rows), style.width, 2);
}

void observed_ops(std::string& out, const Observed& observed, const ObservedStyle& style) {
  const std::vector<OpTotal> totals = profile::op_totals(observed, style.by);
  if (totals.empty()) return;
  double sum = 0;
  for (const OpTotal& one : totals) sum += one.seconds.value_or(0);
  TextTable table;
  table.head = {"time", "share", "calls", "each", "work"};
  table.right = {true, true, true, true, false};
  for (std::size_t i = 0; i < std::min(totals.size(), style.most_rows); ++i) {
    const OpTotal& one = totals[i];
    const bool timed = one.seconds.has_value();
    const bool each = timed && !one.partly && one.calls && *one.calls > 0;
    table.rows.push_back({timed ? brief_time(*one.seconds) : "",
                          timed && sum > 0 ? fmt::format("{:.1f} %", 100 * *one.seconds / sum) : "",
                          one.calls ? fmt::format("{}", *one.calls) : "",
                          each ? brief_time(*one.seconds / static_cast<double>(*one.calls)) : "",
                          one_line(one.name, 160)});
  }
  out += "\n" + table.str(2, style.width);
  if (totals.size() > style.most_rows) {
    say(out, more_rows(totals.size(), style.most_rows), style.width, 2);
  }
}

}  // namespace

std::string observed_text(const Observed& observed, const ObservedStyle& style) {
  std::string out;
  say(out, observed_head(observed), style.width);
  observed_metrics(out, observed, style);
  observed_ops(out, observed, style);
  if (!observed.errors.empty() || !observed.warnings.empty()) out += "\n";
  for (const std::string& error : observed.errors) {
    say(out, "error: " + one_line(error, 300), style.width, 2);
  }
  for (const std::string& doubt : observed.warnings) {
    say(out, "doubt: " + one_line(doubt, 300), style.width, 2);
  }
  return out;
}

}  // namespace weir::report
