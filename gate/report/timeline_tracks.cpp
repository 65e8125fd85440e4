// Draws a timeline on tracks: as the document of a page, and as a Chrome trace.
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

constexpr std::size_t k_max_commands_listed = 8;
constexpr std::size_t k_longest_device = 300;  // characters of a device in a track's name

// Adds a command's op, node, workgroups and push constants to `detail`, with `prefix` before each
// label. With a prefix its kernel too.
void add_command_detail(const Command& command, const std::string& prefix, Detail* detail) {
  const auto add = [&](const char* what, std::string value) {
    detail->words.emplace_back(prefix + what, std::move(value));
  };
  if (!prefix.empty()) add("kernel", command.name);
  if (!command.op.empty()) add("op", command.op);
  if (!command.node.empty()) add("node", command.node);
  if (command.kind != Command::Kind::dispatch) return;
  add("workgroups", command.indirect ? "indirect"
                                     : fmt::format("{} x {} x {}", command.groups[0],
                                                   command.groups[1], command.groups[2]));
  if (command.push_bytes != 0) add("push constants", fmt::format("{} B", command.push_bytes));
}

// A group of commands that share one time, as an event shows it.
struct Group {
  std::string name;
  bool copy = true;
  Detail detail;
};

using Commands = std::vector<const Command*>;

// Returns the commands of each group of a buffer.
std::vector<Commands> commands_by_group(const observed::BufferWork& buffer) {
  std::vector<Commands> out(buffer.groups.size());
  for (const Command& command : buffer.commands) {
    if (command.group && *command.group < out.size()) out[*command.group].push_back(&command);
  }
  return out;
}

// Returns the names of the commands' kernels or ops, each with how often it comes: "mul x 2, add".
std::string command_names(const Commands& members, observed::By by) {
  std::map<std::string, int> times;
  std::vector<std::string> order;
  for (const Command* command : members) {
    const bool by_op = by == observed::By::op && !command->op.empty();
    const std::string& name = by_op ? command->op : command->name;
    if (times[name] == 0) order.push_back(name);
    ++times[name];
  }
  for (std::string& name : order) {
    if (times[name] > 1) name = fmt::format("{} x {}", name, times[name]);
  }
  return text::join(order);
}

bool only_copies(const Commands& members) {
  return std::ranges::all_of(
      members, [](const Command* command) { return command->kind == Command::Kind::copy; });
}

// Returns the kind and the ends of a transfer: "copy program → Vulkan0".
std::string transfer_text(const observed::Transfer& transfer) {
  return fmt::format("{} {} \u2192 {}", transfer.kind, transfer.from, transfer.to);
}

// Returns the name of a queue's track: "vulkan queue 0.0 copies, GPU".
std::string queue_title(const observed::Queue& queue, bool copies, std::size_t max_columns) {
  return fmt::format("{}{}, {}", queue.name, copies ? " copies" : "",
                     printable_line(queue.device, max_columns));
}

std::string thread_title(std::uint32_t thread) { return fmt::format("CPU thread {}", thread); }

// Makes a group's name and detail. Only the first eight commands are described.
Group make_group(const Commands& members, observed::By by) {
  Group out{command_names(members, by), only_copies(members), {}};
  for (const Command* command : members) out.detail.bytes += command->bytes;
  for (std::size_t i = 0; i < std::min(members.size(), k_max_commands_listed); ++i) {
    const std::string prefix = members.size() == 1 ? "" : fmt::format("{}. ", i + 1);
    add_command_detail(*members[i], prefix, &out.detail);
  }
  if (members.size() > k_max_commands_listed) {
    out.detail.words.emplace_back(
        "and", text::plural(members.size() - k_max_commands_listed, "more command"));
  }
  return out;
}

// Adds the tracks, events and arrows of a process to the document of a page.
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
      cpu_event(run.thread, run.call, fmt::format("graph {}", run.graph), detail);
    }
    for (const observed::Submission& submission : process_.submissions) add_submission(submission);
    for (const observed::Wait& wait : process_.waits) {
      Detail detail;
      if (wait.sync) detail.words.emplace_back("counted as", "a sync");
      cpu_event(wait.thread, wait.call, wait.kind, detail);
    }
    for (const observed::Transfer& transfer : process_.transfers) add_transfer(transfer);
    for (const observed::LoneCommand& lone : process_.commands) add_lone_command(lone);
    for (const observed::OpScope& scope : process_.op_scopes) add_op(scope);
  }

 private:
  // Makes the tracks in the order of the page: threads, each queue and its copies, ops, backends.
  void make_tracks() {
    make_thread_tracks();
    make_queue_tracks();
    for (const observed::OpScope& scope : process_.op_scopes) {
      const bool is_placed = scope.place.has_value();
      const auto [at, is_new] = ops_.try_emplace({!is_placed, scope.backend});
      if (!is_new) continue;
      if (is_placed) {
        at->second = page_->track(own_, Kind::device, "ops on " + scope.backend);
      } else {
        at->second = page_->track(own_, Kind::marks, "marked ops on " + scope.backend);
      }
    }
    make_backend_tracks();
  }

  void make_thread_tracks() {
    std::set<std::uint32_t> threads;
    for (const auto& submission : process_.submissions) threads.insert(submission.thread);
    for (const auto& wait : process_.waits) threads.insert(wait.thread);
    for (const auto& graph_run : process_.graph_runs) threads.insert(graph_run.thread);
    for (const auto& transfer : process_.transfers) threads.insert(transfer.thread);
    for (const std::uint32_t thread : threads) {
      threads_[thread] = page_->track(own_, Kind::cpu, thread_title(thread));
    }
  }

  // Makes a track for each queue with timed work and one for its copies. A queue whose work another
  // queue shows as well gets a single track of marks.
  void make_queue_tracks() {
    const auto [work, copies] = used_queues();
    const std::vector<bool> is_repeated = observed::repeated_queues(process_);
    for (std::uint32_t i = 0; i < process_.queues.size(); ++i) {
      const observed::Queue& queue = process_.queues[i];
      if (is_repeated[i]) {
        const std::string name = fmt::format(
            "{}, {}", queue.from_marks ? "the engine's marks" : queue.name, queue.device);
        const Track track = page_->track(own_, Kind::marks, name);
        queues_[{i, false}] = track;
        queues_[{i, true}] = track;
        continue;
      }
      for (const bool copy : {false, true}) {
        const auto& queues = copy ? copies : work;
        if (!queues.contains(i)) continue;
        queues_[{i, copy}] = page_->track(own_, copy ? Kind::copy : Kind::device,
                                          queue_title(queue, copy, k_longest_device));
      }
    }
  }

  // Makes a track for each backend that a transfer begins or ends at.
  void make_backend_tracks() {
    std::set<std::string> backends;
    for (const auto& transfer : process_.transfers) {
      for (const std::string& end : {transfer.from, transfer.to}) {
        if (!end.empty() && end != "program") backends.insert(end);
      }
    }
    for (const std::string& backend : backends) {
      backends_[backend] = page_->track(own_, Kind::backend, "backend " + backend);
    }
  }

  // Returns the queues with timed work, and those with timed copies.
  [[nodiscard]] std::pair<std::set<std::uint32_t>, std::set<std::uint32_t>> used_queues() const {
    std::pair<std::set<std::uint32_t>, std::set<std::uint32_t>> out;
    const auto use = [&](std::uint32_t queue, bool copy) {
      if (copy) {
        out.second.insert(queue);
      } else {
        out.first.insert(queue);
      }
    };
    for (const observed::Submission& submission : process_.submissions) {
      for (const observed::BufferWork& buffer : submission.buffers) {
        if (buffer.device && buffer.groups.empty()) use(submission.queue, false);
        for (const auto& members : commands_by_group(buffer)) {
          if (!members.empty()) use(submission.queue, only_copies(members));
        }
      }
    }
    for (const observed::LoneCommand& lone : process_.commands) {
      if (lone.device) use(lone.queue, lone.command.kind == Command::Kind::copy);
    }
    return out;
  }

  void cpu_event(std::uint32_t thread, const observed::Interval& at, std::string_view name,
                 const Detail& detail) {
    if (const Track track = threads_[thread]) page_->event(*track, at, name, detail);
  }

  [[nodiscard]] Track queue(std::uint32_t index, bool copy) const {
    return look_up(queues_, std::pair(index, copy), std::nullopt);
  }

  // Adds a submission on its thread, its buffers on the queue, and an arrow to each.
  void add_submission(const observed::Submission& submission) {
    cpu_event(submission.thread, submission.call, "submit",
              {{{"buffers", fmt::format("{}", submission.buffers.size())}}, 0, {}});
    for (const observed::BufferWork& buffer : submission.buffers) {
      const auto [track, begin] = add_buffer(submission.queue, buffer);
      const Track from = threads_[submission.thread];
      if (track && from) page_->arrow(*from, submission.call.begin, *track, begin, "submit");
    }
  }

  // Adds a buffer's groups as events. Returns the track and the time at which its work begins; no
  // track if nothing is timed.
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
    const auto groups = commands_by_group(buffer);
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (groups[i].empty()) continue;
      const Group group = make_group(groups[i], by_);
      const Track track = queue(index, group.copy);
      if (!track) continue;
      page_->event(*track, buffer.groups[i], group.name, group.detail);
      if (!first.first) first = {track, buffer.groups[i].begin};
    }
    return first;
  }

  // Adds a transfer on the thread that made it, and an arrow between its backends.
  void add_transfer(const observed::Transfer& transfer) {
    Detail detail;
    detail.bytes = transfer.bytes;
    cpu_event(transfer.thread, transfer.call, transfer_text(transfer), detail);
    const Track thread = threads_[transfer.thread];
    const Track from = look_up(backends_, transfer.from, thread);
    const Track to = look_up(backends_, transfer.to, thread);
    if (from && to && *from != *to) {
      page_->arrow(*from, transfer.call.begin, *to, transfer.call.end, transfer.kind, detail);
    }
  }

  // Adds a command that stands in no buffer, with the time from its enqueuing.
  void add_lone_command(const observed::LoneCommand& lone) {
    if (!lone.device) return;
    const Track track = queue(lone.queue, lone.command.kind == Command::Kind::copy);
    if (!track) return;
    Group group = make_group({&lone.command}, by_);
    // Two digits keep the number of different texts small: a page may have a million commands.
    group.detail.words.emplace_back(
        "after it was enqueued",
        fmt::format("about {:.2g} us", (lone.device->begin - lone.enqueued) * 1e6));
    page_->event(*track, *lone.device, group.name, group.detail);
  }

  // Adds an op with its layer; a placed op also with node, types, shape, bytes and FLOPs.
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
  std::map<std::pair<bool, std::string>, Track> ops_;  // by (is marked, backend)
};

// Returns a table of device work that was counted but not timed, which no track shows; nothing if
// all was timed.
std::optional<PageTable> untimed_work(const observed::Timeline& timeline, observed::By by) {
  PageTable out{
      "Device work without times", "It was counted; no track shows it.", {{"What"}, {"Calls", ""}}};
  for (const observed::WorkTime& row : observed::work_times(timeline, by)) {
    if (row.calls > row.timed) out.rows.push_back({row.name, row.calls - row.timed});
  }
  return out.rows.empty() ? std::nullopt : std::optional(std::move(out));
}

// Adds devices, coverage of ops and warnings of the timeline to the facts.
void add_timeline_facts(const observed::Timeline& timeline, PageFacts* facts) {
  std::set<std::string> devices;
  for (const Process& process : timeline.processes) {
    for (const observed::Queue& queue : process.queues) devices.insert(queue.device);
  }
  for (const std::string& device : devices) facts->facts.emplace_back("device", device);
  if (timeline.alignment && timeline.alignment->dispatches != 0) {
    const observed::Alignment& alignment = *timeline.alignment;
    facts->facts.emplace_back(
        "dispatches that belong to ops",
        fmt::format("{} of {}", alignment.dispatches - alignment.unmatched_dispatches,
                    alignment.dispatches));
  }
  if (const auto node_by_node = observed::node_by_node(timeline)) {
    std::string text =
        fmt::format("{} of {}; one of {} is {:.1f} % in ops", node_by_node->graphs,
                    text::plural(node_by_node->graphs + node_by_node->whole_graphs, "graph"),
                    text::plural(node_by_node->rows, "row"), 100 * node_by_node->ops);
    if (const auto cost = node_by_node->cost()) {
      text += fmt::format(", {:+.1f} % compared with one left whole", 100 * *cost);
    }
    facts->facts.emplace_back("computed node by node", text);
  }
  if (timeline.dispatches_serialized) {
    facts->warnings.emplace_back(
        "every dispatch was kept apart to time it alone: the program did not run as it does");
  }
  facts->warnings.insert(facts->warnings.end(), timeline.warnings.begin(), timeline.warnings.end());
}

}  // namespace

TimelineDocument timeline_document(const observed::Timeline& timeline, PageFacts facts,
                                   observed::By by) {
  add_timeline_facts(timeline, &facts);
  if (auto table = untimed_work(timeline, by)) facts.tables.push_back(std::move(*table));
  TimelineDocument page(std::move(facts));
  for (const Process& process : timeline.processes) ProcessPage(process, by, &page).fill();
  return page;
}

namespace {

// Larger than any thread number of the system (4 194 304 at most).
constexpr std::uint64_t k_first_queue_track = 10'000'000;

// Collects the events of a Chrome trace as JSON.
class Trace {
 public:
  void name_process(std::uint32_t pid, const std::string& name) {
    add({{"ph", "M"}, {"pid", pid}, {"name", "process_name"}, {"args", {{"name", name}}}});
  }
  void name_track(std::uint32_t pid, std::uint64_t track, const std::string& name, int order) {
    const Json common = {{"ph", "M"}, {"pid", pid}, {"tid", track}};
    for (Json event : {Json{{"name", "thread_name"}, {"args", {{"name", name}}}},
                       Json{{"name", "thread_sort_index"}, {"args", {{"sort_index", order}}}}}) {
      event.update(common);
      add(event);
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
                        {"serialized", timeline.dispatches_serialized},
                        {"warnings", timeline.warnings}};
    return fmt::format(
        "{{\"displayTimeUnit\": \"ms\",\n\"otherData\": {},\n\"traceEvents\": [\n{}\n],\n"
        "\"weirWork\": [\n{}\n]}}\n",
        dump_json(other, -1), events_, work_elements(timeline));
  }

 private:
  // Returns the rows of the profile as JSON elements, one a line, for readers that parse a trace in
  // pieces. Events can't give them: marks repeat work, and have no op, layer or token.
  static std::string work_elements(const observed::Timeline& timeline) {
    std::string out;
    const auto add_piece = [&](const std::string& key, const Json& value) {
      if (!out.empty()) out += ",\n";
      out += dump_json(Json{{key, value}}, -1);
    };
    Json work = write_fields(observed::to_observed(timeline));
    work.erase("schema");  // the trace has a schema of its own
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

// Returns what the page shows of a command when it is selected.
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

// Writes the events of a process to a Chrome trace.
class ProcessTracks {
 public:
  ProcessTracks(const Process& process, Trace* trace)
      : process_(process), trace_(trace), is_repeated_(observed::repeated_queues(process)) {}

  void draw() {
    trace_->name_process(process_.pid, printable_line(process_.name, 100));
    for (const observed::Submission& submission : process_.submissions) {
      cpu_event(submission.thread, "submit",
                fmt::format("submit ({})", text::plural(submission.buffers.size(), "buffer")),
                submission.call, {});
      for (const observed::BufferWork& buffer : submission.buffers)
        draw_buffer(submission.queue, buffer);
    }
    for (const observed::LoneCommand& lone : process_.commands) {
      if (lone.device) draw_lone_command(lone, *lone.device);
    }
    for (const observed::Wait& wait : process_.waits) {
      cpu_event(wait.thread, "wait", wait.kind, wait.call, {{"sync", wait.sync}});
    }
    for (const observed::GraphRun& run : process_.graph_runs) {
      Json args;
      if (run.graph < process_.graphs.size()) {
        args["nodes"] = process_.graphs[run.graph].nodes.size();
      }
      cpu_event(run.thread, "graph", fmt::format("graph {}", run.graph), run.call, std::move(args));
    }
    for (const observed::OpScope& scope : process_.op_scopes) draw_op(scope);
    for (const observed::Transfer& transfer : process_.transfers) {
      cpu_event(transfer.thread, "transfer", transfer_text(transfer), transfer.call,
                {{"bytes", transfer.bytes}});
    }
    name_tracks();
  }

 private:
  void draw_op(const observed::OpScope& scope) {
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
    cpu_event(scope.thread, "op", scope.op, scope.call, std::move(args));
  }

  void cpu_event(std::uint32_t thread, const char* category, const std::string& name,
                 const observed::Interval& at, Json args) {
    threads_.insert(thread);
    trace_->slice(process_.pid, thread, category, name, at, std::move(args));
  }

  // Adds a slice on the track of a queue or of its copies: two tracks a queue.
  void queue_slice(std::uint32_t queue, bool copy, const std::string& name,
                   const observed::Interval& at, Json args) {
    const std::uint64_t track = k_first_queue_track + 2 * std::uint64_t{queue} + (copy ? 1 : 0);
    queues_.insert(track);
    const char* category = copy ? "copy" : "device";
    if (queue < is_repeated_.size() && is_repeated_[queue]) category = "marks";
    trace_->slice(process_.pid, track, category, name, at, std::move(args));
  }

  void draw_lone_command(const observed::LoneCommand& lone, const observed::Interval& device) {
    Json args;
    if (lone.command.bytes != 0) args["bytes"] = lone.command.bytes;
    args["microseconds since it was enqueued"] =
        std::round((device.begin - lone.enqueued) * 1e9) / 1e3;
    queue_slice(lone.queue, lone.command.kind == Command::Kind::copy, lone.command.name, device,
                std::move(args));
  }

  // Adds a slice for each group of a buffer; a group of several commands lists them.
  void draw_buffer(std::uint32_t queue, const observed::BufferWork& buffer) {
    if (!buffer.device) return;
    const auto groups = commands_by_group(buffer);
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (groups[i].empty()) continue;
      Json args, all;
      for (const Command* command : groups[i]) all.push_back(command_args(*command));
      if (all.size() == 1) {
        args = all[0];
      } else {
        args["may overlap"] = std::move(all);
      }
      queue_slice(queue, only_copies(groups[i]), command_names(groups[i], observed::By::kernel),
                  buffer.groups[i], std::move(args));
    }
  }

  void name_tracks() {
    for (const std::uint64_t track : queues_) {
      const std::uint64_t place = track - k_first_queue_track;
      const auto index = static_cast<std::size_t>(place / 2);
      const std::string name = index < process_.queues.size()
                                   ? queue_title(process_.queues[index], place % 2 == 1, 60)
                                   : "queue";
      trace_->name_track(process_.pid, track, name, static_cast<int>(place) + 1);
    }
    for (const std::uint32_t thread : threads_) {
      trace_->name_track(process_.pid, thread, thread_title(thread), 0);
    }
  }

  const Process& process_;
  Trace* trace_;
  std::vector<bool> is_repeated_;
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
