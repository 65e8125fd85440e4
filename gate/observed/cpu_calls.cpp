// Calls of the CPU that gave devices work or waited for them, added up by name.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "gate/observed/timeline.hpp"

namespace weir::observed {

std::vector<CpuCall> cpu_calls(const Timeline& timeline) {
  std::map<std::string, CpuCall> rows;
  const auto add = [&](std::string name, const char* category, const Interval& call) -> CpuCall& {
    const auto [at, fresh] = rows.try_emplace(name);
    CpuCall& row = at->second;
    if (fresh) row = {std::move(name), category, 0, 0, 0, 0, call.length(), call.length()};
    ++row.calls;
    row.seconds += call.length();
    row.least = std::min(row.least, call.length());
    row.most = std::max(row.most, call.length());
    return row;
  };
  for (const Process& process : timeline.processes) {
    const std::vector<bool> again = repeated_queues(process);
    const auto once = [&](std::optional<std::uint32_t> queue) {
      return !queue || *queue >= again.size() || !again[*queue];
    };
    for (const Submission& one : process.submissions) {
      if (once(one.queue)) add("submit", "submit", one.call);
    }
    for (const GraphRun& run : process.graph_runs) {
      const std::size_t nodes =
          run.graph < process.graphs.size() ? process.graphs[run.graph].nodes.size() : 0;
      std::string name = "compute a graph";
      if (nodes != 0) name += fmt::format(" of {} op{}", nodes, nodes == 1 ? "" : "s");
      add(std::move(name), "graph", run.call);
    }
    for (const Wait& wait : process.waits) {
      if (once(wait.queue)) add(wait.kind, "wait", wait.call).syncs += wait.sync ? 1 : 0;
    }
    for (const Transfer& moved : process.transfers) {
      add(fmt::format("{} {} \u2192 {}", moved.kind, moved.from, moved.to), "transfer", moved.call)
          .bytes += moved.bytes;
    }
  }
  std::vector<CpuCall> out;
  for (auto& [name, row] : rows) out.push_back(std::move(row));
  return out;
}

}  // namespace weir::observed
