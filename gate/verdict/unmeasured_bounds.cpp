// Absolute limits (`max`, `min`) on metrics that no cell has. Nothing would ever fail them.

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/verdict/judging.hpp"

namespace weir::verdict {
namespace {

// The measured metrics of a gate, and the entries that cover one of them in a cell that they fit.
struct MeasuredMetrics {
  MeasuredMetrics(std::span<const CellVerdict> cells, const LimitTable& limits)
      : covering((limits.entries().size() + 63) / 64) {
    for (const CellVerdict& cell : cells) {
      const EntrySet fitting = limits.fitting(cell.cell);
      for (const Judgement& judgement : cell.metrics()) {
        names.emplace(judgement.metric.name);
        const EntrySet& covering_name = limits.covering(judgement.metric.name);
        for (std::size_t i = 0; i < covering.size(); ++i) {
          covering[i] |= fitting[i] & covering_name[i];
        }
      }
    }
  }

  EntrySet covering;
  std::set<std::string, std::less<>> names;
};

// Returns true if a measured cell fits the entry, and no cell that fits it lacks results.
bool is_known(std::size_t entry, std::span<const CellVerdict> cells, const LimitTable& limits) {
  bool fits_any = false;
  for (const CellVerdict& cell : cells) {
    if (!contains(limits.fitting(cell.cell), entry)) continue;
    if (cell.verdict == Outcome::error || cell.verdict == Outcome::skipped) return false;
    fits_any = true;
  }
  return fits_any;
}

// Returns where a metric could come from.
std::string_view describe_source(const unit::Metric& metric) {
  if (metric.kind == unit::Kind::count)
    return "a probe of the cell's backend counts it, or the engine prints it";
  if (metric.name.find("latency") != std::string::npos || metric.name.starts_with("time_")) {
    return "a cell with server: measures it, or a load tool that is told to write it (vllm bench "
           "serve --percentile-metrics ttft,tpot,itl,e2el)";
  }
  return "docs/reference/metrics.md says what measures it";
}

}  // namespace

std::vector<std::string> unmeasured_bounds(std::span<const CellVerdict> cells,
                                           const LimitTable& limits, const Policy& policy) {
  const MeasuredMetrics measured(cells, limits);
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < limits.entries().size(); ++i) {
    const LimitEntry& entry = limits.entries()[i];
    const bool gates = entry.mode.value_or(Mode::gate) == Mode::gate;
    if (!gates || (!entry.max && !entry.min) || contains(measured.covering, i)) continue;
    if (!is_known(i, cells, limits)) continue;
    for (const std::string& pattern : entry.metrics) {
      const std::optional<unit::Metric> metric = unit::find_metric(pattern);
      if (policy.counts_only && (!metric || metric->kind != unit::Kind::count)) continue;
      const std::string source = metric ? fmt::format(": {}", describe_source(*metric)) : "";
      lines.push_back(
          fmt::format("no cell has {}, which {} limits{}", pattern, entry.source, source));
    }
  }
  return lines;
}

}  // namespace weir::verdict
