#include "gate/report/replayed_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "gate/report/layout.hpp"
#include "gate/stats/quantile.hpp"
#include "gate/unit/metric.hpp"

namespace weir::report {
namespace {

std::string groups_of(const ReplayedKernel& kernel) {
  return fmt::format("{}x{}x{}", kernel.groups[0], kernel.groups[1], kernel.groups[2]);
}

std::optional<double> seconds_of(const ReplayedKernel& kernel) {
  const auto times = times_of(kernel);
  if (!times) return std::nullopt;
  return times->median * static_cast<double>(kernel.count);
}

std::string replayed_head(const ReplayedKernels& all, const ReplayedSums& sums) {
  std::string out = fmt::format("{} of {} dispatches replayed", sums.replayed, sums.recorded);
  if (sums.replayed != 0) out += fmt::format(", {} in all", brief_time(sums.seconds));
  if (all.tokens && *all.tokens > 0 && sums.replayed != 0) {
    const auto tokens = static_cast<double>(*all.tokens);
    out += fmt::format(", {} a token", brief_time(sums.seconds / tokens));
  }
  return out;
}

}  // namespace

std::optional<RunTimes> times_of(const ReplayedKernel& kernel) {
  const auto median = stats::median(kernel.seconds);
  if (!median) return std::nullopt;
  std::vector<double> distances;
  for (const double one : kernel.seconds) distances.push_back(std::abs(one - *median));
  const auto [least, most] = std::ranges::minmax_element(kernel.seconds);
  return RunTimes{*median, *least, *most, *stats::median(distances)};
}

ReplayedSums sums_of(const ReplayedKernels& all) {
  ReplayedSums out;
  for (const auto& [why, dispatches] : all.left_out) out.recorded += dispatches;
  for (const ReplayedKernel& kernel : all.kernels) {
    out.recorded += kernel.count;
    const auto seconds = seconds_of(kernel);
    if (!seconds) continue;
    out.replayed += kernel.count;
    out.seconds += *seconds;
  }
  return out;
}

std::string replayed_text(const ReplayedKernels& all, const ReplayStyle& style) {
  const ReplayedSums sums = sums_of(all);
  Page page(columns_of(style.width));
  page.say(0, "kernels alone on " + one_line(all.device, 200));
  page.say(2, replayed_head(all, sums));
  std::vector<const ReplayedKernel*> rows;
  auto why = all.left_out;  // nothing is known of how many dispatches
  for (const ReplayedKernel& kernel : all.kernels) {
    if (!kernel.seconds.empty()) {
      rows.push_back(&kernel);
    } else {
      why[kernel.left_out] += kernel.count;
    }
  }
  std::ranges::stable_sort(
      rows, [](const auto* a, const auto* b) { return *seconds_of(*a) > *seconds_of(*b); });
  TextTable table{{"time", "share", "calls", "each", "\u00b1", "groups", "kernel"},
                  {true, true, true, true, true, true, false}};
  for (const ReplayedKernel* row : rows) {
    if (table.rows.size() == style.most_rows) break;
    const RunTimes times = *times_of(*row);
    const double seconds = *seconds_of(*row);
    table.rows.push_back(
        {brief_time(seconds),
         sums.seconds > 0 ? fmt::format("{:.1f} %", 100 * seconds / sums.seconds) : "",
         fmt::format("{}", row->count), brief_time(times.median), brief_time(times.deviation),
         groups_of(*row), one_line(row->name, 160)});
  }
  if (!rows.empty()) page.add("\n" + table.str(2, page.width()));
  if (rows.size() > style.most_rows) page.say(2, "{} more (--top)", rows.size() - style.most_rows);
  if (!why.empty()) page.add("\nleft out\n");
  for (const auto& [reason, dispatches] : why) {
    page.say(2, "{}: {}", plural(dispatches, "dispatch", "dispatches"), one_line(reason, 300));
  }
  if (!all.warnings.empty()) page.blank();
  for (const std::string& warning : all.warnings) {
    page.say(0, "warning: " + one_line(warning, 1000));
  }
  return page.finish();
}

observed::Observed observed_of(const ReplayedKernels& all) {
  static const unit::Metric k_alone = unit::custom_metric("replayed_seconds", unit::Kind::time,
                                                          unit::Unit::seconds, unit::Better::lower);
  observed::Observed out;
  out.format = "weir-replay-kernels";
  out.version = "1";
  out.context.backend = "Vulkan";
  if (!all.device.empty()) out.context.device = all.device;
  if (!all.driver.empty()) out.context.facts["driver"] = all.driver;
  out.profiled_tokens = all.tokens;
  for (const ReplayedKernel& kernel : all.kernels) {
    observed::ObservedOp row;
    row.op = row.kernel = kernel.name;
    row.shape = groups_of(kernel) + " groups";
    row.backend = "Vulkan";
    row.phase = all.tokens ? observed::Phase::decode : observed::Phase::unknown;
    row.calls = static_cast<std::int64_t>(kernel.count);
    observed::ObservedCase alone;
    alone.name = fmt::format("{} {}", kernel.name, groups_of(kernel));
    alone.facts = {{"calls", fmt::format("{}", kernel.count)},
                   {"bound bytes", fmt::format("{}", kernel.bytes)}};
    if (const auto times = times_of(kernel)) {
      row.seconds = seconds_of(kernel);
      row.least = times->least;
      row.most = times->most;
      alone.timings.push_back({k_alone, kernel.seconds, {}, {}});
    } else {
      alone.error = kernel.left_out;
      out.warnings.push_back(fmt::format("left out: {}: {}", alone.name, kernel.left_out));
    }
    out.ops.push_back(std::move(row));
    out.cases.push_back(std::move(alone));
  }
  out.warnings.insert(out.warnings.begin(), all.warnings.begin(), all.warnings.end());
  for (const auto& [reason, dispatches] : all.left_out) {
    out.warnings.push_back(
        fmt::format("left out: {}: {}", plural(dispatches, "dispatch", "dispatches"), reason));
  }
  return out;
}

}  // namespace weir::report
