// Builds a timeline from the event files that probes wrote.
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

constexpr std::uint64_t k_max_counts_bytes = std::uint64_t{64} << 20;
constexpr double k_nanosecond = 1e-9;
constexpr std::uint32_t k_max_depth = 1024;      // nested scopes; probes record 32
constexpr std::uint64_t k_max_nodes = 1U << 20;  // in all graphs of a file

// A mark's scope: its thread, its begin, how deep it is in others.
using ScopeKey = std::tuple<std::uint32_t, std::uint64_t, std::uint32_t>;

// A command buffer of a submission.
struct Buffer {
  std::uint32_t order = 0;
  std::uint64_t serial = 0;
  observed::BufferWork work;
  std::vector<std::pair<std::size_t, ScopeKey>> scopes;  // index of a command, its scope
};

// Adds one probe's events to its process of the timeline. All times stay nanoseconds of the CPU's
// clock; to_relative_seconds() converts them when the timeline's start is known.
class Builder {
 public:
  // Adds the probe's graphs, queues and kinds of ops to `process`.
  Builder(const ProbeRecord& record, observed::Process* process, std::set<std::string>* warnings)
      : record_(record), process_(process), warnings_(warnings) {
    marked_ = record.counts.probe == "instrument";
    first_queue_ = static_cast<std::uint32_t>(process->queues.size());
    first_graph_ = static_cast<std::uint32_t>(process->graphs.size());
    for (const ProbeGraph& graph : record.counts.graphs) {
      const bool rows_apart = (graph.flags & WEIR_GRAPH_ROWS_APART) != 0;
      process->graphs.push_back({{}, graph.rows, graph.splits, rows_apart});
    }
    for (const ProbeQueue& queue : record.counts.queues) {
      const ProbeDevice& device = record.counts.devices[queue.device];
      process->queues.push_back(
          {device.name, fmt::format("{} queue {}.{}", device.api, queue.family, queue.index),
           marked_});
    }
    first_kind_ = static_cast<std::uint32_t>(process->op_kinds.size());
    for (const ProbeOp& op : record.counts.ops) {
      if (marked_ && op.shaped) {
        marked_kinds_.emplace(op.hash, static_cast<std::uint32_t>(process->op_kinds.size()));
      }
      observed::ObservedOp& kind = process->op_kinds.emplace_back();
      kind.op = op.op;
      kind.type = type_text(op);
      kind.shape = shape_text(op);
      kind.backend = record.counts.devices[op.device].name;
      observed::fill_from_shape(kind);
    }
  }

  // Reads the events of all threads into the process, then places device work on the CPU's clock.
  void build() {
    for (const EventThread& thread : record_.events.threads) {
      thread_ = thread.thread;
      last_time_ = 0;
      open_buffer_ = nullptr;
      for (const ProbeEvent& event : thread.events) read_event(event);
    }
    for (observed::Graph& graph : process_->graphs) observed::find_layers(graph);
    set_layers_of_timed_nodes();
    add_submissions();
    add_lone_commands();
    add_warnings();
  }

 private:
  // Warns about clocks, dropped records, and events that found no room.
  void add_warnings() {
    for (const auto& [index, clock] : clocks_) {
      if (timed_devices_.count(index) != 0 && *clock.warning() != '\0') warn(clock.warning());
    }
    if (dropped_records_ != 0)
      warn(fmt::format("{} records of events make no sense and were left out", dropped_records_));
    const EventFile& events = record_.events;
    if ((events.flags & WEIR_EVENTS_DROPPED) != 0) {
      warn(fmt::format("{} events found no room in the event file: the timeline ends early",
                       events.dropped));
    }
    if ((events.flags & WEIR_EVENTS_UNTIMED) != 0) {
      warn("some of the device's work could not be timed");
    }
  }

  // Gives each node that was timed alone the layer of its graph's node. Times of nodes that the
  // graph does not have are dropped.
  void set_layers_of_timed_nodes() {
    std::erase_if(process_->op_scopes, [&](observed::OpScope& scope) {
      if (!scope.place) return false;
      const std::vector<observed::Node>& nodes = process_->graphs[scope.place->graph].nodes;
      if (scope.place->node >= nodes.size()) {
        drop_record();
        return true;
      }
      scope.layer = nodes[scope.place->node].layer;
      return false;
    });
  }

  void warn(std::string_view what) {
    warnings_->insert(
        fmt::format("{} probe in {}: {}", record_.counts.probe, process_->name, what));
  }

  // Counts a record that makes no sense and is left out.
  void drop_record() { ++dropped_records_; }

  // An interval in nanoseconds; one that ends before it begins is empty.
  static observed::Interval interval(std::uint64_t begin, std::uint64_t end) {
    return {static_cast<double>(begin), static_cast<double>(std::max(begin, end))};
  }

  // Adds one event of the current thread to the process; kinds of a later probe are ignored.
  void read_event(const ProbeEvent& event) {
    switch (event.kind) {
      case WEIR_EVENT_SUBMIT:
        return read_submit(event);
      case WEIR_EVENT_BUFFER: {
        const auto body = event.as<weir_event_buffer>();
        open_buffer_ = &buffers_[body.serial].emplace_back(Buffer{body.order, body.serial, {}, {}});
        open_buffer_->work.label = printable_text(event.behind<weir_event_buffer>());
        return;
      }
      case WEIR_EVENT_DISPATCH:
      case WEIR_EVENT_BARRIER:
      case WEIR_EVENT_COPY:
        return read_command(event);
      case WEIR_EVENT_TIMES:
        return read_times(event);
      case WEIR_EVENT_WAIT: {
        const auto body = event.as<weir_event_wait>();
        process_->waits.push_back({.queue = queue_index(event.index),
                                   .thread = thread_,
                                   .kind = std::string(wait_name(body.kind)),
                                   .call = interval(body.begin, body.end),
                                   .sync = (body.flags & WEIR_WAIT_SYNC) != 0});
        return;
      }
      case WEIR_EVENT_CLOCK:
        return clocks_[event.index].add(event.as<weir_event_clock>());
      case WEIR_EVENT_GRAPH: {
        const auto body = event.as<weir_event_graph>();
        if (event.index >= record_.counts.graphs.size()) return drop_record();
        process_->graph_runs.push_back({.graph = first_graph_ + event.index,
                                        .thread = thread_,
                                        .call = interval(body.begin, body.end),
                                        .from_marks = marked_});
        return;
      }
      case WEIR_EVENT_NODE:
        return read_node(event);
      case WEIR_EVENT_TRANSFER:
        return read_transfer(event);
      case WEIR_EVENT_COMMAND:
        return read_lone_command(event);
      case WEIR_EVENT_OP:
        return read_op(event);
      case WEIR_EVENT_OP_TIME:
        return read_op_time(event);
      default:
        return;  // from a later probe
    }
  }

  // Adds the scope of an op that the engine's own marks report.
  void read_op(const ProbeEvent& event) {
    const auto body = event.as<weir_event_op>();
    if (event.index >= record_.counts.devices.size() || body.depth > k_max_depth)
      return drop_record();
    scopes_[{thread_, body.begin, body.depth}] =
        static_cast<std::uint32_t>(process_->op_scopes.size());
    const std::string_view behind = event.behind<weir_event_op>();
    const std::string_view name = behind.substr(0, sizeof weir_probe_op::op);
    ByteReader rest(behind.substr(name.size()));
    std::uint64_t hash = 0;
    const auto kind = rest.read(&hash) ? marked_kinds_.find(hash) : marked_kinds_.end();
    process_->op_scopes.push_back(
        {.op = printable_text(name),
         .backend = record_.counts.devices[event.index].name,
         .layer = body.layer < 0 ? std::nullopt : std::optional(body.layer),
         .token = body.token,
         .depth = body.depth,
         .thread = thread_,
         .call = interval(body.begin, body.end),
         .kind = kind == marked_kinds_.end() ? std::nullopt : std::optional(kind->second)});
  }

  // Adds the time of one node. It belongs to the last graph run, which must be of the same graph
  // and thread.
  void read_op_time(const ProbeEvent& event) {
    const auto body = event.as<weir_event_op_time>();
    auto& runs = process_->graph_runs;
    if (event.index >= record_.counts.ops.size() || runs.empty() ||
        body.graph >= record_.counts.graphs.size() ||
        runs.back().graph != first_graph_ + body.graph || runs.back().thread != thread_) {
      return drop_record();
    }
    runs.back().node_by_node = true;
    const observed::ObservedOp& kind = process_->op_kinds[first_kind_ + event.index];
    process_->op_scopes.push_back(
        {.op = kind.op,
         .backend = kind.backend,
         .layer = std::nullopt,  // set_layers_of_timed_nodes() fills it in
         .thread = thread_,
         .call = interval(body.begin, body.end),
         .place = {{first_graph_ + body.graph, body.position, first_kind_ + event.index}}});
  }

  // Index into Process::queues of the probe's queue `index`; nothing where the probe has no such
  // queue.
  std::optional<std::uint32_t> queue_index(std::uint32_t index) const {
    if (index >= record_.counts.queues.size()) return std::nullopt;
    return first_queue_ + index;
  }

  std::string kernel_name(std::uint32_t index) {
    if (index < record_.counts.kernels.size()) return record_.counts.kernels[index].name;
    ++dropped_records_;
    return "(unknown)";
  }

  void read_submit(const ProbeEvent& event) {
    const auto body = event.as<weir_event_submit>();
    const auto queue = queue_index(event.index);
    if (!queue) return drop_record();
    if (open_buffer_ != nullptr && open_buffer_->serial == body.serial) open_buffer_ = nullptr;
    last_time_ = static_cast<double>(body.end);
    submissions_[body.serial] = {
        .queue = *queue, .thread = thread_, .call = interval(body.begin, body.end), .buffers = {}};
  }

  // Adds a dispatch, barrier or copy to the open command buffer. Outside of one only a marked
  // dispatch is valid.
  void read_command(const ProbeEvent& event) {
    if (open_buffer_ == nullptr && (!marked_ || event.kind != WEIR_EVENT_DISPATCH))
      return drop_record();
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
        ByteReader rest(event.behind<weir_event_dispatch>());
        if (!rest.read(&constants, body.push_bytes) || !rest.read(&in)) return drop_record();
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
    if (open_buffer_ == nullptr) return add_lone_mark(std::move(command), event.index, scope);
    if (scope) open_buffer_->scopes.emplace_back(open_buffer_->work.commands.size(), *scope);
    open_buffer_->work.commands.push_back(std::move(command));
  }

  // Adds a marked dispatch that is in no command buffer. It has no time of its own: it gets the
  // latest time known of its thread.
  void add_lone_mark(Command command, std::uint32_t kernel, std::optional<ScopeKey> scope) {
    const auto& queues = record_.counts.queues;
    if (kernel >= record_.counts.kernels.size()) return drop_record();
    const std::uint32_t device = record_.counts.kernels[kernel].device;
    const auto queue = std::ranges::find(queues, device, &weir_probe_queue::device);
    if (queue == queues.end()) return drop_record();
    observed::LoneCommand lone;
    lone.queue = first_queue_ + static_cast<std::uint32_t>(queue - queues.begin());
    lone.command = std::move(command);
    if (scope) last_time_ = std::max(last_time_, static_cast<double>(std::get<1>(*scope)));
    lone.enqueued = last_time_;
    lone_.push_back({std::move(lone), {}, scope});
  }

  // Index of the mark's scope in Process::op_scopes. Works only after all events were read.
  std::optional<std::uint32_t> find_scope(const ScopeKey& key) const {
    const auto scope = scopes_.find(key);
    return scope == scopes_.end() ? std::nullopt : std::optional(scope->second);
  }

  // Stores the ticks of a command buffer and of its groups of commands.
  void read_times(const ProbeEvent& event) {
    const auto body = event.as<weir_event_times>();
    ByteReader pairs(event.behind<weir_event_times>());
    Times& times = times_[{body.serial, body.order}];
    times.begin = body.begin;
    times.end = body.end;
    std::uint64_t pair[2];
    for (std::uint32_t i = 0; i < body.groups && pairs.read(&pair); ++i) {
      times.groups[body.first + i] = {pair[0], pair[1]};
    }
  }

  // Sets one node of a graph, which grows to its position. All graphs of a file together may have
  // k_max_nodes.
  void read_node(const ProbeEvent& event) {
    const auto body = event.as<weir_event_node>();
    if (event.index >= record_.counts.ops.size() || body.graph >= record_.counts.graphs.size() ||
        body.position >= k_max_nodes)
      return drop_record();
    const ProbeOp& op = record_.counts.ops[event.index];
    const ProbeDevice& device = record_.counts.devices[op.device];
    std::vector<observed::Node>& nodes = process_->graphs[first_graph_ + body.graph].nodes;
    if (nodes.size() <= body.position) {
      const std::uint64_t more = body.position + 1 - nodes.size();
      if (node_count_ + more > k_max_nodes) return drop_record();
      node_count_ += more;
      nodes.resize(body.position + 1);
    }
    nodes[body.position] = {op.op, printable_text(event.behind<weir_event_node>()), device.name,
                            is_cpu_backend(device), first_kind_ + event.index};
  }

  void read_transfer(const ProbeEvent& event) {
    if (event.index >= record_.counts.transfers.size()) return drop_record();
    const ProbeTransfer& entry = record_.counts.transfers[event.index];
    const auto body = event.as<weir_event_transfer>();
    process_->transfers.push_back({std::string(transfer_name(entry.kind)), entry.from, entry.to,
                                   body.bytes, thread_, interval(body.begin, body.end)});
  }

  // Stores a kernel or copy that was enqueued outside of command buffers.
  void read_lone_command(const ProbeEvent& event) {
    const auto body = event.as<weir_event_command>();
    const auto queue = queue_index(body.queue);
    if (!queue) return drop_record();
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
      // The tick at which the command was queued is closer to the call than that of its work.
      const bool has_queue_tick = body.queued != 0 && body.queued <= body.begin;
      clock_of_queue(body.queue)
          .add_submission(body.cpu, has_queue_tick ? body.queued : body.begin);
    }
    lone_.push_back({std::move(lone), body, std::nullopt});
  }

  static bool is_timed(const weir_event_command& body) { return body.begin != 0 || body.end != 0; }

  // Clock of the queue's device, which counts as timed from now on. `queue` is the probe's index.
  DeviceClock& clock_of_queue(std::uint32_t queue) {
    const std::uint32_t device = record_.counts.queues[queue].device;
    timed_devices_.insert(device);
    return clocks_[device];
  }

  // Converts ticks to nanoseconds of the CPU's clock. `near`: a CPU time close to them.
  static std::optional<observed::Interval> device_time(const DeviceClock& clock,
                                                       std::uint64_t begin, std::uint64_t end,
                                                       double near) {
    const auto from = clock.cpu_nanoseconds(begin, near);
    const auto length = clock.length(begin, end);
    if (!from || !length) return std::nullopt;
    return observed::Interval{*from, *from + *length};
  }

  // Ticks of a command buffer, and of its groups by their index.
  struct Times {
    std::uint64_t begin = 0, end = 0;
    std::map<std::uint32_t, std::pair<std::uint64_t, std::uint64_t>> groups;
  };

  // Adds the submissions to the process, each with its command buffers in order, timed where the
  // probe has times of them.
  void add_submissions() {
    finish_clocks();
    for (auto& [serial, submission] : submissions_) {
      std::vector<Buffer>& buffers = buffers_[serial];
      std::ranges::stable_sort(buffers, {}, &Buffer::order);
      for (Buffer& buffer : buffers) {
        const auto times = times_.find({serial, buffer.order});
        if (times != times_.end()) {
          set_device_times(clock_of_queue(submission.queue - first_queue_), times->second,
                           submission.call.begin, &buffer.work);
        }
        for (const auto& [command, key] : buffer.scopes) {
          buffer.work.commands[command].scope = find_scope(key);
        }
        submission.buffers.push_back(std::move(buffer.work));
      }
      process_->submissions.push_back(std::move(submission));
    }
  }

  // Hands each timed submission to its device's clock, then fixes the clocks.
  void finish_clocks() {
    for (const auto& [key, times] : times_) {
      const auto submission = submissions_.find(key.first);
      if (submission == submissions_.end() || submission->second.queue < first_queue_) continue;
      clock_of_queue(submission->second.queue - first_queue_)
          .add_submission(static_cast<std::uint64_t>(submission->second.call.begin), times.begin);
    }
    for (auto& [device, clock] : clocks_) clock.finish();
  }

  // Adds the commands outside of command buffers to the process.
  void add_lone_commands() {
    for (auto& [lone, body, scope] : lone_) {
      if (scope) lone.command.scope = find_scope(*scope);
      if (is_timed(body)) {
        lone.device = device_time(clock_of_queue(body.queue), body.begin, body.end,
                                  static_cast<double>(body.cpu));
        if (!lone.device) {
          drop_record();
          continue;
        }
        if (body.cpu == 0) lone.enqueued = lone.device->begin;
      }
      process_->commands.push_back(std::move(lone));
    }
  }

  // Sets the times of a command buffer and of its groups, or none of them if a group has no time.
  void set_device_times(const DeviceClock& clock, const Times& times, double near,
                        observed::BufferWork* work) {
    work->device = device_time(clock, times.begin, times.end, near);
    if (!work->device || add_group_times(clock, times, near, &work->groups)) return;
    drop_record();
    work->groups.clear();
    work->device.reset();
  }

  // Appends the time of each group; false where one is missing, as groups are numbered from 0.
  static bool add_group_times(const DeviceClock& clock, const Times& times, double near,
                              std::vector<observed::Interval>* groups) {
    for (const auto& [index, ticks] : times.groups) {
      const auto time = device_time(clock, ticks.first, ticks.second, near);
      if (index != groups->size() || !time) return false;
      groups->push_back(*time);
    }
    return true;
  }

  const ProbeRecord& record_;
  observed::Process* process_;
  std::set<std::string>* warnings_;
  bool marked_ = false;  // the events are the engine's own marks
  std::uint32_t first_queue_ = 0, first_kind_ = 0, first_graph_ = 0;
  std::uint32_t thread_ = 0;
  double last_time_ = 0;  // latest time known of the current thread
  std::uint64_t dropped_records_ = 0;
  std::uint64_t node_count_ = 0;
  Buffer* open_buffer_ = nullptr;  // command buffer that commands of this thread go to
  std::map<std::uint64_t, std::vector<Buffer>> buffers_;            // by serial
  std::map<std::uint64_t, observed::Submission> submissions_;       // by serial
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

// Calls `visit` with every interval of the process.
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
  const auto begin = [](const auto& event) { return event.call.begin; };
  (std::ranges::stable_sort(lists, {}, begin), ...);
}

// Sorts scopes of ops by their begin, outer ones before inner ones, and updates the indices that
// commands have. A scope without a layer gets that of the scope around it.
void sort_scopes(observed::Process& process) {
  std::vector<observed::OpScope>& scopes = process.op_scopes;
  std::vector<std::uint32_t> order(scopes.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, {}, [&](std::uint32_t index) {
    return std::pair(scopes[index].call.begin, scopes[index].depth);
  });
  std::vector<observed::OpScope> sorted;
  std::vector<std::uint32_t> new_index(scopes.size());
  std::map<std::uint32_t, std::vector<std::optional<std::int32_t>>> layers;  // by thread, depth
  for (const std::uint32_t from : order) {
    new_index[from] = static_cast<std::uint32_t>(sorted.size());
    observed::OpScope& scope = sorted.emplace_back(std::move(scopes[from]));
    if (scope.place) continue;
    auto& outer_layers = layers[scope.thread];
    outer_layers.resize(scope.depth);
    if (!scope.layer && !outer_layers.empty()) scope.layer = outer_layers.back();
    outer_layers.push_back(scope.layer);
  }
  scopes = std::move(sorted);
  const auto update_index = [&](Command& command) {
    if (command.scope) command.scope = new_index[*command.scope];
  };
  for (observed::Submission& submission : process.submissions) {
    for (observed::BufferWork& buffer : submission.buffers) {
      for (Command& command : buffer.commands) update_index(command);
    }
  }
  for (observed::LoneCommand& lone : process.commands) update_index(lone.command);
}

// Converts nanoseconds of the machine's clock to seconds since the earliest time. Sorts each
// process's lists by time.
void to_relative_seconds(std::vector<observed::Process>& processes) {
  double first = std::numeric_limits<double>::max();
  for (observed::Process& process : processes) {
    each_interval(process, [&](const observed::Interval& interval) {
      first = std::min(first, interval.begin);
    });
    for (const observed::LoneCommand& command : process.commands) {
      if (command.enqueued > 0) first = std::min(first, command.enqueued);
    }
  }
  for (observed::Process& process : processes) {
    each_interval(process, [&](observed::Interval& interval) {
      interval.begin = (interval.begin - first) * k_nanosecond;
      interval.end = (interval.end - first) * k_nanosecond;
    });
    for (observed::LoneCommand& command : process.commands) {
      command.enqueued = (command.enqueued - first) * k_nanosecond;
    }
    sort_by_call(process.submissions, process.waits, process.graph_runs, process.transfers);
    sort_scopes(process);
  }
}

}  // namespace

// Builds one timeline of all records. Those that several probes made of one process become one
// process.
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
    // A probe can serialize only work in command buffers.
    timeline.dispatches_serialized =
        timeline.dispatches_serialized || ((record.events.flags & WEIR_EVENTS_SERIALIZED) != 0 &&
                                           process.submissions.size() > before);
  }
  for (auto& [pid, process] : processes) timeline.processes.push_back(std::move(process));
  to_relative_seconds(timeline.processes);
  timeline.warnings.assign(warnings.begin(), warnings.end());
  return timeline;
}

// Reads each event file in `folder` with the probe file beside it. Files that cannot be read
// become warnings.
Result<ProbeRecords> read_records(const sys::Files& files, const std::string& folder) {
  constexpr std::string_view k_suffix = WEIR_EVENTS_SUFFIX;
  WEIR_TRY(const std::vector<std::string> paths, list_files(files, folder, "", k_suffix));
  ProbeRecords out;
  out.event_bytes.reserve(paths.size());  // records point into them: they must not move
  for (const std::string& path : paths) {
    const std::string stem = path.substr(0, path.size() - k_suffix.size());
    const auto counts_bytes = files.read(stem + WEIR_PROBE_SUFFIX, k_max_counts_bytes);
    auto events_bytes = files.read(path, k_max_event_file_bytes);
    if (!counts_bytes || !events_bytes) {
      out.warnings.push_back((counts_bytes ? events_bytes : counts_bytes).error().message);
      continue;
    }
    out.event_bytes.push_back(std::move(*events_bytes));
    auto counts = read_probe_file(*counts_bytes);
    auto events = read_event_file(out.event_bytes.back());
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
