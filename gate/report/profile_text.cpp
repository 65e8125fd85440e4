#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/report/document.hpp"
#include "gate/report/layout.hpp"
#include "gate/report/profile_texts.hpp"
#include "gate/report/texts.hpp"
#include "gate/stats/quantile.hpp"

namespace weir::report {

using profile::Measurement;
using profile::Profile;

namespace {

// "same in 4 runs", "28.1 … 29.0, 10 runs": how well the number is known.
std::string spread(const Profile& of, const Measurement& measured) {
  if (measured.exact && measured.nature == profile::Nature::exact) {
    if (of.counted_runs < 1) return "exact";
    return fmt::format("exact, {}", plural(static_cast<std::size_t>(of.counted_runs), "run"));
  }
  std::string out;
  if (measured.samples.size() > 1) {
    const auto [least, most] =
        std::minmax_element(measured.samples.begin(), measured.samples.end());
    out = fmt::format("{} \u2026 {}, ", unit::show(measured.metric, *least),
                      unit::show(measured.metric, *most));
  }
  if (measured.repeatability) {
    out += fmt::format("within {} %, ", about(*measured.repeatability * 100));
  }
  return out + plural(std::max<std::size_t>(measured.samples.size(), 1), "run");
}

// "" where it was not measured.
std::string value_words(const Measurement& measured) {
  if (measured.exact && measured.metric.unit == unit::Unit::count) return show(*measured.exact);
  const auto value = measured.value();
  return value && std::isfinite(*value) ? unit::show(measured.metric, *value) : "";
}

std::vector<const Measurement*> in_reading_order(const Profile& profile, bool verbose) {
  std::vector<const Measurement*> out;
  for (const auto& [name, measured] : profile.metrics) {
    if (verbose || measured.metric.scope != unit::Scope::fixed) out.push_back(&measured);
  }
  // Counts in the order in which the metrics are declared (dispatches, barriers, syncs, …), by
  // scope; then times and memory.
  const auto rank = [](const Measurement* one) -> std::ptrdiff_t {
    const auto& bases = unit::count_bases();
    const auto found = std::find(bases.begin(), bases.end(), one->metric.base);
    const auto scopes = static_cast<std::ptrdiff_t>(bases.size()) + 1;
    if (one->metric.kind != unit::Kind::count) return 100 * scopes;
    return (found - bases.begin()) + scopes * (one->metric.scope == unit::Scope::fixed ? 1 : 0);
  };
  std::stable_sort(out.begin(), out.end(),
                   [&](const Measurement* a, const Measurement* b) { return rank(a) < rank(b); });
  return out;
}

void add_counts(TextTable& table, const profile::KernelSet& set, std::size_t most) {
  for (const auto& [name, count] : set.counts) {
    table.rows.push_back({show(count), one_line(name, most)});
  }
}

// What the server said of itself; of a short text only that it did.
std::string server_figures(const std::vector<profile::ServerFigure>& figures, bool verbose,
                           std::size_t width) {
  if (figures.empty()) return "";
  std::string out;
  if (!verbose) {
    say(out,
        fmt::format("the server's own metrics: {} (weir profile RUN shows them)", figures.size()),
        width, 2);
    return out;
  }
  say(out, "the server's own metrics, of its last load: they judge nothing", width, 2);
  TextTable table{{}, {true, false, false}};
  // In the order in which kinds are declared.
  constexpr const char* k_kinds[] = {"grew", "at the end", "mean"};
  for (const profile::ServerFigure& figure : figures) {
    table.rows.push_back(
        {show(figure), k_kinds[static_cast<std::size_t>(figure.kind)], one_line(figure.name, 200)});
  }
  return out + table.str(4, width);
}

}  // namespace

std::string profile_text(const Profile& profile, const ProfileStyle& style) {
  const std::size_t width = columns_of(style.width);
  std::string out;
  std::string title = cell_title(profile.cell);
  if (!profile.provenance.device_name.empty()) {
    title += "   " + one_line(profile.provenance.device_name, 100);
  }
  say(out, title, width, 0);
  TextTable table{{}, {false, true, false, false}};
  for (const Measurement* measured : in_reading_order(profile, style.verbose)) {
    const std::string value = value_words(*measured);
    table.rows.push_back({clip(one_line(unit::label(measured->metric), 96), 28),
                          value.empty() ? "not measured" : value, one_line(measured->source, 24),
                          spread(profile, *measured)});
  }
  out += table.str(2, width);
  if (style.verbose && profile.kernels) {
    say(out, profile.kernels->named ? "kernels" : "kernels (by the hash of their code)", width, 2);
    TextTable kernels{{}, {true, false}};
    add_counts(kernels, *profile.kernels, 96);
    out += kernels.str(4, width);
  }
  if (style.verbose && profile.functions) {
    say(out, "instructions by function", width, 2);
    out += functions_table(*profile.functions).str(4, width);
  }
  out += server_figures(profile.server, style.verbose, width);
  if (profile.placement.state == profile::Placement::State::refuted) {
    say(out, "placement: " + one_line(profile.placement.reason, 600), width, 2);
  }
  if (profile.counts_skipped) {
    say(out, "not counted: " + one_line(*profile.counts_skipped, 600), width, 2);
  } else if (profile.instructions_skipped) {
    say(out, one_line(*profile.instructions_skipped, 600), width, 2);
  }
  for (const std::string& error : profile.errors) {
    say(out, "error: " + clip(text::printable(error), 2000), width, 2);
  }
  if (!profile.errors.empty()) {
    for (const std::string& line : last_lines(profile.stderr_tail, 8)) {
      say(out, "| " + clip(line, 400), width, 4);
    }
  }
  std::vector<std::string> doubts = profile.warnings;
  for (const auto& [name, measured] : profile.metrics) {
    for (const std::string& warning : measured.warnings) {
      doubts.push_back(unit::label(measured.metric) + ": " + warning);
    }
  }
  for (const std::string& doubt : doubts) say(out, "doubt: " + one_line(doubt, 600), width, 2);
  return out;
}

std::string profiles_text(std::span<const Profile> profiles, const ProfileStyle& style) {
  std::string out;
  std::size_t errors = 0;
  std::size_t metrics = 0;
  for (const Profile& profile : profiles) {
    out += profile_text(profile, style) + "\n";
    metrics += profile.metrics.size();
    if (!profile.errors.empty()) ++errors;
  }
  std::string line =
      fmt::format("{}, {} measured", plural(profiles.size(), "cell"), plural(metrics, "metric"));
  if (errors > 0) line += fmt::format("; {} had errors", plural(errors, "cell"));
  say(out, line + ".", columns_of(style.width), 0);
  return out;
}

using baseline::Baseline;

namespace {

std::size_t sessions_of(const Baseline& stored) {
  std::size_t number = 0;
  for (const auto& [machine, sessions] : stored.sessions) number += sessions.size();
  return number;
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
      say(out, one_line(cell, 300), columns_of(width));
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
    say(out, line, columns_of(width), 2);
  }
  out += "\n";
  say(out, fmt::format("{} of {}.", plural(baselines.size(), "baseline"), plural(cells, "cell")),
      columns_of(width));
  return out;
}

std::string baseline_show(const Baseline& stored, int width) {
  const std::size_t columns = columns_of(width);
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
  TextTable counts{{"count", "value", "nature"}, {false, true, false}};
  for (const auto& [name, measured] : stored.counts) {
    std::string nature = measured.nature == profile::Nature::exact ? "exact" : "nearly exact";
    if (measured.repeatability)
      nature += fmt::format(", within {} %", about(*measured.repeatability * 100));
    counts.rows.push_back(
        {clip(one_line(unit::label(measured.metric), 96), 32), value_words(measured), nature});
  }
  if (!counts.rows.empty()) out += "\n" + counts.str(2, columns);
  if (stored.kernels && !stored.kernels->counts.empty()) {
    TextTable kernels{{"times", stored.kernels->named ? "kernel" : "kernel (hash of its code)"},
                      {true, false}};
    add_counts(kernels, *stored.kernels, 200);
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
    TextTable times{{"session", "metric", "median", "runs"}, {true, false, true, true}};
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
