// Writes stored baselines as text: all in a list, or one in full.
#include "gate/report/baseline_text.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/profile/variation.hpp"
#include "gate/report/count_tables.hpp"
#include "gate/report/document.hpp"
#include "gate/report/layout.hpp"
#include "gate/stats/quantile.hpp"

namespace weir::report {

using baseline::Baseline;

// Lists the stored baselines by cell and device class, with how much each holds.
std::string baseline_list(std::span<const Baseline> baselines, int width) {
  if (baselines.empty()) return "No baselines are stored.\n";
  // The device class stands below its cell: one line for both would be wider than a terminal.
  Page page(columns_of(width));
  std::string cell;
  std::size_t cells = 0;
  for (const Baseline& stored : baselines) {
    if (stored.cell != cell) {
      cell = stored.cell;
      ++cells;
      page.add_text(printable_line(cell, 300));
    }
    std::vector<std::string> contents{text::plural(stored.counts.size(), "count")};
    if (stored.kernels) contents.push_back(text::plural(stored.kernels->counts.size(), "kernel"));
    std::size_t runs = 0;
    for (const auto& [machine, sessions] : stored.sessions) runs += sessions.size();
    if (runs > 0) {
      contents.push_back(text::plural(runs, "stored run") + " on " +
                         text::plural(stored.sessions.size(), "machine class", "machine classes"));
    }
    page.add_indented(2, printable_line(stored.device_class, 200) + "   " + text::join(contents));
    if (!stored.reason.empty())
      page.add_paragraph("    ", "reason: " + printable_line(stored.reason, 1000), 4);
  }
  page.add_blank_line();
  page.add_text("{} of {}.", text::plural(baselines.size(), "baseline"),
                text::plural(cells, "cell"));
  return page.finish();
}

std::string baseline_show(const Baseline& stored, int width) {
  Page page(columns_of(width));
  page.add_text(printable_line(stored.cell, 300));
  page.add_indented(2, "device class  " + printable_line(stored.device_class, 200));
  const std::string device = printable_line(stored.device_name, 200);
  if (!device.empty()) page.add_indented(2, "device        " + device);
  page.add_indented(2, "fingerprint   " + printable_line(stored.fingerprint, 100));
  if (!stored.reason.empty()) {
    page.add_paragraph("  ", "reason        " + printable_line(stored.reason, 1000), 16);
  }
  const auto& lengths = stored.lengths;
  if (!lengths.empty()) page.add_indented(2, "counted at    {}", fmt::join(lengths, ", "));
  TextTable counts{.headings = {"count", "value", "nature"}, .right_aligned = {false, true, false}};
  for (const auto& [name, measured] : stored.counts) {
    std::string nature = measured.nature == profile::Nature::exact ? "exact" : "nearly exact";
    if (const auto varied = profile::find_variation(measured)) {
      nature = "varies: " + varied->str();
    } else if (const auto within = measured.relative_spread) {
      nature += fmt::format(", within {} %", about_two_digits(*within * 100));
    }
    counts.rows.push_back({clip(printable_line(unit::display_name(measured.metric), 96), 32),
                           value_text(measured), nature});
  }
  const auto add = [&](const TextTable& table) {
    page.add_blank_line();
    page.add_table(table);
  };
  if (!counts.rows.empty()) add(counts);
  if (stored.kernels && !stored.kernels->counts.empty()) {
    TextTable kernels{
        .headings = {"times", stored.kernels->has_names ? "kernel" : "kernel (hash of its code)"},
        .right_aligned = {true, false}};
    add_counts(kernels, *stored.kernels, 200);
    add(kernels);
  }
  if (stored.functions && !stored.functions->counts.empty()) {
    TextTable functions = functions_table(*stored.functions);
    functions.headings = {"times", "instructions of a function, or a system call"};
    add(functions);
  }
  for (const auto& [machine, sessions] : stored.sessions) {
    if (sessions.empty()) continue;
    page.add_blank_line();
    page.add_indented(2, "{} on {}", text::plural(sessions.size(), "stored run"),
                      printable_line(machine, 200));
    TextTable times{.headings = {"stored run", "metric", "median", "runs"},
                    .right_aligned = {true, false, true, true}};
    for (std::size_t i = 0; i < sessions.size(); ++i) {
      for (const auto& [name, samples] : sessions[i].samples) {
        if (samples.empty()) continue;
        const auto metric = unit::find_metric(name);
        const std::string label = metric ? unit::display_name(*metric) : printable_line(name, 32);
        const double middle = stats::median(samples).value_or(0);
        times.rows.push_back({std::to_string(i + 1), label,
                              metric ? unit::show(*metric, middle) : fmt::format("{:.4g}", middle),
                              std::to_string(samples.size())});
      }
    }
    page.add_table(times, 4);
  }
  return page.finish();
}

}  // namespace weir::report
