#include "gate/verdict/confirm.hpp"

#include <algorithm>

#include "gate/base/text.hpp"
#include "gate/verdict/judging.hpp"

namespace weir::verdict {
namespace {

bool is_suspected(const MetricVerdict& metric) {
  return metric.suspected && metric.verdict == Outcome::fail && !metric.pairs;
}

// A side that breaks, or a cell that the budget did not reach, answers nothing.
bool asked(const MetricVerdict& metric, const CellVerdict& beside) {
  if (metric.verdict == Outcome::fail && metric.pairs) return true;
  return beside.reason.empty() && metric.pairs.value_or(0) > 0 &&
         (metric.verdict == Outcome::pass || metric.verdict == Outcome::improved ||
          metric.verdict == Outcome::inconclusive);
}

// The numbers are those of the pairs; what stored samples said stays as words.
MetricVerdict told_by_pairs(const MetricVerdict& stored, MetricVerdict paired,
                            const std::string& base, Confirmed& told) {
  const std::string stored_words = "against stored samples it was " + stored.reason;
  paired.warnings.insert(paired.warnings.begin(), stored.warnings.begin(), stored.warnings.end());
  switch (paired.verdict) {
    case Outcome::fail:
      ++told.confirmed;
      paired.reason = fmt::format("{}; beside {}; {}", paired.reason, base, stored_words);
      break;
    case Outcome::inconclusive:
      ++told.open;
      paired.reason = fmt::format("suspected, not confirmed: {}; beside {}; {}", paired.reason,
                                  base, stored_words);
      break;
    default:
      ++told.cleared;
      // Better than the base is not better than what is stored.
      paired.verdict = Outcome::pass;
      paired.reason = fmt::format("not slower than {}: {}; {}", base, paired.reason, stored_words);
      break;
  }
  return paired;
}

void confirm_cell(CellVerdict& cell, const CellVerdict& beside, const std::string& base,
                  Confirmed& told) {
  for (MetricVerdict& metric : cell.metrics) {
    const bool suspect = is_suspected(metric);
    const auto found = std::find_if(
        beside.metrics.begin(), beside.metrics.end(),
        [&](const MetricVerdict& other) { return other.metric.name == metric.metric.name; });
    if (found == beside.metrics.end() || !asked(*found, beside)) {
      if (!suspect) continue;
      const std::string why = !beside.reason.empty()          ? beside.reason
                              : found == beside.metrics.end() ? "the base does not report it"
                                                              : found->reason;
      told.not_asked.push_back(fmt::format("{}, {}: {}", cell.cell.str(),
                                           unit::label(metric.metric), text::first_line(why)));
      continue;
    }
    if (suspect) {
      metric = told_by_pairs(metric, *found, base, told);
    } else if (metric.metric.kind != unit::Kind::count && found->verdict == Outcome::fail) {
      metric = *found;
      metric.reason = fmt::format("{}; beside {}", metric.reason, base);
    }
  }
  cell.warnings.insert(cell.warnings.end(), beside.warnings.begin(), beside.warnings.end());
  fold(cell);
}

}  // namespace

std::vector<profile::CellKey> suspected(std::span<const CellVerdict> cells) {
  std::vector<profile::CellKey> keys;
  for (const CellVerdict& cell : cells) {
    if (std::any_of(cell.metrics.begin(), cell.metrics.end(), is_suspected)) {
      keys.push_back(cell.cell);
    }
  }
  return keys;
}

Confirmed confirm(std::vector<CellVerdict>& cells, std::span<const CellVerdict> beside,
                  const std::string& base) {
  Confirmed told;
  for (CellVerdict& cell : cells) {
    const auto found = std::find_if(beside.begin(), beside.end(), [&](const CellVerdict& other) {
      return other.cell.str() == cell.cell.str();
    });
    if (found != beside.end()) confirm_cell(cell, *found, base, told);
  }
  return told;
}

}  // namespace weir::verdict
