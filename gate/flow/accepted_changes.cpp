// Says in words what an acceptance changes in a stored baseline, and which counts vary.
#include "gate/flow/accepted_changes.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/profile/variation.hpp"
#include "gate/report/layout.hpp"

namespace weir::flow {
namespace {

using OldBaseline = std::optional<baseline::Baseline>;

constexpr double k_from_nothing = 1e12;  // stands before any real share

// A count with another value than before.
struct CountChange {
  std::string text;  // "syncs per token 1 → 2 (+100 %)"
  double share = 0;  // of the old value; k_from_nothing where that was 0
  bool is_worse = false;
};

// Returns a stored value as text, with its spread if it varies.
std::string stored_value(const profile::Measurement& measurement) {
  if (measurement.exact) return measurement.exact->str();
  if (!measurement.value()) return "varies";
  if (const auto varied = profile::find_variation(measurement)) return varied->range();
  const std::string value = unit::show(measurement.metric, *measurement.value());
  if (!measurement.relative_spread) return "varies";
  return fmt::format("{} (within {} %)", value,
                     report::about_two_digits(100 * *measurement.relative_spread));
}

std::string kernel_change_text(const profile::KernelSet& before, const profile::KernelSet& after) {
  std::vector<std::pair<std::string, Rational>> differ;  // a kernel with another count occurs twice
  std::ranges::set_symmetric_difference(before.counts, after.counts, std::back_inserter(differ));
  std::set<std::string> names;
  for (const auto& [name, count] : differ) names.insert(name);
  return names.empty() ? "kernels changed" : text::plural(names.size(), "kernel") + " changed";
}

// Returns the change of one count; nothing if it is stored as before.
std::optional<CountChange> count_change(const profile::Measurement* old_measurement,
                                        const profile::Measurement& measurement) {
  const std::string value = stored_value(measurement);
  const std::string old_value = old_measurement == nullptr ? "" : stored_value(*old_measurement);
  if (old_value == value) return std::nullopt;
  CountChange change;
  const std::string label = unit::display_name(measurement.metric);
  if (old_value.empty()) {
    change.text = fmt::format("{} {}", label, value);
    return change;
  }
  change.text = fmt::format("{} {} → {}", label, old_value, value);
  const double from = old_measurement->value().value_or(0), to = measurement.value().value_or(0);
  if (from == to) return change;
  change.share = from == 0 ? k_from_nothing : std::fabs(to - from) / std::fabs(from);
  change.is_worse = unit::got_worse(measurement.metric.better, to > from);
  if (from != 0) change.text += fmt::format(" ({:+.3g} %)", 100 * (to - from) / std::fabs(from));
  return change;
}

// Lists the counts that changed, what got worse and the largest changes first.
std::vector<CountChange> count_changes(const OldBaseline& before, const baseline::Baseline& after) {
  std::vector<CountChange> changes;
  for (const auto& [name, measurement] : after.counts) {
    if (measurement.metric.scope == unit::Scope::fixed) continue;
    const auto* old_measurement = before ? look_up(before->counts, name) : nullptr;
    if (auto change = count_change(old_measurement, measurement)) {
      changes.push_back(*std::move(change));
    }
  }
  std::ranges::stable_sort(changes, [](const CountChange& a, const CountChange& b) {
    return a.is_worse != b.is_worse ? a.is_worse : a.share > b.share;
  });
  return changes;
}

// Returns the changes as lines of text: counts, then kernels.
std::vector<std::string> change_lines(const OldBaseline& before, const baseline::Baseline& after) {
  std::vector<std::string> lines =
      collect<std::string>(count_changes(before, after), &CountChange::text);
  if (before && before->kernels && after.kernels && !(*before->kernels == *after.kernels)) {
    lines.push_back(kernel_change_text(*before->kernels, *after.kernels));
  }
  if (lines.empty())
    lines.push_back(before ? "gated counts and kernels as they were" : "no counts");
  return lines;
}

}  // namespace

std::string describe_changes(const OldBaseline& before, const baseline::Baseline& after) {
  return text::join(change_lines(before, after));
}

std::string changes_text(const OldBaseline& before, const baseline::Baseline& after, int width) {
  constexpr std::size_t k_max_lines = 5;
  std::vector<std::string> lines = change_lines(before, after);
  if (!before && !after.counts.empty()) {
    lines = {text::plural(after.counts.size(), "count")};
    if (after.kernels) lines[0] += ", " + text::plural(after.kernels->counts.size(), "kernel");
  }
  if (lines.size() > k_max_lines + 1) {
    const std::size_t left_out = lines.size() - k_max_lines;
    lines.resize(k_max_lines);
    lines.push_back(fmt::format("{} more", left_out));
  }
  report::Page page(report::columns_of(width));
  for (const std::string& line : lines) page.add_paragraph("    ", line, 6);
  return page.finish();
}

LargestChange find_largest_change(const OldBaseline& before, const baseline::Baseline& after) {
  if (!before) return {0, text::plural(after.counts.size(), "count")};
  const auto changes = count_changes(before, after);
  if (!changes.empty()) {
    const double share = changes[0].share;
    // All that got worse stands before all that did not.
    return {changes[0].is_worse ? 1 + share : share / (1 + share), changes[0].text};
  }
  const bool same_kernels = before->kernels == after.kernels;
  if (!same_kernels) return {0, change_lines(before, after).front()};
  baseline::Baseline same_reason = *before;
  same_reason.reason = after.reason;
  const bool only_reason = baseline::to_text(same_reason) == baseline::to_text(after);
  return {0, only_reason ? "a reason" : "times"};
}

std::vector<std::string> varying_counts(const baseline::Baseline& accepted) {
  std::vector<std::string> lines;
  for (const auto& [name, measurement] : accepted.counts) {
    const auto varied = profile::find_variation(measurement);
    if (!varied || varied->low == varied->high) continue;
    lines.push_back(fmt::format("{}: {}", unit::display_name(measurement.metric), varied->str()));
  }
  return lines;
}

std::string spread_warning(const baseline::Baseline& accepted) {
  constexpr double k_too_far = 0.2;  // a limit at three times this spread allows a lot
  std::vector<std::string> names;
  for (const auto& [name, measurement] : accepted.counts) {
    if (measurement.relative_spread.value_or(0) > k_too_far && measurement.value() != 0)
      names.push_back(unit::display_name(measurement.metric));
  }
  if (names.empty()) return "";
  return fmt::format(
      "{} of its runs lie so far apart that a gate can hardly tell a regression from this\n"
      "    machine's noise: accept the cell again when fewer other programs run",
      text::join(names));
}

}  // namespace weir::flow
