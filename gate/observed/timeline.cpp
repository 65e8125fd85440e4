#include "gate/observed/timeline.hpp"

#include <functional>
#include <limits>

#include "gate/observed/totals.hpp"
#include "gate/profile/profile.hpp"

namespace weir::observed {
namespace {

// Work that has one time: commands between two barriers, or an op.
struct Piece {
  const Process& process;
  std::vector<const Command*> commands;  // none of an op's
  const OpScope* scope = nullptr;
  std::optional<Interval> time;
};

std::string name_of(const Command& command, By by) {
  return by == By::op && !command.op.empty() ? command.op : command.name;
}

// Work that is alike, or several that may overlap: "a, b x 2".
struct Named {
  std::string name;
  std::uint64_t calls = 0;
};
Named name_of(const Piece& piece, By by) {
  if (piece.scope != nullptr) {
    return {fmt::format("{} on {}", piece.scope->op, piece.scope->backend), 1};
  }
  std::map<std::string, std::uint64_t> names;
  for (const Command* command : piece.commands) ++names[name_of(*command, by)];
  if (names.size() == 1) return {names.begin()->first, piece.commands.size()};
  Named out{"", 1};
  for (const auto& [name, times] : names) {
    out.name += out.name.empty() ? "" : ", ";
    out.name += times == 1 ? name : fmt::format("{} x {}", name, times);
  }
  return out;
}

bool only_copies(const Piece& piece) {
  return piece.scope == nullptr && std::ranges::all_of(piece.commands, [](const Command* one) {
           return one->kind == Command::Kind::copy;
         });
}

void count(WorkTime& row, const Piece& piece, std::uint64_t calls) {
  row.calls += calls;
  for (const Command* command : piece.commands) row.bytes += command->bytes;
  if (!piece.time) return;
  const double each = piece.time->length() / static_cast<double>(calls);
  row.least = row.timed == 0 ? each : std::min(row.least, each);
  row.most = row.timed == 0 ? each : std::max(row.most, each);
  row.timed += calls;
  row.seconds += piece.time->length();
}

template <class Visit>
void each_group(const Process& process, const BufferWork& buffer, const Visit& visit) {
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

bool is_again(const std::vector<bool>& again, std::uint32_t queue) {
  return queue < again.size() && again[queue];
}

struct Seen {
  bool work = false, timed = false;
};

// What the queues of one kind did.
Seen seen_on(const Process& process, bool marked) {
  Seen seen;
  const auto see = [&](std::uint32_t queue, bool work, bool timed) {
    if (queue >= process.queues.size() || process.queues[queue].marked != marked) return;
    seen.work = seen.work || work;
    seen.timed = seen.timed || timed;
  };
  for (const Submission& submission : process.submissions) {
    for (const BufferWork& buffer : submission.buffers) {
      see(submission.queue, !buffer.commands.empty(), buffer.device.has_value());
    }
  }
  for (const LoneCommand& lone : process.commands) see(lone.queue, true, lone.device.has_value());
  return seen;
}

}  // namespace

std::vector<bool> repeated_queues(const Process& process) {
  const Seen own = seen_on(process, false), marks = seen_on(process, true);
  const bool both = own.work && marks.work;
  const bool marks_win = marks.timed && !own.timed;
  std::vector<bool> again;
  for (const Queue& queue : process.queues) again.push_back(both && queue.marked != marks_win);
  return again;
}

namespace {

bool ran_by_node(const Process& process) {
  return std::ranges::any_of(process.graph_runs, &GraphRun::by_node);
}

const GraphRun* run_of(const Process& process, const Piece& piece) {
  if (piece.commands.empty() || !piece.commands.front()->run) return nullptr;
  const std::uint32_t run = *piece.commands.front()->run;
  return run < process.graph_runs.size() ? &process.graph_runs[run] : nullptr;
}

}  // namespace

// Everything that was done, each piece of work once: by devices, and node by node.
template <class Visit>
static void each_piece(const Process& process, const Visit& visit) {
  const std::vector<bool> again = repeated_queues(process);
  for (const Submission& submission : process.submissions) {
    if (is_again(again, submission.queue)) continue;
    for (const BufferWork& buffer : submission.buffers) each_group(process, buffer, visit);
  }
  for (const LoneCommand& lone : process.commands) {
    if (!is_again(again, lone.queue)) visit(Piece{process, {&lone.command}, nullptr, lone.device});
  }
  for (const OpScope& scope : process.op_scopes) {
    if (scope.place) visit(Piece{process, {}, &scope, scope.call});
  }
}

// Where graphs ran node by node, not those beside them that were left whole: devices and the CPU
// are told of the same graphs.
template <class Visit>
static void each_counted(const Process& process, const Visit& visit) {
  const bool cut = ran_by_node(process);
  each_piece(process, [&](const Piece& piece) {
    const GraphRun* run = run_of(process, piece);
    if (!cut || run == nullptr || run->by_node) visit(piece);
  });
}

std::vector<WorkTime> work_times(const Timeline& timeline, By by) {
  std::map<std::pair<bool, std::string>, WorkTime> rows;
  for (const Process& process : timeline.processes) {
    each_counted(process, [&](const Piece& piece) {
      const Named named = name_of(piece, by);
      const bool copy = only_copies(piece);
      WorkTime& row = rows[{copy, named.name}];
      row.name = named.name;
      row.copy = copy;
      count(row, piece, named.calls);
    });
  }
  std::vector<WorkTime> result;
  for (auto& [key, row] : rows) result.push_back(std::move(row));
  std::ranges::stable_sort(result, std::greater{},
                           [](const WorkTime& one) { return std::pair(one.seconds, one.calls); });
  return result;
}

std::optional<double> Coverage::gap() const {
  if (timed == 0 || whole <= 0) return std::nullopt;
  return 1 - parts / whole;
}

static double last_call(const Process& process) {
  double end = 0;
  const auto take = [&](const auto& calls) {
    for (const auto& one : calls) end = std::max(end, one.call.end);
  };
  take(process.submissions);
  take(process.waits);
  take(process.graph_runs);
  take(process.transfers);
  for (const LoneCommand& one : process.commands) end = std::max(end, one.enqueued);
  return end;
}

std::optional<Busy> busy(const Timeline& timeline) {
  struct Work {
    double seconds = 0, first = std::numeric_limits<double>::infinity();
  };
  std::optional<Busy> most;
  for (const Process& process : timeline.processes) {
    std::map<std::uint32_t, Work> queues;
    const auto add = [&](std::uint32_t queue, double asked, const std::optional<Interval>& device) {
      if (!device) return;
      Work& work = queues[queue];
      work.first = std::min(work.first, asked);
      work.seconds += device->length();
    };
    for (const Submission& submission : process.submissions) {
      for (const BufferWork& buffer : submission.buffers) {
        add(submission.queue, submission.call.begin, buffer.device);
      }
    }
    for (const LoneCommand& one : process.commands) add(one.queue, one.enqueued, one.device);
    const double end = last_call(process);
    for (const auto& [queue, work] : queues) {
      if (work.seconds <= 0 || end <= work.first) continue;
      if (!most || work.seconds > most->device) most = Busy{work.seconds, end - work.first};
    }
  }
  return most;
}

Coverage coverage(const Timeline& timeline) {
  Coverage result;
  for (const Process& process : timeline.processes) {
    const std::vector<bool> again = repeated_queues(process);
    for (const Submission& submission : process.submissions) {
      if (is_again(again, submission.queue)) continue;
      for (const BufferWork& buffer : submission.buffers) {
        ++result.buffers;
        // What holds no work has nothing to explain.
        if (!buffer.device || buffer.groups.empty()) continue;
        ++result.timed;
        result.whole += buffer.device->length();
        for (const Interval& group : buffer.groups) result.parts += group.length();
      }
    }
  }
  return result;
}

namespace {

Phase phase_of(const Process& process, std::uint32_t graph) {
  return graph < process.graphs.size()
             ? phase_of_rows(static_cast<std::int64_t>(process.graphs[graph].rows))
             : Phase::unknown;
}

// Adds up, but is absent once one is.
void add(std::optional<double>& sum, const std::optional<double>& more) {
  sum = sum && more ? std::optional(*sum + *more) : std::nullopt;
}

// An op that multiplies no matrices counts as none; one that does, and whose shapes are not known,
// has no number.
std::optional<double> flops_of(const ObservedOp& kind) {
  constexpr std::array k_products{"MUL_MAT", "OUT_PROD", "FLASH_ATTN", "CONV_", "IM2COL"};
  const bool product = kind.op.empty() || std::ranges::any_of(k_products, [&](const char* head) {
                         return kind.op.starts_with(head);
                       });
  return kind.flops || product ? kind.flops : std::optional(0.0);
}

// What a command computes, of flops and bytes: all that its nodes do, but for the bytes that go
// from one to the next.
void add_nodes(const Process& process, const std::vector<Node>& nodes, const Command& command,
               ObservedOp& into) {
  std::uint32_t left = command.nodes;
  for (std::size_t i = command.first_node; left > 0 && i < nodes.size(); ++i) {
    if (nodes[i].on_cpu) continue;
    --left;
    if (!nodes[i].kind || *nodes[i].kind >= process.op_kinds.size()) {
      into.flops = into.bytes = std::nullopt;
      return;
    }
    const ObservedOp& kind = process.op_kinds[*nodes[i].kind];
    add(into.flops, flops_of(kind));
    add(into.bytes, kind.bytes);
    const auto between = left > 0 ? result_bytes(kind) : std::optional(0.0);
    add(into.bytes, between ? std::optional(-2 * *between) : std::nullopt);
  }
}

// Type and shape that the operands of a mark give.
void take_operands(const Process& process, const OpScope& mark, ObservedOp& out) {
  if (!mark.kind || *mark.kind >= process.op_kinds.size()) return;
  out.type = process.op_kinds[*mark.kind].type;
  out.shape = process.op_kinds[*mark.kind].shape;
}

// What marks around its commands say of all of them alike; false where one is in none.
bool describe_by_marks(const Piece& piece, ObservedOp& out) {
  const OpScope* first = nullptr;
  bool one_layer = true, one_backend = true, one_kind = true;
  for (const Command* command : piece.commands) {
    if (!command->scope || *command->scope >= piece.process.op_scopes.size()) return false;
    const OpScope& scope = piece.process.op_scopes[*command->scope];
    if (first == nullptr) first = &scope;
    one_layer = one_layer && scope.layer == first->layer;
    one_backend = one_backend && scope.backend == first->backend;
    one_kind = one_kind && scope.kind == first->kind;
  }
  if (first == nullptr) return false;
  if (one_layer) out.layer = first->layer;
  if (one_backend) out.backend = first->backend;
  if (one_kind) take_operands(piece.process, *first, out);
  return true;
}

// What is known of it without its times; flops and bytes are of all its calls together.
ObservedOp described(const Piece& piece) {
  const Process& process = piece.process;
  ObservedOp out;
  if (const OpScope* scope = piece.scope) {
    if (!scope->place) {  // a mark
      out.op = scope->op;
      out.backend = scope->backend;
      take_operands(process, *scope, out);
      if (scope->run) out.phase = phase_of(process, process.graph_runs[*scope->run].graph);
    } else {
      if (scope->place->kind < process.op_kinds.size()) out = process.op_kinds[scope->place->kind];
      out.flops = flops_of(out);
      out.phase = phase_of(process, scope->place->graph);
    }
    out.layer = scope->layer;
    return out;
  }
  out.kernel = name_of(piece, By::kernel).name;
  const std::string& label = piece.commands.front()->label;
  const auto in_it = [&](const Command* one) { return one->label == label; };
  if (std::ranges::all_of(piece.commands, in_it)) out.buffer = label;
  if (only_copies(piece)) {
    out.category = "copy";
    std::uint64_t moved = 0;
    for (const Command* command : piece.commands) moved += command->bytes;
    if (moved != 0) out.bytes = static_cast<double>(moved);
    return out;
  }
  out.category = "device";
  const GraphRun* run = run_of(process, piece);
  const bool computes = run != nullptr && run->graph < process.graphs.size();
  if (computes) out.phase = phase_of(process, run->graph);
  const auto known = [](const Command* one) { return !one->op.empty(); };
  if (!std::ranges::any_of(piece.commands, known)) return out;
  out.op = name_of(piece, By::op).name;
  if (!computes) return out;
  if (describe_by_marks(piece, out)) return out;
  out.flops = out.bytes = 0;
  const std::vector<Node>& nodes = process.graphs[run->graph].nodes;
  const Node* first = nullptr;
  bool one_layer = true, one_kind = true;
  for (const Command* command : piece.commands) {
    if (command->first_node >= nodes.size() || command->op.empty()) continue;
    const Node& node = nodes[command->first_node];
    if (first == nullptr) first = &node;
    one_layer = one_layer && node.layer == first->layer;
    one_kind = one_kind && node.kind == first->kind;
    add_nodes(process, nodes, *command, out);
  }
  if (first == nullptr) return out;
  out.backend = first->backend;
  if (one_layer) out.layer = first->layer;
  if (one_kind && first->kind && *first->kind < process.op_kinds.size()) {
    out.type = process.op_kinds[*first->kind].type;
    out.shape = process.op_kinds[*first->kind].shape;
  }
  return out;
}

class WorkRows {
 public:
  void add(const Piece& piece, const std::optional<double>& own = std::nullopt) {
    const std::uint64_t calls = name_of(piece, By::kernel).calls;
    Row& row = row_of(described(piece));
    count(row.work, piece, calls);
    if (own) row.of.own_seconds = row.of.own_seconds.value_or(0) + *own;
  }
  // One call that nobody timed.
  void add_untimed(ObservedOp one) { ++row_of(std::move(one)).work.calls; }

  // Most time first.
  std::vector<ObservedOp> finish() && {
    std::vector<ObservedOp> out;
    for (auto& [key, row] : rows_) {
      const auto calls = static_cast<double>(row.work.calls);
      row.of.calls = static_cast<std::int64_t>(row.work.calls);
      if (row.of.flops) *row.of.flops /= calls;
      if (row.of.bytes) *row.of.bytes /= calls;
      if (row.work.timed == row.work.calls) {
        row.of.seconds = row.work.seconds;
        row.of.least = row.work.least;
        row.of.most = row.work.most;
      }
      out.push_back(std::move(row.of));
    }
    std::ranges::stable_sort(out, std::greater{},
                             [](const ObservedOp& one) { return one.seconds.value_or(-1); });
    return out;
  }

 private:
  using Key = std::tuple<std::string, std::string, std::string, std::string, std::string,
                         std::string, std::string, std::optional<std::int64_t>, Phase>;
  struct Row {
    WorkTime work;
    ObservedOp of;
  };
  // Flops and bytes of the call are in it; the call is not yet.
  Row& row_of(ObservedOp one) {
    Row& row = rows_[{one.kernel, one.op, one.type, one.shape, one.backend, one.buffer,
                      one.category, one.layer, one.phase}];
    if (row.work.calls == 0) {
      row.of = std::move(one);
    } else {
      observed::add(row.of.flops, one.flops);
      observed::add(row.of.bytes, one.bytes);
    }
    return row;
  }
  std::map<Key, Row> rows_;
};

// Ops of graphs that nobody timed: those on the CPU, and where no probe saw devices work, those
// there. Where graphs ran node by node, they have rows with times.
void add_untimed_nodes(const Process& process, bool on_devices, WorkRows& rows) {
  if (ran_by_node(process)) return;
  for (const GraphRun& run : process.graph_runs) {
    if (run.graph >= process.graphs.size()) continue;
    for (const Node& node : process.graphs[run.graph].nodes) {
      if (!node.on_cpu && !on_devices) continue;
      ObservedOp one;
      if (node.kind && *node.kind < process.op_kinds.size()) one = process.op_kinds[*node.kind];
      one.op = node.op;
      one.backend = node.backend;
      one.layer = node.layer;
      one.phase = phase_of(process, run.graph);
      one.flops = flops_of(one);
      rows.add_untimed(std::move(one));
    }
  }
}

// By index of a mark's scope: whether work of a device that is in it, or within it, has a row.
std::vector<bool> scopes_with_work(const Process& process, const std::vector<std::size_t>& around) {
  std::vector<bool> out(process.op_scopes.size());
  each_counted(process, [&](const Piece& piece) {
    for (const Command* command : piece.commands) {
      if (!command->scope) continue;
      for (std::size_t at = *command->scope; at < out.size() && !out[at]; at = around[at]) {
        out[at] = true;
      }
    }
  });
  return out;
}

// An engine's marks of ops, each without what is marked within it. Where devices were seen at work,
// those of others alone: what the CPU did itself.
void add_marks(const Process& process, bool devices_seen, WorkRows& rows) {
  const std::vector<OpScope>& scopes = process.op_scopes;
  std::vector<double> own;
  std::vector<std::size_t> around;                           // index of the scope that it is in
  std::map<std::uint32_t, std::vector<std::size_t>> stacks;  // by thread, the outermost first
  for (const OpScope& scope : scopes) {
    std::vector<std::size_t>& stack = stacks[scope.thread];
    while (!stack.empty() && scopes[stack.back()].depth >= scope.depth) stack.pop_back();
    if (!stack.empty()) own[stack.back()] -= scope.call.length();
    around.push_back(stack.empty() ? scopes.size() : stack.back());
    stack.push_back(own.size());
    own.push_back(scope.call.length());
  }
  const std::vector<bool> has_work = scopes_with_work(process, around);
  std::set<std::string_view> devices;
  for (const Queue& queue : process.queues) {
    if (devices_seen) devices.insert(queue.device);
  }
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (scopes[i].place || has_work[i] || devices.count(scopes[i].backend) != 0) continue;
    rows.add({process, {}, &scopes[i], scopes[i].call}, std::max(own[i], 0.0));
  }
}

// By index of a run of a graph: its step.
using StepsOfRuns = std::vector<std::optional<std::size_t>>;

StepsOfRuns add_steps(const Process& process, Observed& observed) {
  StepsOfRuns steps;
  const bool waited = ran_by_node(process);
  std::map<std::uint32_t, std::pair<std::size_t, double>> last;  // by thread: step, its begin
  for (const GraphRun& run : process.graph_runs) {
    std::optional<std::size_t>& index = steps.emplace_back();
    if (run.graph >= process.graphs.size()) continue;
    index = observed.steps.size();
    const Phase phase = phase_of(process, run.graph);
    const auto rows = static_cast<std::int64_t>(process.graphs[run.graph].rows);
    ObservedStep step;
    step.label = run.marked
                     ? fmt::format("evaluation {}", observed.steps.size())
                     : fmt::format("graph {}{}", run.graph, run.by_node ? ", node by node" : "");
    step.phase = phase;
    if (rows > 0) step.tokens = rows;
    if (waited || run.marked) {
      step.seconds = run.call.length();
    } else {
      // The device may have worked on when the call returned: it lasts until the next one begins.
      const auto [before, first] = last.try_emplace(run.thread, *index, run.call.begin);
      if (!first) {
        const auto [of, began] = before->second;
        observed.steps[of].seconds = run.call.begin - began;
        before->second = {*index, run.call.begin};
      }
    }
    observed.steps.push_back(std::move(step));
    if (phase == Phase::decode && (run.by_node || !waited)) {
      observed.profiled_tokens = observed.profiled_tokens.value_or(0) + 1;
    }
  }
  return steps;
}

}  // namespace

std::optional<double> ByNode::cost() const {
  constexpr std::uint64_t k_least = 5;  // of either sort: fewer are noise
  if (!each_whole || *each_whole <= 0 || graphs < k_least || whole < k_least) return std::nullopt;
  return each / *each_whole - 1;
}

namespace {

// Index of the graph that `thread` computed at that time.
std::optional<std::uint32_t> run_at(const Process& process, std::uint32_t thread, double time) {
  const auto behind = std::ranges::upper_bound(process.graph_runs, time, {},
                                               [](const GraphRun& run) { return run.call.begin; });
  for (auto at = behind; at != process.graph_runs.begin();) {
    --at;
    if (at->thread != thread) continue;
    if (at->call.end < time) return std::nullopt;
    return static_cast<std::uint32_t>(at - process.graph_runs.begin());
  }
  return std::nullopt;
}

// Graphs of one kind.
struct Lengths {
  std::vector<double> each, ops, transfers;  // node by node
  std::vector<double> whole;
};

std::map<std::uint32_t, Lengths> lengths_of(const Process& process) {
  std::vector<double> ops(process.graph_runs.size()), transfers(process.graph_runs.size());
  each_piece(process, [&](const Piece& piece) {
    if (!piece.time) return;
    const auto run = piece.scope == nullptr
                         ? piece.commands.front()->run
                         : run_at(process, piece.scope->thread, piece.scope->call.begin);
    if (run && *run < ops.size()) ops[*run] += piece.time->length();
  });
  for (const Transfer& moved : process.transfers) {
    const auto run = run_at(process, moved.thread, moved.call.begin);
    if (run) transfers[*run] += moved.call.length();
  }
  std::map<std::uint32_t, Lengths> out;
  for (std::size_t i = 0; i < process.graph_runs.size(); ++i) {
    const GraphRun& run = process.graph_runs[i];
    const double length = run.call.length();
    Lengths& kind = out[run.graph];
    if (run.by_node) {
      kind.each.push_back(length);
    } else {
      kind.whole.push_back(length);
    }
    if (!run.by_node || length <= 0) continue;
    kind.ops.push_back(ops[i] / length);
    kind.transfers.push_back(transfers[i] / length);
  }
  return out;
}

}  // namespace

std::optional<ByNode> by_node(const Timeline& timeline) {
  ByNode out;
  std::size_t most = 0;
  for (const Process& process : timeline.processes) {
    if (!ran_by_node(process)) continue;
    for (const auto& [graph, kind] : lengths_of(process)) {
      out.graphs += kind.each.size();
      out.whole += kind.whole.size();
      if (kind.ops.size() <= most) continue;
      most = kind.ops.size();
      out.rows = graph < process.graphs.size() ? process.graphs[graph].rows : 0;
      out.each = profile::median_of(kind.each).value_or(0);
      out.ops = profile::median_of(kind.ops).value_or(0);
      out.transfers = profile::median_of(kind.transfers).value_or(0);
      out.each_whole = profile::median_of(kind.whole);
    }
  }
  if (most == 0) return std::nullopt;
  return out;
}

// Command buffers by label, in the step in which they were submitted; none where no label was
// given.
static void add_buffers(const Process& process, const StepsOfRuns& steps, Observed& observed) {
  std::map<std::pair<std::optional<std::size_t>, std::string>, ObservedBuffer> sums;
  std::set<std::size_t> unlabelled;  // steps with work in a buffer without a label
  // Marks alone have labels.
  const auto marked = [&](const Submission& one) {
    return one.queue < process.queues.size() && process.queues[one.queue].marked;
  };
  const bool tells_commands = std::ranges::any_of(process.submissions, [&](const auto& one) {
    return marked(one) && std::ranges::any_of(one.buffers, [](const BufferWork& buffer) {
             return !buffer.commands.empty();
           });
  });
  for (const Submission& submission : process.submissions) {
    if (!marked(submission)) continue;
    const auto run = run_at(process, submission.thread, submission.call.begin);
    const std::optional<std::size_t> step = run ? steps[*run] : std::nullopt;
    for (const BufferWork& buffer : submission.buffers) {
      if (buffer.label.empty()) {
        if (step && !buffer.commands.empty()) unlabelled.insert(*step);
        continue;
      }
      ObservedBuffer one;
      one.label = buffer.label;
      one.step = step;
      if (tells_commands) {
        one.dispatches =
            std::ranges::count(buffer.commands, Command::Kind::dispatch, &Command::kind);
      }
      if (buffer.device) one.seconds = one.least = one.most = buffer.device->length();
      const auto [at, fresh] = sums.try_emplace({step, buffer.label}, one);
      if (!fresh) add_up(at->second, one);
    }
  }
  if (sums.empty()) return;
  for (const std::size_t step : unlabelled) observed.steps[step].labels_left_out = 1;
  for (auto& [key, sum] : sums) observed.buffers.push_back(std::move(sum));
}

// The stretches of each graph that lie in one place. What is copied in front of them no node tells.
static void add_splits(const Process& process, Observed& observed) {
  std::set<std::uint32_t> computed;
  for (const GraphRun& run : process.graph_runs) computed.insert(run.graph);
  for (std::size_t graph = 0; graph < process.graphs.size(); ++graph) {
    const Graph& one = process.graphs[graph];
    if (computed.count(static_cast<std::uint32_t>(graph)) == 0) continue;
    const std::size_t first = observed.splits.size();
    for (const Node& node : one.nodes) {
      if (observed.splits.size() == first || observed.splits.back().backend != node.backend) {
        observed.splits.push_back(
            {.graph = graph,
             .number = static_cast<std::int64_t>(observed.splits.size() - first),
             .backend = node.backend,
             .ops = 0,
             .inputs = {}});
      }
      ++*observed.splits.back().ops;
    }
    const std::size_t found = observed.splits.size() - first;
    if (one.splits != 0 && found != 0 && found != one.splits) {
      observed.warnings.push_back(fmt::format(
          "graph {} was cut into {} splits; {} of them lie in different places and are told apart",
          graph, one.splits, found));
    }
  }
}

static void add_cpu_calls(const Timeline& timeline, Observed& observed) {
  for (CpuCall& call : cpu_calls(timeline)) {
    ObservedOp& row = observed.cpu_calls.emplace_back();
    row.op = std::move(call.name);
    row.category = std::move(call.category);
    row.calls = static_cast<std::int64_t>(call.calls);
    row.seconds = call.seconds;
    row.least = call.least;
    row.most = call.most;
    if (call.bytes != 0) {
      row.bytes = static_cast<double>(call.bytes) / static_cast<double>(call.calls);
    }
  }
  std::ranges::stable_sort(observed.cpu_calls, std::greater{}, &ObservedOp::seconds);
}

Observed observed_of(const Timeline& timeline) {
  Observed observed;
  observed.format = "weir-probes";
  std::set<std::string> names, devices;
  WorkRows rows;
  for (const Process& process : timeline.processes) {
    names.insert(process.name);
    for (const Queue& queue : process.queues) {
      if (!queue.device.empty()) devices.insert(queue.device);
    }
    bool any = false;
    each_counted(process, [&](const Piece& piece) {
      any = true;
      rows.add(piece);
    });
    add_marks(process, any, rows);
    const bool marked = std::ranges::any_of(process.graph_runs, &GraphRun::marked);
    add_untimed_nodes(process, !any && !marked, rows);
    add_splits(process, observed);
    add_buffers(process, add_steps(process, observed), observed);
  }
  auto& context = observed.context;
  if (!names.empty()) context.engine = fmt::format("{}", fmt::join(names, ", "));
  if (!devices.empty()) context.device = fmt::format("{}", fmt::join(devices, ", "));
  observed.ops = std::move(rows).finish();
  add_cpu_calls(timeline, observed);
  observed.counts = token_counts(timeline);
  observed.warnings.insert(observed.warnings.begin(), timeline.warnings.begin(),
                           timeline.warnings.end());
  return observed;
}

void find_layers(Graph& graph) {
  std::vector<Node>& nodes = graph.nodes;
  for (Node& node : nodes) node.layer = layer_of_node(node.name);
  std::optional<std::size_t> last;  // that has one
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!nodes[i].layer) continue;
    if (last && nodes[*last].layer == nodes[i].layer) {
      for (std::size_t between = *last + 1; between < i; ++between) {
        nodes[between].layer = nodes[i].layer;
      }
    }
    last = i;
  }
}

}  // namespace weir::observed
