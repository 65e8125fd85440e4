// The pieces of a timeline's work, each of which has one time. Inside of observed: used to add them
// up (timeline.cpp) and to make rows (timeline_rows.cpp). Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "gate/observed/timeline.hpp"

namespace weir::observed {

// Work that has one time: commands between two barriers, or an op.
struct Piece {
  const Process& process;
  std::vector<const Command*> commands;  // empty for an op
  const OpScope* scope = nullptr;
  std::optional<Interval> time;
};

// The op that a command computes, if it is known and asked for; else the name of its kernel.
inline std::string work_name(const Command& command, By by) {
  return by == By::op && !command.op.empty() ? command.op : command.name;
}

// A name for equal work, or for several kinds that may overlap: "a, b x 2".
struct NamedWork {
  std::string name;
  std::uint64_t calls = 0;
};
inline NamedWork work_name(const Piece& piece, By by) {
  if (piece.scope != nullptr) {
    return {fmt::format("{} on {}", piece.scope->op, piece.scope->backend), 1};
  }
  std::map<std::string, std::uint64_t> names;
  for (const Command* command : piece.commands) ++names[work_name(*command, by)];
  if (names.size() == 1) return {names.begin()->first, piece.commands.size()};
  NamedWork out{"", 1};
  for (const auto& [name, times] : names) {
    out.name += out.name.empty() ? "" : ", ";
    out.name += times == 1 ? name : fmt::format("{} x {}", name, times);
  }
  return out;
}

inline bool has_only_copies(const Piece& piece) {
  return piece.scope == nullptr && std::ranges::all_of(piece.commands, [](const Command* command) {
           return command->kind == Command::Kind::copy;
         });
}

// Adds a piece of `calls` equal calls to a row. A piece without a time adds its calls alone.
inline void add_piece(WorkTime& row, const Piece& piece, std::uint64_t calls) {
  row.calls += calls;
  for (const Command* command : piece.commands) row.bytes += command->bytes;
  if (!piece.time) return;
  const double each = piece.time->length() / static_cast<double>(calls);
  row.min_seconds = row.timed == 0 ? each : std::min(row.min_seconds, each);
  row.max_seconds = row.timed == 0 ? each : std::max(row.max_seconds, each);
  row.timed += calls;
  row.seconds += piece.time->length();
}

// Calls `visit` with a piece for each group of commands in the buffer, and for each other command.
template <class Visit>
void visit_groups(const Process& process, const BufferWork& buffer, const Visit& visit) {
  std::map<std::uint32_t, std::vector<const Command*>> groups;
  for (const Command& command : buffer.commands) {
    if (command.kind == Command::Kind::barrier) continue;
    if (command.group && *command.group < buffer.groups.size()) {
      groups[*command.group].push_back(&command);
    } else {
      visit(Piece{process, {&command}, nullptr, std::nullopt});
    }
  }
  for (auto& [index, members] : groups) {
    visit(Piece{process, std::move(members), nullptr, buffer.groups[index]});
  }
}

// Decode for one row, or if each row is the next token of a sequence of its own.
inline Phase graph_phase(const Process& process, std::uint32_t graph) {
  if (graph >= process.graphs.size()) return Phase::unknown;
  const Graph& computed = process.graphs[graph];
  if (computed.rows_apart) return Phase::decode;
  return phase_of_rows(static_cast<std::int64_t>(computed.rows));
}

inline bool ran_by_node(const Process& process) {
  return std::ranges::any_of(process.graph_runs, &GraphRun::node_by_node);
}

// The computation of a graph that sent a piece; null if it is not known.
inline const GraphRun* find_graph_run(const Process& process, const Piece& piece) {
  if (piece.commands.empty() || !piece.commands.front()->run) return nullptr;
  const std::uint32_t run = *piece.commands.front()->run;
  return run < process.graph_runs.size() ? &process.graph_runs[run] : nullptr;
}

// Visits all work once, piece by piece: by devices, and node by node.
template <class Visit>
void visit_pieces(const Process& process, const Visit& visit) {
  const std::vector<bool> repeated = repeated_queues(process);
  for (const Submission& submission : process.submissions) {
    if (!is_counted_once(repeated, submission.queue)) continue;
    for (const BufferWork& buffer : submission.buffers) visit_groups(process, buffer, visit);
  }
  for (const LoneCommand& lone : process.commands) {
    if (is_counted_once(repeated, lone.queue))
      visit(Piece{process, {&lone.command}, nullptr, lone.device});
  }
  for (const OpScope& scope : process.op_scopes) {
    if (scope.place) visit(Piece{process, {}, &scope, scope.call});
  }
}

// Visits all work that is counted. If graphs ran node by node, work of others that were left whole
// is not: they are the same graphs.
template <class Visit>
void visit_counted_pieces(const Process& process, const Visit& visit) {
  const bool cut = ran_by_node(process);
  visit_pieces(process, [&](const Piece& piece) {
    const GraphRun* run = find_graph_run(process, piece);
    if (!cut || run == nullptr || run->node_by_node) visit(piece);
  });
}

// The index of the graph that `thread` computed at that time.
inline std::optional<std::uint32_t> find_run_at(const Process& process, std::uint32_t thread,
                                                double time) {
  const auto after = std::ranges::upper_bound(process.graph_runs, time, {},
                                              [](const GraphRun& run) { return run.call.begin; });
  for (auto at = after; at != process.graph_runs.begin();) {
    --at;
    if (at->thread != thread) continue;
    if (at->call.end < time) return std::nullopt;
    return static_cast<std::uint32_t>(at - process.graph_runs.begin());
  }
  return std::nullopt;
}

}  // namespace weir::observed
