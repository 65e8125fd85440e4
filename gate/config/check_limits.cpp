#include "gate/config/check_limits.hpp"

#include <algorithm>
#include <set>

#include "gate/base/text.hpp"

namespace weir::config {
namespace {

bool has_kind(const verdict::LimitEntry& entry) {
  return entry.exact || entry.max_drop || entry.max_increase || entry.max_decrease || entry.max ||
         entry.min;
}

bool has_amount(const verdict::LimitEntry& entry) {
  return entry.max_drop || entry.max_increase || entry.max_decrease || entry.max || entry.min;
}

// Every metric that a cell of the engine can have and that the entry may name.
std::vector<unit::Metric> metrics_of(const EngineSettings& engine,
                                     const verdict::LimitEntry& entry) {
  std::vector<unit::Metric> metrics;
  for (const std::string& name : unit::metric_names()) {
    if (const auto metric = unit::find_metric(name)) metrics.push_back(*metric);
  }
  for (const ValueRule& rule : engine.generic.values) {
    if (rule.custom) metrics.push_back(*rule.custom);
  }
  for (const std::string& pattern : entry.metrics) {
    const auto metric = unit::find_metric(pattern);
    if (metric && metric->scope == unit::Scope::at_length) metrics.push_back(*metric);
  }
  return metrics;
}

std::optional<std::string> complaint(const verdict::LimitEntry& entry,
                                     std::span<const Cell> cells) {
  if (entry.metrics.empty() && has_kind(entry)) {
    return "a limit needs \"metrics\": which ones shall it hold? (without it only mode may stand "
           "here, for all)";
  }
  bool fits_a_cell = false;
  bool covers = false;
  std::set<const EngineSettings*> seen;  // metrics depend on the engine alone
  for (const Cell& cell : cells) {
    if (!entry.match.fits(cell.key)) continue;
    fits_a_cell = true;
    if (!seen.insert(cell.engine).second) continue;
    for (const unit::Metric& metric : metrics_of(*cell.engine, entry)) {
      if (!entry.covers(cell.key, metric.name)) continue;
      covers = true;
      if (auto why = verdict::nonsense(entry, metric)) return why;
    }
    for (const char* special : {"kernels", "placement"}) {
      if (!entry.covers(cell.key, special)) continue;
      covers = true;
      // A glob over metric names does not mean these two.
      const bool named =
          std::find(entry.metrics.begin(), entry.metrics.end(), special) != entry.metrics.end();
      if (named && has_amount(entry)) {
        return fmt::format("\"{}\" is no number: it takes exact and mode alone", special);
      }
    }
  }
  if (!fits_a_cell) return "this limit matches no cell of the matrix";
  if (!covers) return "no engine that this limit matches has such a metric";
  return std::nullopt;
}

}  // namespace

Result<bool> check_limits(const Settings& settings, std::span<const Cell> cells) {
  std::vector<std::string> complaints;
  for (const verdict::LimitEntry& entry : settings.limits) {
    if (const auto why = complaint(entry, cells)) {
      complaints.push_back(fmt::format("{}: {}", entry.source, *why));
    }
  }
  if (!complaints.empty()) return fail(Code::config, "{}", text::join(complaints, "\n"));
  return true;
}

}  // namespace weir::config
