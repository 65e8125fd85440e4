// Counts the work of each token that a timeline separates.
#include <algorithm>
#include <array>
#include <iterator>

#include "gate/observed/pieces.hpp"

namespace weir::observed {
namespace {

constexpr std::array k_bases{"dispatches", "barriers", "copies", "submits", "syncs"};

// Returns the interval of each decoded token, in order; it lasts until the next graph begins, for
// devices work on after a call. Empty if several threads compute graphs. The last token is left
// out, as its end is not known.
std::vector<Interval> find_token_times(const Process& process) {
  std::vector<Interval> times;
  const std::vector<GraphRun>& runs = process.graph_runs;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const GraphRun& run = runs[i];
    if (run.thread != runs.front().thread) return {};
    if (run.node_by_node || graph_phase(process, run.graph) != Phase::decode) continue;
    if (process.graphs[run.graph].rows != 1) continue;
    if (run.from_marks) {
      times.push_back(run.call);
    } else if (i + 1 < runs.size()) {
      times.push_back({run.call.begin, runs[i + 1].call.begin});
    }
  }
  return times;
}

// Counts commands and calls by the token in whose time they were sent.
class TokenCounts {
 public:
  enum CountKind : std::size_t { dispatches, barriers, copies, submits, syncs };  // in k_bases

  explicit TokenCounts(std::vector<Interval> times) : times_(std::move(times)) {
    for (auto& values : values_) values.resize(times_.size());
  }

  void add(CountKind kind, double time) {
    seen_[kind] = true;
    const auto after = std::ranges::upper_bound(times_, time, {}, &Interval::begin);
    if (after == times_.begin() || time >= std::prev(after)->end) return;
    ++values_[kind][static_cast<std::size_t>(after - times_.begin()) - 1];
  }
  void add(const Command& command, double time) {
    if (command.kind == Command::Kind::dispatch) return add(dispatches, time);
    if (command.kind == Command::Kind::barrier) return add(barriers, time);
    add(copies, time);
  }

  // Adds the counts of each token. A kind that no probe saw in the run is left out: the probe may
  // not see such things at all.
  void add_to(std::vector<ObservedCount>& into) const {
    for (std::size_t i = 0; i < k_bases.size(); ++i) {
      if (!seen_[i] || times_.empty()) continue;
      const unit::Metric metric = unit::count_metric(k_bases[i], unit::Scope::per_token);
      auto at = std::ranges::find(into, metric, &ObservedCount::metric);
      if (at == into.end()) at = into.insert(at, {metric, {}});
      at->values.insert(at->values.end(), values_[i].begin(), values_[i].end());
    }
  }

 private:
  std::vector<Interval> times_;
  std::array<bool, k_bases.size()> seen_{};
  std::array<std::vector<std::int64_t>, k_bases.size()> values_;
};

// By index of a queue: true if its work is counted. Marks do not say all that the device's own
// probe sees, so its queues alone count if they have work.
std::vector<bool> find_counted_queues(const Process& process) {
  std::vector<bool> own;
  for (const Queue& queue : process.queues) own.push_back(!queue.from_marks);
  const auto is_own = [&](const auto& item) { return item.queue < own.size() && own[item.queue]; };
  const bool any = std::ranges::any_of(process.submissions, is_own) ||
                   std::ranges::any_of(process.commands, is_own);
  return any ? own : std::vector<bool>(own.size(), true);
}

// Adds the counts of one process's tokens: submits, syncs, and commands by kind. Queues that are
// counted elsewhere are skipped.
void add_counts(const Process& process, std::vector<ObservedCount>& sums) {
  TokenCounts counts(find_token_times(process));
  const std::vector<bool> counted_queues = find_counted_queues(process);
  const auto is_counted = [&](std::uint32_t queue) {
    return queue >= counted_queues.size() || counted_queues[queue];
  };
  for (const Submission& submission : process.submissions) {
    if (!is_counted(submission.queue)) continue;
    counts.add(TokenCounts::submits, submission.call.begin);
    for (const BufferWork& buffer : submission.buffers) {
      for (const Command& command : buffer.commands) counts.add(command, submission.call.begin);
    }
  }
  for (const LoneCommand& lone : process.commands) {
    if (is_counted(lone.queue)) counts.add(lone.command, lone.enqueued);
  }
  for (const Wait& wait : process.waits) {
    if (wait.sync && (!wait.queue || is_counted(*wait.queue)))
      counts.add(TokenCounts::syncs, wait.call.begin);
  }
  counts.add_to(sums);
}

}  // namespace

std::vector<ObservedCount> token_counts(const Timeline& timeline) {
  std::vector<ObservedCount> counts;
  for (const Process& process : timeline.processes) add_counts(process, counts);
  return counts;
}

}  // namespace weir::observed
