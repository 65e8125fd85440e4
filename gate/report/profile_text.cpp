// Writes measured profiles as text.
#include "gate/report/profile_text.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/report/count_tables.hpp"
#include "gate/report/document.hpp"
#include "gate/report/layout.hpp"

namespace weir::report {

using profile::Measurement;
using profile::Profile;

namespace {

// Says how certain a number is: "exact, 4 runs", "28.1 … 29.0, 10 runs".
std::string certainty_text(const Profile& profile, const Measurement& measured) {
  if (measured.exact && measured.nature == profile::Nature::exact) {
    if (profile.counted_runs < 1) return "exact";
    return fmt::format("exact, {}",
                       text::plural(static_cast<std::size_t>(profile.counted_runs), "run"));
  }
  std::string out;
  if (measured.samples.size() > 1) {
    const auto [min_value, max_value] = std::ranges::minmax_element(measured.samples);
    out = fmt::format("{} \u2026 {}, ", unit::show(measured.metric, *min_value),
                      unit::show(measured.metric, *max_value));
  }
  if (measured.relative_spread) {
    out += fmt::format("within {} %, ", about_two_digits(*measured.relative_spread * 100));
  }
  return out + text::plural(std::max<std::size_t>(measured.samples.size(), 1), "run");
}

// Returns the metrics in reading order; metrics of the whole run only if `verbose`.
std::vector<const Measurement*> ordered_metrics(const Profile& profile, bool verbose) {
  std::vector<const Measurement*> out;
  for (const auto& [name, measured] : profile.metrics) {
    if (verbose || measured.metric.scope != unit::Scope::fixed) out.push_back(&measured);
  }
  // Counts come first, in the order of their declaration (dispatches, barriers, syncs, …), those of
  // the whole run after the others; then times and memory.
  const auto rank = [](const Measurement* measurement) -> std::ptrdiff_t {
    const auto& bases = unit::count_bases();
    const auto place = std::ranges::find(bases, measurement->metric.base);
    const auto count_ranks = static_cast<std::ptrdiff_t>(bases.size()) + 1;
    if (measurement->metric.kind != unit::Kind::count) return 2 * count_ranks;
    const bool is_fixed = measurement->metric.scope == unit::Scope::fixed;
    return (place - bases.begin()) + (is_fixed ? count_ranks : 0);
  };
  std::ranges::stable_sort(out, {}, rank);
  return out;
}

// Adds the metrics that the server reported about itself; a short text only counts them.
void add_server_figures(Page& page, const std::vector<profile::ServerFigure>& figures,
                        bool verbose) {
  if (figures.empty()) return;
  if (!verbose) {
    page.add_indented(2, "the server's own metrics: {} (weir profile RUN shows them)",
                      figures.size());
    return;
  }
  page.add_indented(2, "the server's own metrics, of its last load: they judge nothing");
  TextTable table{.right_aligned = {true, false, false}};
  // In the order in which kinds are declared.
  constexpr const char* k_kinds[] = {"grew", "at the end", "mean"};
  for (const profile::ServerFigure& figure : figures) {
    table.rows.push_back({show(figure), k_kinds[static_cast<std::size_t>(figure.kind)],
                          printable_line(figure.name, 200)});
  }
  page.add_table(table, 4);
}

}  // namespace

std::string profile_text(const Profile& profile, const ProfileStyle& style) {
  Page page(columns_of(style.width));
  std::string title = cell_title(profile.cell);
  if (!profile.provenance.device_name.empty()) {
    title += "   " + printable_line(profile.provenance.device_name, 100);
  }
  page.add_text(title);
  TextTable table{.right_aligned = {false, true, false, false}};
  for (const Measurement* measured : ordered_metrics(profile, style.verbose)) {
    const std::string value = value_text(*measured);
    table.rows.push_back({clip(printable_line(unit::display_name(measured->metric), 96), 28),
                          value.empty() ? "not measured" : value,
                          printable_line(measured->source, 24),
                          certainty_text(profile, *measured)});
  }
  page.add_table(table);
  if (style.verbose && profile.kernels) {
    page.add_indented(
        2, profile.kernels->has_names ? "kernels" : "kernels (by the hash of their code)");
    TextTable kernels{.right_aligned = {true, false}};
    add_counts(kernels, *profile.kernels, 96);
    page.add_table(kernels, 4);
  }
  if (style.verbose && profile.functions) {
    page.add_indented(2, "instructions by function, system calls by name");
    page.add_table(functions_table(*profile.functions), 4);
  }
  add_server_figures(page, profile.server, style.verbose);
  if (profile.placement.state == profile::Placement::State::ran_elsewhere) {
    page.add_indented(2, "placement: " + printable_line(profile.placement.reason, 600));
  }
  if (profile.counts_skip_reason) {
    page.add_indented(2, "not counted: " + printable_line(*profile.counts_skip_reason, 600));
  } else {
    for (const auto& skipped : {profile.instructions_skip_reason, profile.host_skip_reason}) {
      if (skipped) page.add_indented(2, printable_line(*skipped, 600));
    }
  }
  for (const std::string& error : profile.errors) {
    page.add_indented(2, "error: " + clip(text::printable(error), 2000));
  }
  if (!profile.errors.empty()) {
    for (const std::string& line : last_lines(profile.stderr_tail, 8)) {
      page.add_indented(4, "| " + clip(line, 400));
    }
  }
  if (profile.profiling_cost) {
    page.add_indented(2, "Profiling cost {:.1f} % of throughput.", *profile.profiling_cost * 100);
  }
  std::vector<std::string> warnings = profile.warnings;
  for (const auto& [name, measured] : profile.metrics) {
    for (const std::string& warning : measured.warnings) {
      warnings.push_back(unit::display_name(measured.metric) + ": " + warning);
    }
  }
  for (const std::string& warning : warnings)
    page.add_indented(2, "warning: " + printable_line(warning, 600));
  return page.finish();
}

// Writes profiles one after the other, and a last line that counts them.
std::string profiles_text(std::span<const Profile> profiles, const ProfileStyle& style) {
  Page page(columns_of(style.width));
  std::size_t errors = 0, metrics = 0;
  for (const Profile& profile : profiles) {
    page.add_lines(profile_text(profile, style));
    page.add_blank_line();
    metrics += profile.metrics.size();
    if (!profile.errors.empty()) ++errors;
  }
  page.add_text("{}, {} measured{}.", text::plural(profiles.size(), "cell"),
                text::plural(metrics, "metric"),
                errors > 0 ? fmt::format("; {} had errors", text::plural(errors, "cell")) : "");
  return page.finish();
}

}  // namespace weir::report
