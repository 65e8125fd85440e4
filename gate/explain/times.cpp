// Rates, times and memory that differ beyond their noise, where nothing before explains them.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/explain/patterns.hpp"

namespace weir::explain {
namespace {

// "decode tok/s 28.6 → 25.1 (−12.2 %)"
std::string time_words(const Board& board, const std::string& name, double ratio) {
  const auto metric = metric_of(board.evidence, name);
  const double before = board.evidence.before.metrics.at(name).value();
  const double after = board.evidence.after.metrics.at(name).value();
  const double percent = 100 * (ratio - 1);
  return fmt::format("{} {} → {} ({}{:.1f} %)", metric ? unit::label(*metric) : safe(name),
                     metric ? unit::show(*metric, before) : fmt::format("{:g}", before),
                     metric ? unit::show(*metric, after) : fmt::format("{:g}", after),
                     percent < 0 ? "\u2212" : "+", std::fabs(percent));
}

// Some count is known on both sides: only then "unchanged" says anything.
bool counts_known(const Evidence& evidence) {
  return std::any_of(evidence.before.metrics.begin(), evidence.before.metrics.end(),
                     [&](const auto& one) {
                       const auto metric = metric_of(evidence, one.first);
                       return metric && metric->kind == unit::Kind::count && one.second.exact &&
                              evidence.after.metrics.contains(one.first);
                     });
}

bool work_changed(const Differences& found) {
  return !found.counts.empty() || !found.context.empty() || !found.unsteady.empty() ||
         !found.kernels.empty() || !found.cpu_ops.empty() || !found.graph.empty();
}

}  // namespace

void find_times(Board& board) {
  if (board.found.times.empty()) return;
  // What is done once explains no rate; anything else that was found may.
  const bool explained =
      std::any_of(board.entries.begin(), board.entries.end(), [](const Board::Entry& entry) {
        return entry.finding.kind != to_string(Kind::fixed_cost_changed);
      });
  if (explained || work_changed(board.found)) return;
  std::vector<std::pair<std::string, double>> times(board.found.times.begin(),
                                                    board.found.times.end());
  std::stable_sort(times.begin(), times.end(), [](const auto& a, const auto& b) {
    return std::fabs(std::log(a.second)) > std::fabs(std::log(b.second));
  });
  const bool counted = counts_known(board.evidence);
  Finding finding;
  finding.kind = to_string(Kind::time_changed);
  finding.metric = times.front().first;
  finding.headline = time_words(board, times.front().first, times.front().second) +
                     (counted ? ", counts unchanged." : ".");
  for (std::size_t i = 1; i < times.size() && i < 6; ++i) {
    finding.lines.push_back(time_words(board, times[i].first, times[i].second));
  }
  if (counted) {
    finding.cause =
        "the same work takes another time: other code in the kernels, another compiler or driver, "
        "memory, or the machine.";
    finding.look_at = "times by op: weir profile CELL on both sides.";
  }
  board.add(std::move(finding), 1);
}

}  // namespace weir::explain
