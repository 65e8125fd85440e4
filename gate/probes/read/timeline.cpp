#include "gate/probes/read/timeline.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "gate/observed/totals.hpp"
#include "gate/probes/read/bytes.hpp"
#include "gate/probes/read/device_clock.hpp"
#include "gate/probes/read/read_events.hpp"
#include "gate/sys/paths.hpp"

namespace weir::probes {
namespace {

using observed::Command;

constexpr std::uint64_t k_most_counts_bytes = std::uint64_t{64} << 20;
constexpr double k_nanosecond = 1e-9;
constexpr std::uint32_t k_most_depth = 1024;      // of scopes; probes keep 32
constexpr std::uint64_t k_most_nodes = 1U << 20;  // of all graphs of a file together

// A mark's scope: its thread, its begin, how deep it is in others.
using ScopeKey = std::tuple<std::uint32_t, std::uint64_t, std::uint32_t>;

// A command buffer of a submission.
struct Buffer {
  std::uint32_t order = 0;
  std::uint64_t serial = 0;
  observed::BufferWork work;
  std::vector<std::pair<std::size_t, ScopeKey>> scopes;  // of commands, by their index
};

// One probe's events in one process, while they are put together. CPU times stay in nanoseconds in
// `begin` and `end` until the timeline's start is known.
class Builder {
 public:
  Builder(const ProbeRecord& record, observed::Process* into, std::set<std::string>* warnings)
      : record_(record), into_(into), warnings_(warnings) {
    marked_ = record.counts.probe == "instrument";
    first_queue_ = static_cast<std::uint32_t>(into->queues.size());
    first_graph_ = static_cast<std::uint32_t>(into->graphs.size());
    for (const ProbeGraph& graph : record.counts.graphs) {
      const bool rows_apart = (graph.flags & WEIR_GRAPH_ROWS_APART) != 0;
      into->graphs.push_back({{}, graph.rows, graph.splits, rows_apart});
    }
    for (const ProbeQueue& queue : record.counts.queues) {
      const ProbeDevice& device = record.counts.devices[queue.device];
      into->queues.push_back({device.name,
                              fmt::format("{} queue {}.{}", device.api, queue.family, queue.index),
                              marked_});
    }
    first_kind_ = static_cast<std::uint32_t>(into->op_kinds.size());
    for (const ProbeOp& op : record.counts.ops) {
      if (marked_ && op.shaped) {
        marked_kinds_.emplace(op.hash, static_cast<std::uint32_t>(into->op_kinds.size()));
      }
      observed::ObservedOp& kind = into->op_kinds.emplace_back();
      kind.op = op.op;
      kind.type = type_text(op);
      kind.shape = shape_text(op);
      kind.backend = record.counts.devices[op.device].name;
      observed::fill_from_shape(kind);
    }
  }

  void build() {
    for (const EventThread& thread : record_.events.threads) {
      thread_ = thread.thread;
      last_ = 0;
      open_ = nullptr;
      for (const ProbeEvent& event : thread.events) take(event);
    }
    for (observed::Graph& graph : into_->graphs) observed::find_layers(graph);
    std::erase_if(into_->op_scopes, [&](observed::OpScope& scope) {
      if (!scope.place) return false;
      const std::vector<observed::Node>& nodes = into_->graphs[scope.place->graph].nodes;
      const bool known = scope.place->node < nodes.size();
      if (known) scope.layer = nodes[scope.place->node].layer;
      if (!known) lose();
      return !known;
    });
    place_submissions();
    for (const auto& [index, clock] : clocks_) {
      if (timed_devices_.count(index) != 0 && *clock.doubt() != '\0') warn(clock.doubt());
    }
    if (lost_ != 0)
      warn(fmt::format("{} records of events make no sense and were left out", lost_));
    const EventFile& events = record_.events;
    if ((events.flags & WEIR_EVENTS_DROPPED) != 0) {
      warn(fmt::format("{} events found no room in the event file: the timeline ends early",
                       events.dropped));
    }
    if ((events.flags & WEIR_EVENTS_UNTIMED) != 0) {
      warn("some of the device's work could not be timed");
    }
  }

 private:
  void warn(std::string_view what) {
    warnings_->insert(fmt::format("{} probe in {}: {}", record_.counts.probe, into_->name, what));
  }

  // A record that makes no sense.
  void lose() { ++lost_; }

  static observed::Interval call(std::uint64_t begin, std::uint64_t end) {
    return {static_cast<double>(begin), static_cast<double>(std::max(begin, end))};
  }

  void take(const ProbeEvent& event) {
    switch (event.kind) {
      case WEIR_EVENT_SUBMIT:
        return take_submit(event);
      case WEIR_EVENT_BUFFER: {
        const auto body = event.as<weir_event_buffer>();
        open_ = &buffers_[body.serial].emplace_back(Buffer{body.order, body.serial, {}, {}});
        open_->work.label = text_of(event.behind<weir_event_buffer>());
        return;
      }
      case WEIR_EVENT_DISPATCH:
      case WEIR_EVENT_BARRIER:
      case WEIR_EVENT_COPY:
        return take_command(event);
      case WEIR_EVENT_TIMES:
        return take_times(event);
      case WEIR_EVENT_WAIT: {
        const auto body = event.as<weir_event_wait>();
        into_->waits.push_back({.queue = queue_of(event.index),
                                .thread = thread_,
                                .kind = std::string(wait_name(body.kind)),
                                .call = call(body.begin, body.end),
                                .sync = (body.flags & WEIR_WAIT_SYNC) != 0});
        return;
      }
      case WEIR_EVENT_CLOCK:
        return clocks_[event.index].add(event.as<weir_event_clock>());
      case WEIR_EVENT_GRAPH: {
        const auto body = event.as<weir_event_graph>();
        if (event.index >= record_.counts.graphs.size()) return lose();
        into_->graph_runs.push_back({.graph = first_graph_ + event.index,
                                     .thread = thread_,
                                     .call = call(body.begin, body.end),
                                     .marked = marked_});
        return;
      }
      case WEIR_EVENT_NODE:
        return take_node(event);
      case WEIR_EVENT_TRANSFER:
        return take_transfer(event);
      case WEIR_EVENT_COMMAND:
        return take_lone(event);
      case WEIR_EVENT_OP:
        return take_op(event);
      case WEIR_EVENT_OP_TIME:
        return take_op_time(event);
      default:
        return;  // of a later probe
    }
  }

  void take_op(const ProbeEvent& event) {
    const auto body = event.as<weir_event_op>();
    if (event.index >= record_.counts.devices.size() || body.depth > k_most_depth) return lose();
    scopes_[{thread_, body.begin, body.depth}] =
        static_cast<std::uint32_t>(into_->op_scopes.size());
    const std::string_view behind = event.behind<weir_event_op>();
    const std::string_view name = behind.substr(0, sizeof weir_probe_op::op);
    Bytes rest(behind.substr(name.size()));
    std::uint64_t hash = 0;
    const auto kind = rest.take(&hash) ? marked_kinds_.find(hash) : marked_kinds_.end();
    into_->op_scopes.push_back(
        {.op = text_of(name),
         .backend = record_.counts.devices[event.index].name,
         .layer = body.layer < 0 ? std::nullopt : std::optional(body.layer),
         .token = body.token,
         .depth = body.depth,
         .thread = thread_,
         .call = call(body.begin, body.end),
         .kind = kind == marked_kinds_.end() ? std::nullopt : std::optional(kind->second)});
  }

  void take_op_time(const ProbeEvent& event) {
    const auto body = event.as<weir_event_op_time>();
    auto& runs = into_->graph_runs;
    if (event.index >= record_.counts.ops.size() || runs.empty() ||
        body.graph >= record_.counts.graphs.size() ||
        runs.back().graph != first_graph_ + body.graph || runs.back().thread != thread_) {
      return lose();
    }
    runs.back().by_node = true;
    const observed::ObservedOp& kind = into_->op_kinds[first_kind_ + event.index];
    into_->op_scopes.push_back(
        {.op = kind.op,
         .backend = kind.backend,
         .layer = std::nullopt,  // when all nodes are known
         .thread = thread_,
         .call = call(body.begin, body.end),
         .place = {{first_graph_ + body.graph, body.position, first_kind_ + event.index}}});
  }

  std::optional<std::uint32_t> queue_of(std::uint32_t index) const {
    if (index >= record_.counts.queues.size()) return std::nullopt;
    return first_queue_ + index;
  }

  std::string kernel_name(std::uint32_t index) {
    if (index < record_.counts.kernels.size()) return record_.counts.kernels[index].name;
    ++lost_;
    return "(unknown)";
  }

  void take_submit(const ProbeEvent& event) {
    const auto body = event.as<weir_event_submit>();
    const auto queue = queue_of(event.index);
    if (!queue) return lose();
    if (open_ != nullptr && open_->serial == body.serial) open_ = nullptr;
    last_ = static_cast<double>(body.end);
    submitted_[body.serial] = {
        .queue = *queue, .thread = thread_, .call = call(body.begin, body.end), .buffers = {}};
  }

  void take_command(const ProbeEvent& event) {
    if (open_ == nullptr && (!marked_ || event.kind != WEIR_EVENT_DISPATCH)) return lose();
    Command command;
    std::optional<ScopeKey> scope;
    std::uint32_t group = WEIR_NO_GROUP;
    if (event.kind == WEIR_EVENT_DISPATCH) {
      const auto body = event.as<weir_event_dispatch>();
      command.kind = Command::Kind::dispatch;
      command.name = kernel_name(event.index);
      command.groups = {body.x, body.y, body.z};
      command.indirect = (body.flags & WEIR_DISPATCH_INDIRECT) != 0;
      command.push_bytes = body.push_bytes;
      group = body.group;
      if ((body.flags & WEIR_DISPATCH_IN_OP) != 0) {
        std::string constants;
        weir_event_in_op in{};
        Bytes rest(event.behind<weir_event_dispatch>());
        if (!rest.take(&constants, body.push_bytes) || !rest.take(&in)) return lose();
        scope = {thread_, in.begin, in.depth};
      }
    } else if (event.kind == WEIR_EVENT_COPY) {
      const auto body = event.as<weir_event_copy>();
      command.kind = Command::Kind::copy;
      command.name = copy_name(body.kind);
      command.bytes = body.bytes;
      group = body.group;
    } else {
      command.kind = Command::Kind::barrier;
      command.name = barrier_name(event.as<weir_event_barrier>());
    }
    if (group != WEIR_NO_GROUP) command.group = group;
    if (open_ == nullptr) return add_lone_mark(std::move(command), event.index, scope);
    if (scope) open_->scopes.emplace_back(open_->work.commands.size(), *scope);
    open_->work.commands.push_back(std::move(command));
  }

  // A marked dispatch that is in no command buffer. Nothing says when it was, but for its scope.
  void add_lone_mark(Command command, std::uint32_t kernel, std::optional<ScopeKey> scope) {
    const auto& queues = record_.counts.queues;
    if (kernel >= record_.counts.kernels.size()) return lose();
    const std::uint32_t device = record_.counts.kernels[kernel].device;
    const auto queue = std::ranges::find(queues, device, &weir_probe_queue::device);
    if (queue == queues.end()) return lose();
    observed::LoneCommand lone;
    lone.queue = first_queue_ + static_cast<std::uint32_t>(queue - queues.begin());
    lone.command = std::move(command);
    if (scope) last_ = std::max(last_, static_cast<double>(std::get<1>(*scope)));
    lone.enqueued = last_;
    lone_.push_back({std::move(lone), {}, scope});
  }

  // Index of the mark, once all are known.
  std::optional<std::uint32_t> scope_of(const ScopeKey& key) const {
    const auto found = scopes_.find(key);
    return found == scopes_.end() ? std::nullopt : std::optional(found->second);
  }

  void take_times(const ProbeEvent& event) {
    const auto body = event.as<weir_event_times>();
    Bytes pairs(event.behind<weir_event_times>());
    Times& times = times_[{body.serial, body.order}];
    times.begin = body.begin;
    times.end = body.end;
    std::uint64_t pair[2];
    for (std::uint32_t i = 0; i < body.groups && pairs.take(&pair); ++i) {
      times.groups[body.first + i] = {pair[0], pair[1]};
    }
  }

  void take_node(const ProbeEvent& event) {
    const auto body = event.as<weir_event_node>();
    if (event.index >= record_.counts.ops.size() || body.graph >= record_.counts.graphs.size() ||
        body.position >= k_most_nodes)
      return lose();
    const ProbeOp& op = record_.counts.ops[event.index];
    const ProbeDevice& device = record_.counts.devices[op.device];
    std::vector<observed::Node>& nodes = into_->graphs[first_graph_ + body.graph].nodes;
    if (nodes.size() <= body.position) {
      const std::uint64_t more = body.position + 1 - nodes.size();
      if (nodes_ + more > k_most_nodes) return lose();
      nodes_ += more;
      nodes.resize(body.position + 1);
    }
    nodes[body.position] = {op.op, text_of(event.behind<weir_event_node>()), device.name,
                            is_cpu_backend(device), first_kind_ + event.index};
  }

  void take_transfer(const ProbeEvent& event) {
    if (event.index >= record_.counts.transfers.size()) return lose();
    const ProbeTransfer& entry = record_.counts.transfers[event.index];
    const auto body = event.as<weir_event_transfer>();
    into_->transfers.push_back({std::string(transfer_name(entry.kind)), entry.from, entry.to,
                                body.bytes, thread_, call(body.begin, body.end)});
  }

  void take_lone(const ProbeEvent& event) {
    const auto body = event.as<weir_event_command>();
    const auto queue = queue_of(body.queue);
    if (!queue) return lose();
    observed::LoneCommand lone;
    lone.queue = *queue;
    if (body.copy != 0) {
      lone.command.kind = Command::Kind::copy;
      lone.command.name = copy_name(body.copy - 1);
      lone.command.bytes = body.bytes;
    } else {
      lone.command.name = kernel_name(event.index);
    }
    lone.enqueued = static_cast<double>(body.cpu);
    if (is_timed(body) && body.cpu != 0) {
      // A device's time of the call itself is nearer to it than that of the work.
      const bool queued = body.queued != 0 && body.queued <= body.begin;
      clock_of_queue(body.queue).add_submission(body.cpu, queued ? body.queued : body.begin);
    }
    lone_.push_back({std::move(lone), body, std::nullopt});
  }

  static bool is_timed(const weir_event_command& body) { return body.begin != 0 || body.end != 0; }

  DeviceClock& clock_of_queue(std::uint32_t queue) {
    const std::uint32_t device = record_.counts.queues[queue].device;
    timed_devices_.insert(device);
    return clocks_[device];
  }

  static std::optional<observed::Interval> device_time(const DeviceClock& clock,
                                                       std::uint64_t begin, std::uint64_t end,
                                                       double near) {
    const auto from = clock.nanoseconds(begin, near);
    const auto length = clock.length(begin, end);
    if (!from || !length) return std::nullopt;
    return observed::Interval{*from, *from + *length};
  }

  struct Times {
    std::uint64_t begin = 0, end = 0;
    std::map<std::uint32_t, std::pair<std::uint64_t, std::uint64_t>> groups;
  };

  void place_submissions() {
    for (const auto& [key, times] : times_) {
      const auto submission = submitted_.find(key.first);
      if (submission == submitted_.end() || submission->second.queue < first_queue_) continue;
      clock_of_queue(submission->second.queue - first_queue_)
          .add_submission(static_cast<std::uint64_t>(submission->second.call.begin), times.begin);
    }
    for (auto& [device, clock] : clocks_) clock.settle();
    for (auto& [serial, submission] : submitted_) {
      std::vector<Buffer>& buffers = buffers_[serial];
      std::ranges::stable_sort(buffers, {}, &Buffer::order);
      for (Buffer& buffer : buffers) {
        const auto times = times_.find({serial, buffer.order});
        if (times != times_.end()) {
          place(clock_of_queue(submission.queue - first_queue_), times->second,
                submission.call.begin, &buffer.work);
        }
        for (const auto& [command, key] : buffer.scopes) {
          buffer.work.commands[command].scope = scope_of(key);
        }
        submission.buffers.push_back(std::move(buffer.work));
      }
      into_->submissions.push_back(std::move(submission));
    }
    for (auto& [lone, body, scope] : lone_) {
      if (scope) lone.command.scope = scope_of(*scope);
      if (is_timed(body)) {
        lone.device = device_time(clock_of_queue(body.queue), body.begin, body.end,
                                  static_cast<double>(body.cpu));
        if (!lone.device) {
          ++lost_;
          continue;
        }
        if (body.cpu == 0) lone.enqueued = lone.device->begin;
      }
      into_->commands.push_back(std::move(lone));
    }
  }

  void place(const DeviceClock& clock, const Times& times, double near,
             observed::BufferWork* work) {
    work->device = device_time(clock, times.begin, times.end, near);
    if (!work->device) return;
    std::uint32_t next = 0;
    for (const auto& [index, pair] : times.groups) {
      const auto time = device_time(clock, pair.first, pair.second, near);
      if (index != next++ || !time) {
        ++lost_;
        work->groups.clear();
        work->device.reset();
        return;
      }
      work->groups.push_back(*time);
    }
  }

  const ProbeRecord& record_;
  observed::Process* into_;
  std::set<std::string>* warnings_;
  bool marked_ = false;  // by the engine itself
  std::uint32_t first_queue_ = 0, first_kind_ = 0, first_graph_ = 0;
  std::uint32_t thread_ = 0;
  double last_ = 0;  // when the thread is known to have been
  std::uint64_t lost_ = 0;
  std::uint64_t nodes_ = 0;
  Buffer* open_ = nullptr;
  std::map<std::uint64_t, std::vector<Buffer>> buffers_;            // by serial
  std::map<std::uint64_t, observed::Submission> submitted_;         // by serial
  std::map<std::pair<std::uint64_t, std::uint32_t>, Times> times_;  // by serial and order
  struct Lone {
    observed::LoneCommand command;
    weir_event_command body;
    std::optional<ScopeKey> scope;
  };
  std::vector<Lone> lone_;
  std::map<ScopeKey, std::uint32_t> scopes_;             // index into Process::op_scopes
  std::map<std::uint64_t, std::uint32_t> marked_kinds_;  // by hash: index into Process::op_kinds
  std::map<std::uint32_t, DeviceClock> clocks_;          // by device
  std::set<std::uint32_t> timed_devices_;
};

template <class Visit>
void each_interval(observed::Process& process, Visit visit) {
  for (observed::Submission& submission : process.submissions) {
    visit(submission.call);
    for (observed::BufferWork& buffer : submission.buffers) {
      if (buffer.device) visit(*buffer.device);
      for (observed::Interval& group : buffer.groups) visit(group);
    }
  }
  for (observed::LoneCommand& command : process.commands) {
    if (command.device) visit(*command.device);
  }
  for (observed::Wait& wait : process.waits) visit(wait.call);
  for (observed::GraphRun& run : process.graph_runs) visit(run.call);
  for (observed::Transfer& transfer : process.transfers) visit(transfer.call);
  for (observed::OpScope& scope : process.op_scopes) visit(scope.call);
}

template <class... List>
void sort_by_call(List&... lists) {
  const auto begin = [](const auto& one) { return one.call.begin; };
  (std::ranges::stable_sort(lists, {}, begin), ...);
}

// In the order of their begin, those around others before them. One without a layer has that of the
// one around it.
void sort_scopes(observed::Process& process) {
  std::vector<observed::OpScope>& scopes = process.op_scopes;
  std::vector<std::uint32_t> order(scopes.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, {}, [&](std::uint32_t at) {
    return std::pair(scopes[at].call.begin, scopes[at].depth);
  });
  std::vector<observed::OpScope> sorted;
  std::vector<std::uint32_t> place(scopes.size());
  std::map<std::uint32_t, std::vector<std::optional<std::int32_t>>> layers;  // by thread, depth
  for (const std::uint32_t from : order) {
    place[from] = static_cast<std::uint32_t>(sorted.size());
    observed::OpScope& scope = sorted.emplace_back(std::move(scopes[from]));
    if (scope.place) continue;
    auto& around = layers[scope.thread];
    around.resize(scope.depth);
    if (!scope.layer && !around.empty()) scope.layer = around.back();
    around.push_back(scope.layer);
  }
  scopes = std::move(sorted);
  const auto move = [&](Command& command) {
    if (command.scope) command.scope = place[*command.scope];
  };
  for (observed::Submission& submission : process.submissions) {
    for (observed::BufferWork& buffer : submission.buffers)
      std::ranges::for_each(buffer.commands, move);
  }
  for (observed::LoneCommand& lone : process.commands) move(lone.command);
}

// From nanoseconds of the machine's clock to seconds from the earliest time.
void rebase(std::vector<observed::Process>& processes) {
  double first = std::numeric_limits<double>::max();
  for (observed::Process& process : processes) {
    each_interval(process,
                  [&](const observed::Interval& at) { first = std::min(first, at.begin); });
    for (const observed::LoneCommand& command : process.commands) {
      if (command.enqueued > 0) first = std::min(first, command.enqueued);
    }
  }
  for (observed::Process& process : processes) {
    each_interval(process, [&](observed::Interval& at) {
      at.begin = (at.begin - first) * k_nanosecond;
      at.end = (at.end - first) * k_nanosecond;
    });
    for (observed::LoneCommand& command : process.commands) {
      command.enqueued = (command.enqueued - first) * k_nanosecond;
    }
    sort_by_call(process.submissions, process.waits, process.graph_runs, process.transfers);
    sort_scopes(process);
  }
}

}  // namespace

observed::Timeline make_timeline(std::vector<ProbeRecord> records) {
  observed::Timeline timeline;
  std::map<std::uint32_t, observed::Process> processes;
  std::set<std::string> warnings;
  for (const ProbeRecord& record : records) {
    observed::Process& process = processes[record.counts.pid];
    process.pid = record.counts.pid;
    process.name = record.counts.process;
    timeline.recording += static_cast<double>(record.events.recording) * k_nanosecond;
    const std::size_t before = process.submissions.size();
    Builder(record, &process, &warnings).build();
    // Only what is in command buffers can be kept apart by a probe.
    timeline.serialized =
        timeline.serialized || ((record.events.flags & WEIR_EVENTS_SERIALIZED) != 0 &&
                                process.submissions.size() > before);
  }
  for (auto& [pid, process] : processes) timeline.processes.push_back(std::move(process));
  rebase(timeline.processes);
  timeline.warnings.assign(warnings.begin(), warnings.end());
  return timeline;
}

Result<ProbeRecords> read_records(const sys::Files& files, const std::string& folder) {
  constexpr std::string_view k_suffix = WEIR_EVENTS_SUFFIX;
  WEIR_TRY(const std::vector<std::string> paths, files_named(files, folder, "", k_suffix));
  ProbeRecords out;
  out.kept.reserve(paths.size());
  for (const std::string& path : paths) {
    const std::string stem = path.substr(0, path.size() - k_suffix.size());
    const auto counts_bytes = files.read(stem + WEIR_PROBE_SUFFIX, k_most_counts_bytes);
    auto events_bytes = files.read(path, k_most_event_file);
    if (!counts_bytes || !events_bytes) {
      out.warnings.push_back((counts_bytes ? events_bytes : counts_bytes).error().message);
      continue;
    }
    out.kept.push_back(std::move(*events_bytes));
    auto counts = read_probe_file(*counts_bytes);
    auto events = read_event_file(out.kept.back());
    if (!counts || !events) {
      out.warnings.push_back(fmt::format("{}: {}", sys::file_name_of(path),
                                         (counts ? events.error() : counts.error()).message));
      continue;
    }
    if (did_work(*counts)) out.records.push_back({std::move(*counts), std::move(*events)});
  }
  return out;
}

Result<observed::Timeline> collect_timeline(const sys::Files& files, const std::string& folder) {
  WEIR_TRY(ProbeRecords read, read_records(files, folder));
  observed::Timeline timeline = make_timeline(std::move(read.records));
  timeline.unread = read.warnings.size();
  timeline.warnings.insert(timeline.warnings.end(), read.warnings.begin(), read.warnings.end());
  return timeline;
}

}  // namespace weir::probes
