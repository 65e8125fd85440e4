// Calls of the CPU that gave devices work or waited for them, added up by name.
#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "gate/observed/timeline.hpp"

namespace weir::observed {
namespace {

// A call of a thread, and the row that it is in.
struct Called {
  std::uint32_t thread;
  Interval call;
  CpuCall* row;
};

// Takes from each row what other calls of the same thread took within its own.
void take_nested(std::vector<Called>& calls) {
  std::ranges::sort(calls, {}, [](const Called& one) {
    return std::tuple(one.thread, one.call.begin, -one.call.end);
  });
  std::vector<const Called*> around;  // the outermost first
  for (const Called& one : calls) {
    while (!around.empty() &&
           (around.back()->thread != one.thread || around.back()->call.end < one.call.end)) {
      around.pop_back();
    }
    if (!around.empty()) around.back()->row->own_seconds -= one.call.length();
    around.push_back(&one);
  }
}

}  // namespace

std::vector<CpuCall> cpu_calls(const Timeline& timeline) {
  std::map<std::string, CpuCall> rows;
  std::vector<Called> calls;  // of one process
  const auto add = [&](std::string name, const char* category, const auto& one) -> CpuCall& {
    const Interval& call = one.call;
    const auto [at, fresh] = rows.try_emplace(name);
    CpuCall& row = at->second;
    if (fresh) row = {std::move(name), category, 0, 0, 0, 0, call.length(), call.length(), 0};
    ++row.calls;
    row.seconds += call.length();
    row.own_seconds += call.length();
    row.least = std::min(row.least, call.length());
    row.most = std::max(row.most, call.length());
    calls.push_back({one.thread, call, &row});
    return row;
  };
  for (const Process& process : timeline.processes) {
    const std::vector<bool> again = repeated_queues(process);
    for (const Submission& one : process.submissions) {
      if (told_once(again, one.queue)) add("submit", "submit", one);
    }
    for (const GraphRun& run : process.graph_runs) {
      const std::size_t nodes =
          run.graph < process.graphs.size() ? process.graphs[run.graph].nodes.size() : 0;
      std::string name = "compute a graph";
      if (nodes != 0) name += fmt::format(" of {} op{}", nodes, nodes == 1 ? "" : "s");
      add(std::move(name), "graph", run);
    }
    for (const Wait& wait : process.waits) {
      if (told_once(again, wait.queue)) add(wait.kind, "wait", wait).syncs += wait.sync ? 1 : 0;
    }
    for (const Transfer& moved : process.transfers) {
      add(fmt::format("{} {} \u2192 {}", moved.kind, moved.from, moved.to), "transfer", moved)
          .bytes += moved.bytes;
    }
    take_nested(calls);
    calls.clear();
  }
  std::vector<CpuCall> out;
  for (auto& [name, row] : rows) out.push_back(std::move(row));
  return out;
}

}  // namespace weir::observed
