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

// Returns whether queues show work and times: those of an engine's marks, or those that a probe
// saw.
QueueActivity find_activity(const Process& process, bool from_marks) {
  QueueActivity activity;
  const auto add = [&](std::uint32_t queue, bool has_work, bool is_timed) {
    if (queue >= process.queues.size() || process.queues[queue].from_marks != from_marks) return;
    activity.work = activity.work || has_work;
    activity.timed = activity.timed || is_timed;
  };
  for (const Submission& submission : process.submissions) {
    for (const BufferWork& buffer : submission.buffers) {
      add(submission.queue, !buffer.commands.empty(), buffer.device.has_value());
    }
  }
  for (const LoneCommand& lone : process.commands)
    add(lone.queue, /*has_work=*/true, lone.device.has_value());
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

// Adds up the work of devices by name of kernel or op, most time first. Copies have rows of their
// own.
std::vector<WorkTime> work_times(const Timeline& timeline, By by) {
  std::map<std::pair<bool, std::string>, WorkTime> rows;
  for (const Process& process : timeline.processes) {
    visit_counted_pieces(process, [&](const Piece& piece) {
      const NamedWork named_work = work_name(piece, by);
      const bool is_copy = has_only_copies(piece);
      WorkTime& row = rows[{is_copy, named_work.name}];
      row.name = named_work.name;
      row.copy = is_copy;
      add_piece(row, piece, named_work.calls);
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
  const auto include = [&](const auto& calls) {
    for (const auto& item : calls) end = std::max(end, item.call.end);
  };
  include(process.submissions);
  include(process.waits);
  include(process.graph_runs);
  include(process.transfers);
  for (const LoneCommand& lone : process.commands) end = std::max(end, lone.enqueued);
  return end;
}

// Returns the device's time of the queue with the most work, and the time from its first call to
// the process's last. Nothing if no work was timed.
std::optional<Busy> busy(const Timeline& timeline) {
  struct Work {
    double seconds = 0, first = std::numeric_limits<double>::infinity();
  };
  std::optional<Busy> busiest;
  for (const Process& process : timeline.processes) {
    std::map<std::uint32_t, Work> queues;
    const auto add = [&](std::uint32_t queue, double sent_at,
                         const std::optional<Interval>& device) {
      if (!device) return;
      Work& work = queues[queue];
      work.first = std::min(work.first, sent_at);
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

// Compares the times of command buffers with the sums of the timed groups in them, in seconds.
// Counts the buffers, and those with times.
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

// Collects, by graph, the seconds of each run, and for runs node by node the shares of ops and
// transfers in them.
std::map<std::uint32_t, GraphLengths> collect_lengths(const Process& process) {
  std::vector<double> op_seconds(process.graph_runs.size()),
      transfer_seconds(process.graph_runs.size());
  visit_pieces(process, [&](const Piece& piece) {
    if (!piece.time) return;
    const auto run = piece.scope == nullptr
                         ? piece.commands.front()->run
                         : find_run_at(process, piece.scope->thread, piece.scope->call.begin);
    if (run && *run < op_seconds.size()) op_seconds[*run] += piece.time->length();
  });
  for (const Transfer& transfer : process.transfers) {
    const auto run = find_run_at(process, transfer.thread, transfer.call.begin);
    if (run) transfer_seconds[*run] += transfer.call.length();
  }
  std::map<std::uint32_t, GraphLengths> lengths_of_graph;
  for (std::size_t i = 0; i < process.graph_runs.size(); ++i) {
    const GraphRun& run = process.graph_runs[i];
    const double length = run.call.length();
    GraphLengths& lengths = lengths_of_graph[run.graph];
    if (run.node_by_node) {
      lengths.each.push_back(length);
    } else {
      lengths.whole_graphs.push_back(length);
    }
    if (!run.node_by_node || length <= 0) continue;
    lengths.ops.push_back(op_seconds[i] / length);
    lengths.transfers.push_back(transfer_seconds[i] / length);
  }
  return lengths_of_graph;
}

}  // namespace

// Compares graphs that were run node by node, so that each node was timed, with runs of whole
// graphs. Medians are those of the most frequent graph; nothing without any.
std::optional<NodeByNodeTiming> node_by_node(const Timeline& timeline) {
  NodeByNodeTiming timing;
  std::size_t max_ops = 0;
  for (const Process& process : timeline.processes) {
    if (!ran_by_node(process)) continue;
    for (const auto& [graph, lengths] : collect_lengths(process)) {
      timing.graphs += lengths.each.size();
      timing.whole_graphs += lengths.whole_graphs.size();
      if (lengths.ops.size() <= max_ops) continue;
      max_ops = lengths.ops.size();
      timing.rows = graph < process.graphs.size() ? process.graphs[graph].rows : 0;
      timing.each = stats::median(lengths.each).value_or(0);
      timing.ops = stats::median(lengths.ops).value_or(0);
      timing.transfers = stats::median(lengths.transfers).value_or(0);
      timing.whole_graph_seconds = stats::median(lengths.whole_graphs);
    }
  }
  if (max_ops == 0) return std::nullopt;
  return timing;
}

}  // namespace weir::observed
