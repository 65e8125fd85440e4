// Absolute limits (`max`, `min`) on metrics that no cell has. Nothing would ever fail them.

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/verdict/judging.hpp"

namespace weir::verdict {
namespace {

// A cell of a gate: the entries that fit it, and the patterns that some metric of it has.
struct MeasuredCell {
  EntrySet fitting;
  PatternSet matching;
  bool is_unmeasured;

  MeasuredCell(const CellVerdict& cell, const LimitTable& limits)
      : fitting(limits.fitting(cell.cell)),
        matching(limits.no_patterns()),
        is_unmeasured(cell.verdict == Outcome::error || cell.verdict == Outcome::skipped) {
    for (const Judgement& metric : cell.metrics())
      insert_all(matching, limits.matching(metric.metric.name));
  }
};

// Returns true if a limit's cells were all measured, and none of them has a metric that the limit
// names. `entry` is the limit's index.
bool is_unmeasured(std::size_t entry, const std::vector<MeasuredCell>& cells,
                   const LimitTable& limits) {
  bool fits_any = false;
  for (const MeasuredCell& cell : cells) {
    if (!contains(cell.fitting, entry)) continue;
    const bool has_metric =
        std::ranges::any_of(limits.patterns_of(entry),
                            [&](std::size_t pattern) { return contains(cell.matching, pattern); });
    if (cell.is_unmeasured || has_metric) return false;
    fits_any = true;
  }
  return fits_any;
}

// Returns where a metric could come from.
std::string_view describe_source(const unit::Metric& metric) {
  if (metric.name == unit::k_failed_requests)
    return "a cell with server: counts them, or the result of a load tool";
  if (metric.kind == unit::Kind::count)
    return "a probe of the cell's backend counts it, or the engine prints it";
  if (metric.name.find("latency") != std::string::npos || metric.name.starts_with("time_")) {
    return "a cell with server: measures it, or a load tool that is told to write it (vllm bench "
           "serve --percentile-metrics ttft,tpot,itl,e2el)";
  }
  return "docs/reference/metrics.md says what measures it";
}

}  // namespace

// Returns an error for each metric under a max or min that gates, if no cell of that limit reports
// it. If only counts were taken, metrics that are no counts are left out.
std::vector<std::string> unmeasured_bounds(std::span<const CellVerdict> verdicts,
                                           const LimitTable& limits, const Policy& policy) {
  std::vector<MeasuredCell> cells;
  for (const CellVerdict& verdict : verdicts) cells.emplace_back(verdict, limits);
  std::vector<std::string> lines;
  for (std::size_t entry_index = 0; entry_index < limits.entries().size(); ++entry_index) {
    const LimitEntry& entry = limits.entries()[entry_index];
    const bool gates = entry.mode != Mode::report;  // a bound holds under `mode: off`
    if (!gates || (!entry.max && !entry.min) || !is_unmeasured(entry_index, cells, limits))
      continue;
    for (const std::string& pattern : entry.metrics) {
      const std::optional<unit::Metric> metric = unit::find_metric(pattern);
      const bool is_counted =
          metric && metric->kind == unit::Kind::count && !unit::is_load_count(*metric);
      if (policy.counts_only && !is_counted) continue;
      const std::string source = metric ? fmt::format(": {}", describe_source(*metric)) : "";
      lines.push_back(
          fmt::format("no cell has {}, which {} limits{}", pattern, entry.source, source));
    }
  }
  return lines;
}

}  // namespace weir::verdict
