// A timeline on tracks: as the page of a profile, and as a Chrome trace.
#include "gate/report/timeline_tracks.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "gate/base/find.hpp"
#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/report/layout.hpp"
#include "gate/report/timeline_document.hpp"

namespace weir::report {

namespace {

using observed::Command;
using observed::Process;
using Kind = TimelineDocument::Kind;
using Detail = PageDetail;
using Track = std::optional<std::uint32_t>;

constexpr std::size_t k_most_members = 8;
constexpr std::size_t k_longest_device = 300;  // of a track's name

void describe(const Command& command, const std::string& before, Detail* detail) {
  const auto say = [&](const char* what, std::string value) {
    detail->words.emplace_back(before + what, std::move(value));
  };
  if (!before.empty()) say("kernel", command.name);
  if (!command.op.empty()) say("op", command.op);
  if (!command.node.empty()) say("node", command.node);
  if (command.kind != Command::Kind::dispatch) return;
  say("workgroups", command.indirect ? "indirect"
                                     : fmt::format("{} x {} x {}", command.groups[0],
                                                   command.groups[1], command.groups[2]));
  if (command.push_bytes != 0) say("push constants", fmt::format("{} B", command.push_bytes));
}

// Commands that share one time.
struct Group {
  std::string name;
  bool copy = true;
  Detail detail;
};

using Commands = std::vector<const Command*>;

// The commands of each group of a buffer.
std::vector<Commands> members_of(const observed::BufferWork& buffer) {
  std::vector<Commands> out(buffer.groups.size());
  for (const Command& one : buffer.commands) {
    if (one.group && *one.group < out.size()) out[*one.group].push_back(&one);
  }
  return out;
}

// "mul x 2, add", in the order in which they are first seen.
std::string names_of(const Commands& members, observed::By by) {
  std::map<std::string, int> times;
  std::vector<std::string> order;
  for (const Command* one : members) {
    const std::string& name = by == observed::By::op && !one->op.empty() ? one->op : one->name;
    if (times[name]++ == 0) order.push_back(name);
  }
  for (std::string& name : order) {
    if (times[name] > 1) name = fmt::format("{} x {}", name, times[name]);
  }
  return text::join(order);
}

bool only_copies(const Commands& members) {
  return std::ranges::all_of(members,
                             [](const Command* one) { return one->kind == Command::Kind::copy; });
}

std::string transfer_words(const observed::Transfer& moved) {
  return fmt::format("{} {} \u2192 {}", moved.kind, moved.from, moved.to);
}

// "vulkan queue 0.0 copies, GPU".
std::string queue_words(const observed::Queue& queue, bool copies, std::size_t most) {
  return fmt::format("{}{}, {}", queue.name, copies ? " copies" : "", one_line(queue.device, most));
}

std::string thread_words(std::uint32_t thread) { return fmt::format("CPU thread {}", thread); }

Group group_of(const Commands& members, observed::By by) {
  Group out{names_of(members, by), only_copies(members), {}};
  for (const Command* one : members) out.detail.bytes += one->bytes;
  for (std::size_t i = 0; i < std::min(members.size(), k_most_members); ++i) {
    describe(*members[i], members.size() == 1 ? "" : fmt::format("{}. ", i + 1), &out.detail);
  }
  if (members.size() > k_most_members) {
    out.detail.words.emplace_back("and", plural(members.size() - k_most_members, "more command"));
  }
  return out;
}

class ProcessPage {
 public:
  ProcessPage(const Process& process, observed::By by, TimelineDocument* page)
      : process_(process),
        by_(by),
        page_(page),
        own_(page->process(fmt::format("{} ({})", process.name, process.pid))) {}

  void fill() {
    make_tracks();
    for (const observed::GraphRun& run : process_.graph_runs) {
      Detail detail;
      if (run.graph < process_.graphs.size() && !process_.graphs[run.graph].nodes.empty()) {
        detail.words.emplace_back("ops",
                                  fmt::format("{}", process_.graphs[run.graph].nodes.size()));
      }
      cpu(run.thread, run.call, fmt::format("graph {}", run.graph), detail);
    }
    for (const observed::Submission& one : process_.submissions) add_submission(one);
    for (const observed::Wait& wait : process_.waits) {
      Detail detail;
      if (wait.sync) detail.words.emplace_back("counted as", "a sync");
      cpu(wait.thread, wait.call, wait.kind, detail);
    }
    for (const observed::Transfer& moved : process_.transfers) add_transfer(moved);
    for (const observed::LoneCommand& lone : process_.commands) add_lone(lone);
    for (const observed::OpScope& scope : process_.op_scopes) add_op(scope);
  }

 private:
  // In the order of the page: threads (the first one first), each queue and its copies, backends.
  void make_tracks() {
    std::set<std::uint32_t> threads;
    std::set<std::string> backends;
    for (const auto& one : process_.submissions) threads.insert(one.thread);
    for (const auto& one : process_.waits) threads.insert(one.thread);
    for (const auto& one : process_.graph_runs) threads.insert(one.thread);
    for (const auto& one : process_.transfers) {
      threads.insert(one.thread);
      for (const std::string& end : {one.from, one.to}) {
        if (!end.empty() && end != "program") backends.insert(end);
      }
    }
    for (const std::uint32_t thread : threads) {
      threads_[thread] = page_->track(own_, Kind::cpu, thread_words(thread));
    }
    const auto [work, copies] = used_queues();
    const std::vector<bool> again = observed::repeated_queues(process_);
    for (std::uint32_t i = 0; i < process_.queues.size(); ++i) {
      const observed::Queue& queue = process_.queues[i];
      if (again[i]) {
        const std::string name =
            fmt::format("{}, {}", queue.marked ? "the engine's marks" : queue.name, queue.device);
        queues_[{i, false}] = queues_[{i, true}] = page_->track(own_, Kind::marks, name);
        continue;
      }
      for (const bool copy : {false, true}) {
        if (!(copy ? copies : work).contains(i)) continue;
        queues_[{i, copy}] = page_->track(own_, copy ? Kind::copy : Kind::device,
                                          queue_words(queue, copy, k_longest_device));
      }
    }
    for (const observed::OpScope& scope : process_.op_scopes) {
      const auto [at, fresh] = ops_.try_emplace({!scope.place, scope.backend});
      if (!fresh) continue;
      at->second = page_->track(own_, scope.place ? Kind::device : Kind::marks,
                                (scope.place ? "ops on " : "marked ops on ") + scope.backend);
    }
    for (const std::string& one : backends) {
      backends_[one] = page_->track(own_, Kind::backend, "backend " + one);
    }
  }

  // Queues that did something whose time is known: work, and copies.
  [[nodiscard]] std::pair<std::set<std::uint32_t>, std::set<std::uint32_t>> used_queues() const {
    std::pair<std::set<std::uint32_t>, std::set<std::uint32_t>> out;
    const auto use = [&](std::uint32_t queue, bool copy) {
      if (copy) {
        out.second.insert(queue);
      } else {
        out.first.insert(queue);
      }
    };
    for (const observed::Submission& one : process_.submissions) {
      for (const observed::BufferWork& buffer : one.buffers) {
        if (buffer.device && buffer.groups.empty()) use(one.queue, false);
        for (const auto& members : members_of(buffer)) {
          if (!members.empty()) use(one.queue, only_copies(members));
        }
      }
    }
    for (const observed::LoneCommand& one : process_.commands) {
      if (one.device) use(one.queue, one.command.kind == Command::Kind::copy);
    }
    return out;
  }

  void cpu(std::uint32_t thread, const observed::Interval& at, std::string_view name,
           const Detail& detail) {
    if (const Track track = threads_[thread]) page_->event(*track, at, name, detail);
  }

  [[nodiscard]] Track queue(std::uint32_t index, bool copy) const {
    return look_up(queues_, std::pair(index, copy), std::nullopt);
  }

  void add_submission(const observed::Submission& one) {
    cpu(one.thread, one.call, "submit",
        {{{"buffers", fmt::format("{}", one.buffers.size())}}, 0, {}});
    for (const observed::BufferWork& buffer : one.buffers) {
      const auto [track, begin] = add_buffer(one.queue, buffer);
      const Track from = threads_[one.thread];
      if (track && from) page_->arrow(*from, one.call.begin, *track, begin, "submit");
    }
  }

  // Where the buffer's work begins.
  std::pair<Track, double> add_buffer(std::uint32_t index, const observed::BufferWork& buffer) {
    if (!buffer.device) return {};
    if (buffer.groups.empty()) {
      const Track track = queue(index, false);
      if (track) {
        page_->event(*track, *buffer.device, "command buffer",
                     {{{"commands", fmt::format("{}", buffer.commands.size())}}, 0, {}});
      }
      return {track, buffer.device->begin};
    }
    std::pair<Track, double> first;
    const auto groups = members_of(buffer);
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (groups[i].empty()) continue;
      const Group group = group_of(groups[i], by_);
      const Track track = queue(index, group.copy);
      if (!track) continue;
      page_->event(*track, buffer.groups[i], group.name, group.detail);
      if (!first.first) first = {track, buffer.groups[i].begin};
    }
    return first;
  }

  // The time is the thread's; the arrow says between which backends.
  void add_transfer(const observed::Transfer& moved) {
    Detail detail;
    detail.bytes = moved.bytes;
    cpu(moved.thread, moved.call, transfer_words(moved), detail);
    const Track thread = threads_[moved.thread];
    const Track from = look_up(backends_, moved.from, thread);
    const Track to = look_up(backends_, moved.to, thread);
    if (from && to && *from != *to) {
      page_->arrow(*from, moved.call.begin, *to, moved.call.end, moved.kind, detail);
    }
  }

  void add_lone(const observed::LoneCommand& lone) {
    if (!lone.device) return;
    const Track track = queue(lone.queue, lone.command.kind == Command::Kind::copy);
    if (!track) return;
    Group group = group_of({&lone.command}, by_);
    // Two digits: a number of its own for each of a million commands is more than a page can hold.
    group.detail.words.emplace_back(
        "after it was enqueued",
        fmt::format("about {:.2g} us", (lone.device->begin - lone.enqueued) * 1e6));
    page_->event(*track, *lone.device, group.name, group.detail);
  }

  void add_op(const observed::OpScope& scope) {
    const Track track = ops_[{!scope.place, scope.backend}];
    if (!track) return;
    Detail detail;
    const auto say = [&](const char* what, const std::string& value) {
      if (!value.empty()) detail.words.emplace_back(what, value);
    };
    if (scope.layer) say("layer", fmt::format("{}", *scope.layer));
    if (scope.place) {
      const observed::ObservedOp& kind = process_.op_kinds.at(scope.place->kind);
      say("node", process_.graphs.at(scope.place->graph).nodes.at(scope.place->node).name);
      say("types", kind.type);
      say("shape", kind.shape);
      detail.bytes = static_cast<std::uint64_t>(kind.bytes.value_or(0));
      detail.flops = kind.flops;
    }
    page_->event(*track, scope.call, scope.op, detail);
  }

  const Process& process_;
  observed::By by_;
  TimelineDocument* page_;
  std::uint32_t own_;
  std::map<std::uint32_t, Track> threads_;
  std::map<std::pair<std::uint32_t, bool>, Track> queues_;
  std::map<std::string, Track> backends_;
  std::map<std::pair<bool, std::string>, Track> ops_;  // marked or not; by backend
};

// What devices did without being timed is on no track.
std::optional<PageTable> untimed(const observed::Timeline& timeline, observed::By by) {
  PageTable out{
      "Device work without times", "It was counted; no track shows it.", {{"What"}, {"Calls", ""}}};
  for (const observed::WorkTime& row : observed::work_times(timeline, by)) {
    if (row.calls > row.timed) out.rows.push_back({row.name, row.calls - row.timed});
  }
  return out.rows.empty() ? std::nullopt : std::optional(std::move(out));
}

void add_own_facts(const observed::Timeline& timeline, PageFacts* facts) {
  std::set<std::string> devices;
  for (const Process& process : timeline.processes) {
    for (const observed::Queue& queue : process.queues) devices.insert(queue.device);
  }
  for (const std::string& device : devices) facts->facts.emplace_back("device", device);
  if (timeline.alignment && timeline.alignment->dispatches != 0) {
    const observed::Alignment& all = *timeline.alignment;
    facts->facts.emplace_back(
        "dispatches that belong to ops",
        fmt::format("{} of {}", all.dispatches - all.dispatches_left, all.dispatches));
  }
  if (const auto all = observed::by_node(timeline)) {
    std::string words = fmt::format("{} of {}; one of {} is {:.1f} % in ops", all->graphs,
                                    plural(all->graphs + all->whole, "graph"),
                                    plural(all->rows, "row"), 100 * all->ops);
    if (const auto cost = all->cost()) {
      words += fmt::format(", {:+.1f} % compared with one left whole", 100 * *cost);
    }
    facts->facts.emplace_back("computed node by node", words);
  }
  if (timeline.serialized) {
    facts->warnings.emplace_back(
        "every dispatch was kept apart to time it alone: the program did not run as it does");
  }
  facts->warnings.insert(facts->warnings.end(), timeline.warnings.begin(), timeline.warnings.end());
}

}  // namespace

TimelineDocument timeline_document(const observed::Timeline& timeline, PageFacts facts,
                                   observed::By by) {
  add_own_facts(timeline, &facts);
  if (auto table = untimed(timeline, by)) facts.tables.push_back(std::move(*table));
  TimelineDocument page(std::move(facts));
  for (const Process& process : timeline.processes) ProcessPage(process, by, &page).fill();
  return page;
}

namespace {

// Above any thread number of the system (4 194 304 at most).
constexpr std::uint64_t k_first_queue_track = 10'000'000;

class Trace {
 public:
  void name_process(std::uint32_t pid, const std::string& name) {
    add({{"ph", "M"}, {"pid", pid}, {"name", "process_name"}, {"args", {{"name", name}}}});
  }
  void name_track(std::uint32_t pid, std::uint64_t track, const std::string& name, int order) {
    const Json of = {{"ph", "M"}, {"pid", pid}, {"tid", track}};
    for (Json more : {Json{{"name", "thread_name"}, {"args", {{"name", name}}}},
                      Json{{"name", "thread_sort_index"}, {"args", {{"sort_index", order}}}}}) {
      more.update(of);
      add(more);
    }
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
    const Json other = {{"schema", "weir.trace/1"},
                        {"serialized", timeline.serialized},
                        {"warnings", timeline.warnings}};
    return fmt::format(
        "{{\"displayTimeUnit\": \"ms\",\n\"otherData\": {},\n\"traceEvents\": [\n{}\n],\n"
        "\"weirWork\": [\n{}\n]}}\n",
        dump_json(other, -1), events_, work_of(timeline));
  }

 private:
  // The profile's rows, which events cannot give: work is on the tracks of marks as well, and has
  // no op, layer or token there. A row an element, for readers that take a trace in pieces.
  static std::string work_of(const observed::Timeline& timeline) {
    std::string out;
    const auto add_piece = [&](const std::string& key, const Json& value) {
      if (!out.empty()) out += ",\n";
      out += dump_json(Json{{key, value}}, -1);
    };
    Json work = write_fields(observed::observed_of(timeline));
    work.erase("schema");  // the file is none of these
    for (const auto& [key, value] : work.items()) {
      if (!value.is_array()) {
        add_piece(key, value);
        continue;
      }
      for (const Json& row : value) add_piece(key, Json::array({row}));
    }
    return out;
  }
  static double microseconds(double seconds) { return std::round(seconds * 1e9) / 1e3; }
  void add(const Json& event) {
    if (!events_.empty()) events_ += ",\n";
    events_ += dump_json(event, -1);
  }
  std::string events_;
};

Json command_args(const Command& command) {
  Json args = {{"name", command.name}};
  if (!command.op.empty()) args["op"] = command.op;
  if (!command.node.empty()) args["node"] = command.node;
  if (command.kind == Command::Kind::dispatch) {
    args["workgroups"] = command.indirect ? Json("indirect") : Json(command.groups);
    if (command.push_bytes != 0) args["push_constant_bytes"] = command.push_bytes;
  } else if (command.bytes != 0) {
    args["bytes"] = command.bytes;
  }
  return args;
}

class ProcessTracks {
 public:
  ProcessTracks(const Process& process, Trace* trace)
      : process_(process), trace_(trace), again_(observed::repeated_queues(process)) {}

  void draw() {
    const std::uint32_t pid = process_.pid;
    trace_->name_process(pid, one_line(process_.name, 100));
    for (const observed::Submission& one : process_.submissions) {
      cpu(one.thread, "submit", fmt::format("submit ({})", plural(one.buffers.size(), "buffer")),
          one.call, {});
      for (const observed::BufferWork& buffer : one.buffers) draw_buffer(one.queue, buffer);
    }
    for (const observed::LoneCommand& lone : process_.commands) {
      if (lone.device) draw_lone(lone, *lone.device);
    }
    for (const observed::Wait& wait : process_.waits) {
      cpu(wait.thread, "wait", wait.kind, wait.call, {{"sync", wait.sync}});
    }
    for (const observed::GraphRun& run : process_.graph_runs) {
      Json args;
      if (run.graph < process_.graphs.size()) {
        args["nodes"] = process_.graphs[run.graph].nodes.size();
      }
      cpu(run.thread, "graph", fmt::format("graph {}", run.graph), run.call, std::move(args));
    }
    for (const observed::OpScope& scope : process_.op_scopes) {
      Json args = {{"backend", scope.backend}};
      if (scope.layer) args["layer"] = *scope.layer;
      if (scope.place) {
        const observed::ObservedOp& kind = process_.op_kinds.at(scope.place->kind);
        args["node"] = process_.graphs.at(scope.place->graph).nodes.at(scope.place->node).name;
        args["types"] = kind.type;
        args["shape"] = kind.shape;
      } else {
        args["token"] = scope.token;
      }
      cpu(scope.thread, "op", scope.op, scope.call, std::move(args));
    }
    for (const observed::Transfer& moved : process_.transfers) {
      cpu(moved.thread, "transfer", transfer_words(moved), moved.call, {{"bytes", moved.bytes}});
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
    const bool again = queue < again_.size() && again_[queue];
    trace_->slice(process_.pid, track,
                  again  ? "marks"
                  : copy ? "copy"
                         : "device",
                  name, at, std::move(args));
  }

  void draw_lone(const observed::LoneCommand& lone, const observed::Interval& device) {
    Json args;
    if (lone.command.bytes != 0) args["bytes"] = lone.command.bytes;
    args["microseconds since it was enqueued"] =
        std::round((device.begin - lone.enqueued) * 1e9) / 1e3;
    on_queue(lone.queue, lone.command.kind == Command::Kind::copy, lone.command.name, device,
             std::move(args));
  }

  void draw_buffer(std::uint32_t queue, const observed::BufferWork& buffer) {
    if (!buffer.device) return;
    const auto groups = members_of(buffer);
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (groups[i].empty()) continue;
      Json args, all;
      for (const Command* command : groups[i]) all.push_back(command_args(*command));
      if (all.size() == 1) {
        args = all[0];
      } else {
        args["may overlap"] = std::move(all);
      }
      on_queue(queue, only_copies(groups[i]), names_of(groups[i], observed::By::kernel),
               buffer.groups[i], std::move(args));
    }
  }

  void name_tracks() {
    for (const std::uint64_t track : queues_) {
      const std::uint64_t place = track - k_first_queue_track;
      const auto index = static_cast<std::size_t>(place / 2);
      const std::string name = index < process_.queues.size()
                                   ? queue_words(process_.queues[index], place % 2 == 1, 60)
                                   : "queue";
      trace_->name_track(process_.pid, track, name, static_cast<int>(place) + 1);
    }
    for (const std::uint32_t thread : threads_) {
      trace_->name_track(process_.pid, thread, thread_words(thread), 0);
    }
  }

  const Process& process_;
  Trace* trace_;
  std::vector<bool> again_;
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
