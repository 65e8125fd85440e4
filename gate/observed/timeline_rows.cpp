// A timeline's work as rows.
#include <functional>
#include <set>
#include <tuple>

#include "gate/observed/pieces.hpp"
#include "gate/observed/totals.hpp"

namespace weir::observed {
namespace {

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
  out.kernel = name_by(piece, By::kernel).name;
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
  out.op = name_by(piece, By::op).name;
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
    const std::uint64_t calls = name_by(piece, By::kernel).calls;
    Row& row = row_of(described(piece));
    add_piece(row.work, piece, calls);
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

// Times in which each thread waited for devices, those that overlap together.
class Waited {
 public:
  explicit Waited(const Process& process) {
    std::vector<const Wait*> waits;
    for (const Wait& wait : process.waits) waits.push_back(&wait);
    std::ranges::sort(waits, {}, [](const Wait* wait) { return wait->call.begin; });
    for (const Wait* wait : waits) {
      std::vector<Interval>& list = threads_[wait->thread];
      if (list.empty() || wait->call.begin > list.back().end) {
        list.push_back(wait->call);
      } else {
        list.back().end = std::max(list.back().end, wait->call.end);
      }
    }
  }
  // Seconds of the scope.
  [[nodiscard]] double within(const OpScope& scope) const {
    const auto list = threads_.find(scope.thread);
    if (list == threads_.end()) return 0;
    double seconds = 0;
    auto at = std::ranges::upper_bound(list->second, scope.call.begin, {}, &Interval::end);
    for (; at != list->second.end() && at->begin < scope.call.end; ++at) {
      seconds += std::min(at->end, scope.call.end) - std::max(at->begin, scope.call.begin);
    }
    return seconds;
  }

 private:
  std::map<std::uint32_t, std::vector<Interval>> threads_;
};

// An engine's marks of ops, each without what is marked within it. Where devices were seen at work,
// those of others alone: what the CPU did itself, without its waits for that work.
void add_marks(const Process& process, bool devices_seen, WorkRows& rows) {
  const std::vector<OpScope>& scopes = process.op_scopes;
  std::vector<double> own;
  std::vector<std::size_t> around;                           // index of the scope that it is in
  std::map<std::uint32_t, std::vector<std::size_t>> stacks;  // by thread, the outermost first
  const Waited waited(process);
  for (const OpScope& scope : scopes) {
    std::vector<std::size_t>& stack = stacks[scope.thread];
    while (!stack.empty() && scopes[stack.back()].depth >= scope.depth) stack.pop_back();
    const double worked = scope.call.length() - (devices_seen ? waited.within(scope) : 0);
    if (!stack.empty()) own[stack.back()] -= worked;
    around.push_back(stack.empty() ? scopes.size() : stack.back());
    stack.push_back(own.size());
    own.push_back(worked);
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
      // Nothing tells when a first one began that holds no mark.
      if (run.call.length() > 0) step.seconds = run.call.length();
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
      observed.profiled_tokens = observed.profiled_tokens.value_or(0) + rows;
    }
  }
  return steps;
}

// Command buffers by label, in the step in which they were submitted; none where no label was
// given.
void add_buffers(const Process& process, const StepsOfRuns& steps, Observed& observed) {
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
void add_splits(const Process& process, Observed& observed) {
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

void add_cpu_calls(const Timeline& timeline, Observed& observed) {
  for (CpuCall& call : cpu_calls(timeline)) {
    ObservedOp& row = observed.cpu_calls.emplace_back();
    row.op = std::move(call.name);
    row.category = std::move(call.category);
    row.calls = static_cast<std::int64_t>(call.calls);
    row.seconds = call.seconds;
    if (call.own_seconds < call.seconds) row.own_seconds = std::max(call.own_seconds, 0.0);
    row.least = call.least;
    row.most = call.most;
    if (call.bytes != 0) {
      row.bytes = static_cast<double>(call.bytes) / static_cast<double>(call.calls);
    }
  }
  std::ranges::stable_sort(observed.cpu_calls, std::greater{}, &ObservedOp::seconds);
}

}  // namespace

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
