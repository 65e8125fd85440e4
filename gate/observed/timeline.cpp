// Sums up the work of a timeline, and checks how well its times agree.
#include "gate/observed/timeline.hpp"

#include <functional>
#include <limits>

#include "gate/observed/pieces.hpp"
#include "gate/stats/quantile.hpp"

namespace weir::observed {
namespace {

struct QueueActivity {
  bool work = false, timed = false;
};

// Returns the activity of marked queues, or of the others.
QueueActivity find_activity(const Process& process, bool marked) {
  QueueActivity activity;
  const auto add = [&](std::uint32_t queue, bool work, bool timed) {
    if (queue >= process.queues.size() || process.queues[queue].from_marks != marked) return;
    activity.work = activity.work || work;
    activity.timed = activity.timed || timed;
  };
  for (const Submission& submission : process.submissions) {
    for (const BufferWork& buffer : submission.buffers) {
      add(submission.queue, !buffer.commands.empty(), buffer.device.has_value());
    }
  }
  for (const LoneCommand& lone : process.commands)
    add(lone.queue, /*work=*/true, lone.device.has_value());
  return activity;
}

}  // namespace

std::vector<bool> repeated_queues(const Process& process) {
  const QueueActivity own = find_activity(process, /*marked=*/false);
  const QueueActivity marks = find_activity(process, /*marked=*/true);
  const bool both = own.work && marks.work;
  const bool marks_win = marks.timed && !own.timed;
  std::vector<bool> repeated;
  for (const Queue& queue : process.queues)
    repeated.push_back(both && queue.from_marks != marks_win);
  return repeated;
}

bool is_counted_once(const std::vector<bool>& repeated, std::optional<std::uint32_t> queue) {
  return !queue || *queue >= repeated.size() || !repeated[*queue];
}

// Adds up the work of devices by name, most time first.
std::vector<WorkTime> work_times(const Timeline& timeline, By by) {
  std::map<std::pair<bool, std::string>, WorkTime> rows;
  for (const Process& process : timeline.processes) {
    visit_counted_pieces(process, [&](const Piece& piece) {
      const NamedWork named = work_name(piece, by);
      const bool copy = has_only_copies(piece);
      WorkTime& row = rows[{copy, named.name}];
      row.name = named.name;
      row.copy = copy;
      add_piece(row, piece, named.calls);
    });
  }
  std::vector<WorkTime> result;
  for (auto& [key, row] : rows) result.push_back(std::move(row));
  std::ranges::stable_sort(result, std::greater{}, [](const WorkTime& work) {
    return std::pair(work.seconds, work.calls);
  });
  return result;
}

std::optional<double> Coverage::gap() const {
  if (timed == 0 || buffer_seconds <= 0) return std::nullopt;
  return 1 - part_seconds / buffer_seconds;
}

// Returns the end of the last call that the process made; 0 without any.
static double last_call_end(const Process& process) {
  double end = 0;
  const auto take = [&](const auto& calls) {
    for (const auto& item : calls) end = std::max(end, item.call.end);
  };
  take(process.submissions);
  take(process.waits);
  take(process.graph_runs);
  take(process.transfers);
  for (const LoneCommand& lone : process.commands) end = std::max(end, lone.enqueued);
  return end;
}

// Returns the queue with the most work, compared with the time from its first call to the last call
// of all.
std::optional<Busy> busy(const Timeline& timeline) {
  struct Work {
    double seconds = 0, first = std::numeric_limits<double>::infinity();
  };
  std::optional<Busy> busiest;
  for (const Process& process : timeline.processes) {
    std::map<std::uint32_t, Work> queues;
    const auto add = [&](std::uint32_t queue, double sent, const std::optional<Interval>& device) {
      if (!device) return;
      Work& work = queues[queue];
      work.first = std::min(work.first, sent);
      work.seconds += device->length();
    };
    for (const Submission& submission : process.submissions) {
      for (const BufferWork& buffer : submission.buffers) {
        add(submission.queue, submission.call.begin, buffer.device);
      }
    }
    for (const LoneCommand& lone : process.commands) add(lone.queue, lone.enqueued, lone.device);
    const double end = last_call_end(process);
    for (const auto& [queue, work] : queues) {
      if (work.seconds <= 0 || end <= work.first) continue;
      if (!busiest || work.seconds > busiest->device)
        busiest = Busy{work.seconds, end - work.first};
    }
  }
  return busiest;
}

std::optional<RecordingCost> recording_cost(const Timeline& timeline) {
  RecordingCost out{timeline.recording, 0};
  for (const Process& process : timeline.processes)
    out.wall = std::max(out.wall, last_call_end(process));
  if (out.seconds <= 0 || out.wall <= 0) return std::nullopt;
  return out;
}

// Compares the times of command buffers with the sums of their groups.
Coverage coverage(const Timeline& timeline) {
  Coverage result;
  for (const Process& process : timeline.processes) {
    const std::vector<bool> repeated = repeated_queues(process);
    for (const Submission& submission : process.submissions) {
      if (!is_counted_once(repeated, submission.queue)) continue;
      for (const BufferWork& buffer : submission.buffers) {
        ++result.buffers;
        // A buffer without work has nothing to explain.
        if (!buffer.device || buffer.groups.empty()) continue;
        ++result.timed;
        result.buffer_seconds += buffer.device->length();
        for (const Interval& group : buffer.groups) result.part_seconds += group.length();
      }
    }
  }
  return result;
}

std::optional<double> NodeByNodeTiming::cost() const {
  constexpr std::uint64_t k_min_graphs = 5;  // graphs of either sort: fewer are noise
  if (!whole_graph_seconds || *whole_graph_seconds <= 0 || graphs < k_min_graphs ||
      whole_graphs < k_min_graphs)
    return std::nullopt;
  return each / *whole_graph_seconds - 1;
}

namespace {

// Times of graphs of one kind, and the shares of ops and transfers in them.
struct GraphLengths {
  std::vector<double> each, ops, transfers;  // graphs that ran node by node
  std::vector<double> whole_graphs;
};

// Collects the times of a process's graphs, by graph.
std::map<std::uint32_t, GraphLengths> collect_lengths(const Process& process) {
  std::vector<double> ops(process.graph_runs.size()), transfers(process.graph_runs.size());
  visit_pieces(process, [&](const Piece& piece) {
    if (!piece.time) return;
    const auto run = piece.scope == nullptr
                         ? piece.commands.front()->run
                         : find_run_at(process, piece.scope->thread, piece.scope->call.begin);
    if (run && *run < ops.size()) ops[*run] += piece.time->length();
  });
  for (const Transfer& moved : process.transfers) {
    const auto run = find_run_at(process, moved.thread, moved.call.begin);
    if (run) transfers[*run] += moved.call.length();
  }
  std::map<std::uint32_t, GraphLengths> out;
  for (std::size_t i = 0; i < process.graph_runs.size(); ++i) {
    const GraphRun& run = process.graph_runs[i];
    const double length = run.call.length();
    GraphLengths& kind = out[run.graph];
    if (run.node_by_node) {
      kind.each.push_back(length);
    } else {
      kind.whole_graphs.push_back(length);
    }
    if (!run.node_by_node || length <= 0) continue;
    kind.ops.push_back(ops[i] / length);
    kind.transfers.push_back(transfers[i] / length);
  }
  return out;
}

}  // namespace

// Compares graphs that ran node by node with those that were left whole. Medians are for the most
// frequent kind.
std::optional<NodeByNodeTiming> node_by_node(const Timeline& timeline) {
  NodeByNodeTiming out;
  std::size_t max_ops = 0;
  for (const Process& process : timeline.processes) {
    if (!ran_by_node(process)) continue;
    for (const auto& [graph, kind] : collect_lengths(process)) {
      out.graphs += kind.each.size();
      out.whole_graphs += kind.whole_graphs.size();
      if (kind.ops.size() <= max_ops) continue;
      max_ops = kind.ops.size();
      out.rows = graph < process.graphs.size() ? process.graphs[graph].rows : 0;
      out.each = stats::median(kind.each).value_or(0);
      out.ops = stats::median(kind.ops).value_or(0);
      out.transfers = stats::median(kind.transfers).value_or(0);
      out.whole_graph_seconds = stats::median(kind.whole_graphs);
    }
  }
  if (max_ops == 0) return std::nullopt;
  return out;
}

}  // namespace weir::observed
