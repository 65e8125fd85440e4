#include "gate/report/profile_text.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/report/layout.hpp"
#include "gate/report/words.hpp"

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

std::string value_words(const Measurement& measured) {
  if (measured.exact && measured.metric.unit == unit::Unit::count) return show(*measured.exact);
  const auto value = measured.value();
  return value && std::isfinite(*value) ? unit::show(measured.metric, *value) : "not measured";
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
  TextTable table;
  table.right = {true, false, false};
  const auto words = [](profile::ServerFigure::Kind kind) {
    switch (kind) {
      case profile::ServerFigure::Kind::counter:
        return "grew";
      case profile::ServerFigure::Kind::gauge:
        return "at the end";
      case profile::ServerFigure::Kind::mean:
        break;
    }
    return "mean";
  };
  for (const profile::ServerFigure& figure : figures) {
    table.rows.push_back({show(figure), words(figure.kind), one_line(figure.name, 200)});
  }
  return out + table.str(4, width);
}

}  // namespace

std::string profile_text(const Profile& profile, const ProfileStyle& style) {
  const auto width = static_cast<std::size_t>(std::max(style.width, 40));
  std::string out;
  std::string title = cell_title(profile.cell);
  if (!profile.provenance.device_name.empty()) {
    title += "   " + one_line(profile.provenance.device_name, 100);
  }
  say(out, title, width, 0);
  TextTable table;
  table.right = {false, true, false, false};
  for (const Measurement* measured : in_reading_order(profile, style.verbose)) {
    table.rows.push_back({clip(one_line(unit::label(measured->metric), 96), 28),
                          value_words(*measured), one_line(measured->source, 24),
                          spread(profile, *measured)});
  }
  out += table.str(2, width);
  if (style.verbose && profile.kernels) {
    say(out, profile.kernels->named ? "kernels" : "kernels (by the hash of their code)", width, 2);
    TextTable kernels;
    kernels.right = {true, false};
    for (const auto& [name, count] : profile.kernels->counts) {
      kernels.rows.push_back({show(count), one_line(name, 96)});
    }
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
  say(out, line + ".", static_cast<std::size_t>(std::max(style.width, 40)), 0);
  return out;
}

}  // namespace weir::report
