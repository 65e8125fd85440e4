#include "gate/run/unfinished.hpp"

#include <set>
#include <tuple>

namespace weir::run {

std::map<std::string, Unfinished> unfinished(const RunFile& run) {
  std::set<std::int64_t> recorded;
  // Instructions are given up by themselves, as the tally has it.
  // Pairs are never given up one by one.
  std::set<std::tuple<std::string, profile::Pass, bool, profile::Side>> given_up;
  for (const profile::RunRecord& record : run.records) {
    recorded.insert(record.order);
    if (!record.error || record.pair) continue;
    given_up.insert({record.cell, record.pass, record.instructions, record.side});
  }
  std::map<std::string, Unfinished> found;
  for (const Step& step : run.header.steps) {
    const std::string cell = run.header.cells.at(step.cell).cell.str();
    Unfinished& one = found[cell];
    const bool counted = step.pass == profile::Pass::counted;
    ++(counted ? one.counted_planned : one.timed_planned);
    if (recorded.contains(step.order) ||
        given_up.contains({cell, step.pass, step.instructions, step.side}))
      continue;
    ++(counted ? one.counted : one.timed);
  }
  std::erase_if(
      found, [](const auto& item) { return item.second.counted == 0 && item.second.timed == 0; });
  return found;
}

}  // namespace weir::run
