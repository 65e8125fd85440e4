#include "gate/observed/timeline_observed.hpp"

#include <set>

#include "gate/base/text.hpp"

namespace weir::observed {
namespace {

ObservedOp row_of(const WorkTime& work) {
  ObservedOp row;
  row.kernel = work.name;
  if (work.copy) row.category = "copy";
  row.calls = static_cast<std::int64_t>(work.calls);
  if (work.timed != 0 && work.timed == work.calls) {
    row.seconds = work.seconds;
    row.least = work.least;
    row.most = work.most;
  }
  return row;
}

}  // namespace

Observed observed_of(const Timeline& timeline) {
  Observed observed;
  observed.format = "weir-probes";
  std::set<std::string> names, devices;
  for (const Process& process : timeline.processes) {
    names.insert(process.name);
    for (const Queue& queue : process.queues) {
      if (!queue.device.empty()) devices.insert(queue.device);
    }
  }
  const auto joined = [](const std::set<std::string>& all) {
    const std::vector<std::string> list(all.begin(), all.end());
    return text::join(list);
  };
  if (!names.empty()) observed.context.engine = joined(names);
  if (!devices.empty()) observed.context.device = joined(devices);
  for (const WorkTime& work : work_times(timeline, By::kernel)) {
    observed.ops.push_back(row_of(work));
  }
  observed.warnings = timeline.warnings;
  return observed;
}

}  // namespace weir::observed
