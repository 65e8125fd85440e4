// Sums up the CPU's calls that gave devices work or waited for them, by name.
#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/observed/timeline.hpp"

namespace weir::observed {
namespace {

// A call of a thread, and the row that it is in.
struct ThreadCall {
  std::uint32_t thread;
  Interval call;
  CpuCall* row;
};

// Subtracts the time of each nested call from the row of the call around it in the same thread.
// Rows then count each second once.
void subtract_nested(std::vector<ThreadCall>& calls) {
  std::ranges::sort(calls, {}, [](const ThreadCall& call) {
    return std::tuple(call.thread, call.call.begin, -call.call.end);
  });
  std::vector<const ThreadCall*> open_calls;  // the outermost first
  for (const ThreadCall& call : calls) {
    while (!open_calls.empty() && (open_calls.back()->thread != call.thread ||
                                   open_calls.back()->call.end < call.call.end)) {
      open_calls.pop_back();
    }
    if (!open_calls.empty()) open_calls.back()->row->seconds_without_nested -= call.call.length();
    open_calls.push_back(&call);
  }
}

}  // namespace

// Sums up submissions, graphs, waits and transfers of all processes, by name.
std::vector<CpuCall> cpu_calls(const Timeline& timeline) {
  std::map<std::string, CpuCall> rows;
  std::vector<ThreadCall> calls;  // the current process's
  const auto add = [&](std::string name, const char* category, const auto& item) -> CpuCall& {
    const Interval& call = item.call;
    const auto [entry, is_new] = rows.try_emplace(name);
    CpuCall& row = entry->second;
    if (is_new) {
      row.name = std::move(name);
      row.category = category;
      row.min_seconds = call.length();
      row.max_seconds = call.length();
    }
    ++row.calls;
    row.seconds += call.length();
    row.seconds_without_nested += call.length();
    row.min_seconds = std::min(row.min_seconds, call.length());
    row.max_seconds = std::max(row.max_seconds, call.length());
    calls.push_back({item.thread, call, &row});
    return row;
  };
  for (const Process& process : timeline.processes) {
    const std::vector<bool> repeated = repeated_queues(process);
    for (const Submission& submission : process.submissions) {
      if (is_counted_once(repeated, submission.queue)) add("submit", "submit", submission);
    }
    for (const GraphRun& run : process.graph_runs) {
      const std::size_t nodes =
          run.graph < process.graphs.size() ? process.graphs[run.graph].nodes.size() : 0;
      std::string name = "compute a graph";
      if (nodes != 0) name += " of " + text::plural(nodes, "op");
      add(std::move(name), "graph", run);
    }
    for (const Wait& wait : process.waits) {
      if (!is_counted_once(repeated, wait.queue)) continue;
      CpuCall& row = add(wait.kind, "wait", wait);
      if (wait.sync) ++row.syncs;
    }
    for (const Transfer& moved : process.transfers) {
      CpuCall& row =
          add(fmt::format("{} {} \u2192 {}", moved.kind, moved.from, moved.to), "transfer", moved);
      row.bytes += moved.bytes;
    }
    subtract_nested(calls);
    calls.clear();
  }
  std::vector<CpuCall> out;
  for (auto& [name, row] : rows) out.push_back(std::move(row));
  return out;
}

}  // namespace weir::observed
