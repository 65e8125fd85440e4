// Counts of each token that a timeline tells apart.
#include <algorithm>
#include <array>
#include <iterator>

#include "gate/observed/pieces.hpp"

namespace weir::observed {
namespace {

constexpr std::array k_bases{"dispatches", "barriers", "copies", "submits", "syncs"};

// The time of each token, in order: until the next graph begins, as the device's work is waited for
// after the call that asks for it. The last one's end is not known. None where several threads
// compute graphs: what is then done in a token's time may be of another one.
std::vector<Interval> times_of_tokens(const Process& process) {
  std::vector<Interval> times;
  const std::vector<GraphRun>& runs = process.graph_runs;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const GraphRun& run = runs[i];
    if (run.thread != runs.front().thread) return {};
    if (run.by_node || phase_of(process, run.graph) != Phase::decode) continue;
    if (process.graphs[run.graph].rows != 1) continue;
    if (run.marked) {
      times.push_back(run.call);
    } else if (i + 1 < runs.size()) {
      times.push_back({run.call.begin, runs[i + 1].call.begin});
    }
  }
  return times;
}

class TokenCounts {
 public:
  enum Counted : std::size_t { dispatches, barriers, copies, submits, syncs };  // in k_bases

  explicit TokenCounts(std::vector<Interval> times) : times_(std::move(times)) {
    for (auto& values : values_) values.resize(times_.size());
  }

  void add(Counted what, double time) {
    seen_[what] = true;
    const auto behind = std::ranges::upper_bound(times_, time, {}, &Interval::begin);
    if (behind == times_.begin() || time >= std::prev(behind)->end) return;
    ++values_[what][static_cast<std::size_t>(behind - times_.begin()) - 1];
  }
  void add(const Command& command, double time) {
    add(command.kind == Command::Kind::dispatch  ? dispatches
        : command.kind == Command::Kind::barrier ? barriers
                                                 : copies,
        time);
  }

  // Absent what no probe saw anywhere in the run: it may not see such things at all.
  void put(std::vector<ObservedCount>& into) const {
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

// By index of a queue: marks do not say all that the device's own probe sees.
std::vector<bool> counted_queues(const Process& process) {
  std::vector<bool> own;
  for (const Queue& queue : process.queues) own.push_back(!queue.marked);
  const auto is_own = [&](const auto& one) { return one.queue < own.size() && own[one.queue]; };
  const bool any = std::ranges::any_of(process.submissions, is_own) ||
                   std::ranges::any_of(process.commands, is_own);
  return any ? own : std::vector<bool>(own.size(), true);
}

void add_counts(const Process& process, std::vector<ObservedCount>& into) {
  TokenCounts counts(times_of_tokens(process));
  const std::vector<bool> counted = counted_queues(process);
  const auto takes = [&](std::uint32_t queue) { return queue >= counted.size() || counted[queue]; };
  for (const Submission& one : process.submissions) {
    if (!takes(one.queue)) continue;
    counts.add(TokenCounts::submits, one.call.begin);
    for (const BufferWork& buffer : one.buffers) {
      for (const Command& command : buffer.commands) counts.add(command, one.call.begin);
    }
  }
  for (const LoneCommand& one : process.commands) {
    if (takes(one.queue)) counts.add(one.command, one.enqueued);
  }
  for (const Wait& wait : process.waits) {
    if (wait.sync && (!wait.queue || takes(*wait.queue)))
      counts.add(TokenCounts::syncs, wait.call.begin);
  }
  counts.put(into);
}

}  // namespace

std::vector<ObservedCount> token_counts(const Timeline& timeline) {
  std::vector<ObservedCount> counts;
  for (const Process& process : timeline.processes) add_counts(process, counts);
  return counts;
}

}  // namespace weir::observed
