#include <cmath>
#include <map>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "gate/base/json.hpp"
#include "gate/report/layout.hpp"
#include "gate/report/profile_texts.hpp"

namespace weir::report {
namespace {

using observed::Command;
using observed::Process;

// Above any thread number of the system (4 194 304 at most).
constexpr std::uint64_t k_first_queue_track = 10'000'000;

class Trace {
 public:
  void name_process(std::uint32_t pid, const std::string& name) {
    add({{"ph", "M"}, {"pid", pid}, {"name", "process_name"}, {"args", {{"name", name}}}});
  }
  void name_track(std::uint32_t pid, std::uint64_t track, const std::string& name, int order) {
    add({{"ph", "M"},
         {"pid", pid},
         {"tid", track},
         {"name", "thread_name"},
         {"args", {{"name", name}}}});
    add({{"ph", "M"},
         {"pid", pid},
         {"tid", track},
         {"name", "thread_sort_index"},
         {"args", {{"sort_index", order}}}});
  }
  void slice(std::uint32_t pid, std::uint64_t track, const char* category, const std::string& name,
             const observed::Interval& at, Json args) {
    Json event = {{"ph", "X"},
                  {"pid", pid},
                  {"tid", track},
                  {"cat", category},
                  {"name", name},
                  {"ts", microseconds(at.begin)},
                  {"dur", microseconds(at.length())}};
    if (!args.empty()) event["args"] = std::move(args);
    add(event);
  }
  [[nodiscard]] std::string finish(const observed::Timeline& timeline) && {
    Json other = {{"schema", "weir.trace/1"}, {"serialized", timeline.serialized}};
    other["warnings"] = timeline.warnings;
    return fmt::format(
        "{{\"displayTimeUnit\": \"ms\",\n\"otherData\": {},\n\"traceEvents\": [\n{}\n]}}\n",
        dump_json(other, -1), events_);
  }

 private:
  static double microseconds(double seconds) { return std::round(seconds * 1e9) / 1e3; }
  void add(const Json& event) {
    if (!events_.empty()) events_ += ",\n";
    events_ += dump_json(event, -1);
  }
  std::string events_;
};

// The commands of each group of a buffer.
std::vector<std::vector<const Command*>> members(const observed::BufferWork& buffer) {
  std::vector<std::vector<const Command*>> out(buffer.groups.size());
  for (const Command& command : buffer.commands) {
    if (command.group && *command.group < out.size()) out[*command.group].push_back(&command);
  }
  return out;
}

std::string group_name(const std::vector<const Command*>& group) {
  std::vector<std::string> names;
  std::map<std::string, int> times;
  for (const Command* command : group) {
    if (times[command->name]++ == 0) names.push_back(command->name);
  }
  std::string out;
  for (const std::string& name : names) {
    out += out.empty() ? "" : ", ";
    out += times[name] == 1 ? name : fmt::format("{} x {}", name, times[name]);
  }
  return out;
}

Json command_args(const Command& command) {
  Json args = Json::object();
  args["name"] = command.name;
  if (!command.op.empty()) args["op"] = command.op;
  if (!command.node.empty()) args["node"] = command.node;
  if (command.kind == Command::Kind::dispatch) {
    if (command.indirect) {
      args["workgroups"] = "indirect";
    } else {
      args["workgroups"] = command.groups;
    }
    if (command.push_bytes != 0) args["push_constant_bytes"] = command.push_bytes;
  } else if (command.bytes != 0) {
    args["bytes"] = command.bytes;
  }
  return args;
}

bool only_copies(const std::vector<const Command*>& group) {
  for (const Command* command : group) {
    if (command->kind != Command::Kind::copy) return false;
  }
  return true;
}

class ProcessTracks {
 public:
  ProcessTracks(const Process& process, Trace* trace) : process_(process), trace_(trace) {}

  void draw() {
    const std::uint32_t pid = process_.pid;
    trace_->name_process(pid, one_line(process_.name, 100));
    for (const observed::Submission& one : process_.submissions) {
      cpu(one.thread, "submit", fmt::format("submit ({})", plural(one.buffers.size(), "buffer")),
          one.call, Json::object());
      for (const observed::BufferWork& buffer : one.buffers) draw_buffer(one.queue, buffer);
    }
    for (const observed::LoneCommand& lone : process_.commands) {
      if (lone.device) draw_lone(lone, *lone.device);
    }
    for (const observed::Wait& wait : process_.waits) {
      cpu(wait.thread, "wait", wait.kind, wait.call, {{"sync", wait.sync}});
    }
    for (const observed::GraphRun& run : process_.graph_runs) {
      const bool known = run.graph < process_.graphs.size();
      cpu(run.thread, "graph", fmt::format("graph {}", run.graph), run.call,
          known ? Json{{"nodes", process_.graphs[run.graph].nodes.size()}} : Json::object());
    }
    for (const observed::OpScope& scope : process_.op_scopes) {
      Json args = {{"backend", scope.backend}, {"token", scope.token}};
      if (scope.layer) args["layer"] = *scope.layer;
      cpu(scope.thread, "op", scope.op, scope.call, std::move(args));
    }
    for (const observed::Transfer& moved : process_.transfers) {
      cpu(moved.thread, "transfer",
          fmt::format("{} {} \u2192 {}", moved.kind, moved.from, moved.to), moved.call,
          {{"bytes", moved.bytes}});
    }
    name_tracks();
  }

 private:
  void cpu(std::uint32_t thread, const char* category, const std::string& name,
           const observed::Interval& at, Json args) {
    threads_.insert(thread);
    trace_->slice(process_.pid, thread, category, name, at, std::move(args));
  }

  void on_queue(std::uint32_t queue, bool copy, const std::string& name,
                const observed::Interval& at, Json args) {
    const std::uint64_t track = k_first_queue_track + 2 * std::uint64_t{queue} + (copy ? 1 : 0);
    queues_.insert(track);
    trace_->slice(process_.pid, track, copy ? "copy" : "device", name, at, std::move(args));
  }

  void draw_lone(const observed::LoneCommand& lone, const observed::Interval& device) {
    Json args = Json::object();
    if (lone.command.bytes != 0) args["bytes"] = lone.command.bytes;
    args["microseconds since it was enqueued"] =
        std::round((device.begin - lone.enqueued) * 1e9) / 1e3;
    on_queue(lone.queue, lone.command.kind == Command::Kind::copy, lone.command.name, device,
             std::move(args));
  }

  void draw_buffer(std::uint32_t queue, const observed::BufferWork& buffer) {
    if (!buffer.device) return;
    const auto groups = members(buffer);
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (groups[i].empty()) continue;
      Json args = Json::object();
      if (groups[i].size() == 1) {
        args = command_args(*groups[i][0]);
      } else {
        for (const Command* command : groups[i])
          args["may overlap"].push_back(command_args(*command));
      }
      on_queue(queue, only_copies(groups[i]), group_name(groups[i]), buffer.groups[i],
               std::move(args));
    }
  }

  void name_tracks() {
    for (const std::uint64_t track : queues_) {
      const auto index = static_cast<std::size_t>((track - k_first_queue_track) / 2);
      const bool copy = (track - k_first_queue_track) % 2 == 1;
      const std::string name =
          index < process_.queues.size()
              ? fmt::format("{}{}, {}", process_.queues[index].name, copy ? " copies" : "",
                            one_line(process_.queues[index].device, 60))
              : "queue";
      trace_->name_track(process_.pid, track, name,
                         static_cast<int>(track - k_first_queue_track) + 1);
    }
    for (const std::uint32_t thread : threads_) {
      trace_->name_track(process_.pid, thread, fmt::format("CPU thread {}", thread), 0);
    }
  }

  const Process& process_;
  Trace* trace_;
  std::set<std::uint32_t> threads_;
  std::set<std::uint64_t> queues_;
};

}  // namespace

std::string chrome_trace(const observed::Timeline& timeline) {
  Trace trace;
  for (const Process& process : timeline.processes) ProcessTracks(process, &trace).draw();
  return std::move(trace).finish(timeline);
}

}  // namespace weir::report
