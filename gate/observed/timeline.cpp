#include "gate/observed/timeline.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

namespace weir::observed {
namespace {

using TimelineRows = std::map<std::pair<bool, std::string>, WorkTime>;

const std::string& name_of(const Command& command, By by) {
  return by == By::op && !command.op.empty() ? command.op : command.name;
}

void count(TimelineRows& rows, bool copy, const std::string& name, std::uint64_t calls,
           std::uint64_t bytes, const std::optional<Interval>& time) {
  WorkTime& row = rows[{copy, name}];
  row.name = name;
  row.copy = copy;
  row.calls += calls;
  row.bytes += bytes;
  if (!time) return;
  const double each = time->length() / static_cast<double>(calls);
  row.least = row.timed == 0 ? each : std::min(row.least, each);
  row.most = row.timed == 0 ? each : std::max(row.most, each);
  row.timed += calls;
  row.seconds += time->length();
}

// Work of one group: alike, or several that may overlap.
void count_group(TimelineRows& rows, By by, const std::vector<const Command*>& members,
                 const std::optional<Interval>& time) {
  std::map<std::string, std::uint64_t> names;
  bool copies = true;
  std::uint64_t bytes = 0;
  for (const Command* member : members) {
    ++names[name_of(*member, by)];
    copies = copies && member->kind == Command::Kind::copy;
    bytes += member->bytes;
  }
  if (names.size() == 1) {
    count(rows, copies, names.begin()->first, members.size(), bytes, time);
    return;
  }
  std::string joined;
  for (const auto& [name, times] : names) {
    joined += joined.empty() ? "" : ", ";
    joined += times == 1 ? name : fmt::format("{} x {}", name, times);
  }
  count(rows, copies, joined, 1, bytes, time);
}

void count_buffer(TimelineRows& rows, By by, const BufferWork& buffer) {
  std::map<std::uint32_t, std::vector<const Command*>> groups;
  for (const Command& command : buffer.commands) {
    if (command.kind == Command::Kind::barrier) continue;
    if (command.group && *command.group < buffer.groups.size()) {
      groups[*command.group].push_back(&command);
    } else {
      count_group(rows, by, {&command}, std::nullopt);
    }
  }
  for (const auto& [index, members] : groups) count_group(rows, by, members, buffer.groups[index]);
}

bool is_again(const std::vector<bool>& again, std::uint32_t queue) {
  return queue < again.size() && again[queue];
}

struct Seen {
  bool work = false, timed = false;
};

// What the queues of one kind did.
Seen seen_on(const Process& process, bool marked) {
  Seen seen;
  const auto see = [&](std::uint32_t queue, bool work, bool timed) {
    if (queue >= process.queues.size() || process.queues[queue].marked != marked) return;
    seen.work = seen.work || work;
    seen.timed = seen.timed || timed;
  };
  for (const Submission& submission : process.submissions) {
    for (const BufferWork& buffer : submission.buffers) {
      see(submission.queue, !buffer.commands.empty(), buffer.device.has_value());
    }
  }
  for (const LoneCommand& lone : process.commands) see(lone.queue, true, lone.device.has_value());
  return seen;
}

}  // namespace

std::vector<bool> repeated_queues(const Process& process) {
  const Seen own = seen_on(process, false), marks = seen_on(process, true);
  const bool both = own.work && marks.work;
  const bool marks_win = marks.timed && !own.timed;
  std::vector<bool> again;
  for (const Queue& queue : process.queues) again.push_back(both && queue.marked != marks_win);
  return again;
}

std::vector<WorkTime> work_times(const Timeline& timeline, By by) {
  TimelineRows rows;
  for (const Process& process : timeline.processes) {
    const std::vector<bool> again = repeated_queues(process);
    for (const Submission& submission : process.submissions) {
      if (is_again(again, submission.queue)) continue;
      for (const BufferWork& buffer : submission.buffers) count_buffer(rows, by, buffer);
    }
    for (const LoneCommand& lone : process.commands) {
      if (!is_again(again, lone.queue)) count_group(rows, by, {&lone.command}, lone.device);
    }
  }
  std::vector<WorkTime> result;
  for (auto& [key, row] : rows) result.push_back(std::move(row));
  std::ranges::stable_sort(result, [](const WorkTime& a, const WorkTime& b) {
    return a.seconds != b.seconds ? a.seconds > b.seconds : a.calls > b.calls;
  });
  return result;
}

std::optional<double> Coverage::gap() const {
  if (timed == 0 || whole <= 0) return std::nullopt;
  return 1 - parts / whole;
}

static double last_call(const Process& process) {
  double end = 0;
  const auto take = [&](const auto& calls) {
    for (const auto& one : calls) end = std::max(end, one.call.end);
  };
  take(process.submissions);
  take(process.waits);
  take(process.graph_runs);
  take(process.transfers);
  for (const LoneCommand& one : process.commands) end = std::max(end, one.enqueued);
  return end;
}

std::optional<Busy> busy(const Timeline& timeline) {
  struct Work {
    double seconds = 0, first = 0;
    bool any = false;
  };
  std::optional<Busy> most;
  for (const Process& process : timeline.processes) {
    std::map<std::uint32_t, Work> queues;
    const auto add = [&](std::uint32_t queue, double asked, const std::optional<Interval>& device) {
      if (!device) return;
      Work& work = queues[queue];
      work.first = work.any ? std::min(work.first, asked) : asked;
      work.any = true;
      work.seconds += device->length();
    };
    for (const Submission& submission : process.submissions) {
      for (const BufferWork& buffer : submission.buffers) {
        add(submission.queue, submission.call.begin, buffer.device);
      }
    }
    for (const LoneCommand& one : process.commands) add(one.queue, one.enqueued, one.device);
    const double end = last_call(process);
    for (const auto& [queue, work] : queues) {
      if (work.seconds <= 0 || end <= work.first) continue;
      if (!most || work.seconds > most->device) most = Busy{work.seconds, end - work.first};
    }
  }
  return most;
}

Coverage coverage(const Timeline& timeline) {
  Coverage result;
  for (const Process& process : timeline.processes) {
    const std::vector<bool> again = repeated_queues(process);
    for (const Submission& submission : process.submissions) {
      if (is_again(again, submission.queue)) continue;
      for (const BufferWork& buffer : submission.buffers) {
        ++result.buffers;
        // What holds no work has nothing to explain.
        if (!buffer.device || buffer.groups.empty()) continue;
        ++result.timed;
        result.whole += buffer.device->length();
        for (const Interval& group : buffer.groups) result.parts += group.length();
      }
    }
  }
  return result;
}

static ObservedOp row_of(const WorkTime& work) {
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
  auto& context = observed.context;
  if (!names.empty()) context.engine = fmt::format("{}", fmt::join(names, ", "));
  if (!devices.empty()) context.device = fmt::format("{}", fmt::join(devices, ", "));
  for (const WorkTime& work : work_times(timeline, By::kernel)) {
    observed.ops.push_back(row_of(work));
  }
  observed.warnings = timeline.warnings;
  return observed;
}

}  // namespace weir::observed
