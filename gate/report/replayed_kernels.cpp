// Sums up the times of replayed kernels, as text and as an observed document.
#include "gate/report/replayed_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/report/layout.hpp"
#include "gate/stats/quantile.hpp"
#include "gate/unit/metric.hpp"

namespace weir::report {
namespace {

std::string groups_text(const ReplayedKernel& kernel) {
  return fmt::format("{}x{}x{}", kernel.groups[0], kernel.groups[1], kernel.groups[2]);
}

// Returns the median time of a kernel times its dispatches; nothing if it did not run.
std::optional<double> total_seconds(const ReplayedKernel& kernel) {
  const auto times = run_times(kernel);
  if (!times) return std::nullopt;
  return times->median * static_cast<double>(kernel.count);
}

// Returns "40 of 42 dispatches replayed, 3.94 ms in all, 1.97 ms a token".
std::string summary_text(const ReplayedKernels& all, const ReplayedSums& sums) {
  std::string out = fmt::format("{} of {} dispatches replayed", sums.replayed, sums.recorded);
  if (sums.replayed != 0) out += fmt::format(", {} in all", brief_time(sums.seconds));
  if (all.tokens && *all.tokens > 0 && sums.replayed != 0) {
    const auto tokens = static_cast<double>(*all.tokens);
    out += fmt::format(", {} a token", brief_time(sums.seconds / tokens));
  }
  return out;
}

}  // namespace

std::optional<RunTimes> run_times(const ReplayedKernel& kernel) {
  const auto median = stats::median(kernel.seconds);
  if (!median) return std::nullopt;
  std::vector<double> distances;
  for (const double seconds : kernel.seconds) distances.push_back(std::abs(seconds - *median));
  const auto [min_value, max_value] = std::ranges::minmax_element(kernel.seconds);
  return RunTimes{*median, *min_value, *max_value, *stats::median(distances)};
}

// Counts recorded and replayed dispatches, and sums up the seconds of the replayed ones.
ReplayedSums sum_up_times(const ReplayedKernels& all) {
  ReplayedSums out;
  for (const auto& [why, dispatches] : all.left_out) out.recorded += dispatches;
  for (const ReplayedKernel& kernel : all.kernels) {
    out.recorded += kernel.count;
    const auto seconds = total_seconds(kernel);
    if (!seconds) continue;
    out.replayed += kernel.count;
    out.seconds += *seconds;
  }
  return out;
}

// Writes replayed kernels, most time first, and reasons why others were left out.
std::string replayed_text(const ReplayedKernels& all, const ReplayStyle& style) {
  const ReplayedSums sums = sum_up_times(all);
  Page page(columns_of(style.width));
  page.add_text("kernels alone on " + printable_line(all.device, 200));
  page.add_indented(2, summary_text(all, sums));
  std::vector<const ReplayedKernel*> rows;
  auto left_out = all.left_out;  // number of dispatches by reason
  for (const ReplayedKernel& kernel : all.kernels) {
    if (!kernel.seconds.empty()) {
      rows.push_back(&kernel);
    } else {
      left_out[kernel.left_out] += kernel.count;
    }
  }
  std::ranges::stable_sort(
      rows, [](const auto* a, const auto* b) { return *total_seconds(*a) > *total_seconds(*b); });
  TextTable table{.headings = {"time", "share", "calls", "each", "\u00b1", "groups", "kernel"},
                  .right_aligned = {true, true, true, true, true, true, false}};
  for (const ReplayedKernel* row : rows) {
    if (table.rows.size() == style.max_rows) break;
    const RunTimes times = *run_times(*row);
    const double seconds = *total_seconds(*row);
    table.rows.push_back({brief_time(seconds), show_share(seconds, sums.seconds),
                          fmt::format("{}", row->count), brief_time(times.median),
                          brief_time(times.deviation), groups_text(*row),
                          printable_line(row->name, 160)});
  }
  if (!rows.empty()) page.add_lines("\n" + table.str(2, page.width()));
  if (rows.size() > style.max_rows)
    page.add_indented(2, "{} more (--top)", rows.size() - style.max_rows);
  if (!left_out.empty()) page.add_lines("\nleft out\n");
  for (const auto& [reason, dispatches] : left_out) {
    page.add_indented(2, "{}: {}", text::plural(dispatches, "dispatch", "dispatches"),
                      printable_line(reason, 300));
  }
  if (!all.warnings.empty()) page.add_blank_line();
  for (const std::string& warning : all.warnings) {
    page.add_text("warning: " + printable_line(warning, 1000));
  }
  return page.finish();
}

// Returns replayed kernels as a measurement: a row for each kernel and size, and the time of each
// run as a case.
observed::Observed to_observed(const ReplayedKernels& all) {
  static const unit::Metric k_replayed_seconds = unit::custom_metric(
      "replayed_seconds", unit::Kind::time, unit::Unit::seconds, unit::Better::lower);
  observed::Observed out;
  out.format = "weir-replay-kernels";
  out.version = "1";
  out.context.backend = "Vulkan";
  if (!all.device.empty()) out.context.device = all.device;
  if (!all.driver.empty()) out.context.facts["driver"] = all.driver;
  out.profiled_tokens = all.tokens;
  for (const ReplayedKernel& kernel : all.kernels) {
    observed::ObservedOp row;
    row.op = kernel.name;
    row.kernel = kernel.name;
    row.shape = groups_text(kernel) + " groups";
    row.backend = "Vulkan";
    row.phase = all.tokens ? observed::Phase::decode : observed::Phase::unknown;
    row.calls = static_cast<std::int64_t>(kernel.count);
    observed::ObservedCase test;
    test.name = fmt::format("{} {}", kernel.name, groups_text(kernel));
    test.facts = {{"calls", fmt::format("{}", kernel.count)},
                  {"bound bytes", fmt::format("{}", kernel.bytes)}};
    if (const auto times = run_times(kernel)) {
      row.seconds = total_seconds(kernel);
      row.min_seconds = times->min_seconds;
      row.max_seconds = times->max_seconds;
      test.timings.push_back({k_replayed_seconds, kernel.seconds, {}, {}});
    } else {
      test.error = kernel.left_out;
      out.warnings.push_back(fmt::format("left out: {}: {}", test.name, kernel.left_out));
    }
    out.ops.push_back(std::move(row));
    out.cases.push_back(std::move(test));
  }
  out.warnings.insert(out.warnings.begin(), all.warnings.begin(), all.warnings.end());
  for (const auto& [reason, dispatches] : all.left_out) {
    out.warnings.push_back(fmt::format("left out: {}: {}",
                                       text::plural(dispatches, "dispatch", "dispatches"), reason));
  }
  return out;
}

}  // namespace weir::report
