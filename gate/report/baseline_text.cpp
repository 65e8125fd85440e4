#include "gate/report/baseline_text.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/report/layout.hpp"
#include "gate/report/words.hpp"
#include "gate/stats/quantile.hpp"

namespace weir::report {

using baseline::Baseline;

namespace {

std::size_t width_of(int width) { return static_cast<std::size_t>(std::max(width, 40)); }

std::size_t sessions_of(const Baseline& stored) {
  std::size_t number = 0;
  for (const auto& [machine, sessions] : stored.sessions) number += sessions.size();
  return number;
}

std::string value_of(const profile::Measurement& measured) {
  if (measured.exact && measured.metric.unit == unit::Unit::count) return show(*measured.exact);
  const auto value = measured.value();
  return value ? unit::show(measured.metric, *value) : "";
}

}  // namespace

std::string baseline_list(std::span<const Baseline> baselines, int width) {
  if (baselines.empty()) return "No baselines are stored.\n";
  // One line a cell would be wider than a terminal: the class stands below its cell.
  std::string out;
  std::string cell;
  std::size_t cells = 0;
  for (const Baseline& stored : baselines) {
    if (stored.cell != cell) {
      cell = stored.cell;
      ++cells;
      say(out, one_line(cell, 300), width_of(width));
    }
    std::string line = one_line(stored.device_class, 200);
    line += fmt::format("   {}", plural(stored.counts.size(), "count"));
    if (stored.kernels) {
      line += fmt::format(", {}", plural(stored.kernels->counts.size(), "kernel"));
    }
    if (const std::size_t sessions = sessions_of(stored); sessions > 0) {
      line += fmt::format(", {} on {}", plural(sessions, "timed session"),
                          plural(stored.sessions.size(), "machine class", "machine classes"));
    }
    say(out, line, width_of(width), 2);
  }
  out += "\n";
  say(out, fmt::format("{} of {}.", plural(baselines.size(), "baseline"), plural(cells, "cell")),
      width_of(width));
  return out;
}

std::string baseline_show(const Baseline& stored, int width) {
  const std::size_t columns = width_of(width);
  std::string out;
  say(out, one_line(stored.cell, 300), columns);
  say(out, "device class  " + one_line(stored.device_class, 200), columns, 2);
  if (!stored.device_name.empty()) {
    say(out, "device        " + one_line(stored.device_name, 200), columns, 2);
  }
  say(out, "fingerprint   " + one_line(stored.fingerprint, 100), columns, 2);
  if (!stored.lengths.empty()) {
    std::vector<std::string> lengths;
    for (const std::int64_t length : stored.lengths) lengths.push_back(std::to_string(length));
    say(out, "counted at    " + text::join(lengths), columns, 2);
  }
  TextTable counts;
  counts.head = {"count", "value", "nature"};
  counts.right = {false, true, false};
  for (const auto& [name, measured] : stored.counts) {
    std::string nature = measured.nature == profile::Nature::exact ? "exact" : "nearly exact";
    if (measured.repeatability)
      nature += fmt::format(", within {} %", about(*measured.repeatability * 100));
    counts.rows.push_back(
        {clip(one_line(unit::label(measured.metric), 96), 32), value_of(measured), nature});
  }
  if (!counts.rows.empty()) out += "\n" + counts.str(2, columns);
  if (stored.kernels && !stored.kernels->counts.empty()) {
    TextTable kernels;
    kernels.head = {"times", stored.kernels->named ? "kernel" : "kernel (hash of its code)"};
    kernels.right = {true, false};
    for (const auto& [name, count] : stored.kernels->counts) {
      kernels.rows.push_back({show(count), one_line(name, 200)});
    }
    out += "\n" + kernels.str(2, columns);
  }
  if (stored.functions && !stored.functions->counts.empty()) {
    TextTable functions = functions_table(*stored.functions);
    functions.head = {"instructions", "function"};
    out += "\n" + functions.str(2, columns);
  }
  for (const auto& [machine, sessions] : stored.sessions) {
    if (sessions.empty()) continue;
    out += "\n";
    say(out,
        fmt::format("{} on {}", plural(sessions.size(), "timed session"), one_line(machine, 200)),
        columns, 2);
    TextTable times;
    times.head = {"session", "metric", "median", "runs"};
    times.right = {true, false, true, true};
    for (std::size_t i = 0; i < sessions.size(); ++i) {
      for (const auto& [name, samples] : sessions[i].samples) {
        if (samples.empty()) continue;
        const auto metric = unit::find_metric(name);
        const std::string label = metric ? unit::label(*metric) : one_line(name, 32);
        const double middle = stats::median(samples).value_or(0);
        times.rows.push_back({std::to_string(i + 1), label,
                              metric ? unit::show(*metric, middle) : fmt::format("{:.4g}", middle),
                              std::to_string(samples.size())});
      }
    }
    out += times.str(4, columns);
  }
  return out;
}

}  // namespace weir::report
