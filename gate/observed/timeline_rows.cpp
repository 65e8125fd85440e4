// Turns a timeline's work into rows.
#include <functional>
#include <set>
#include <tuple>

#include "gate/base/find.hpp"
#include "gate/observed/pieces.hpp"
#include "gate/observed/totals.hpp"

namespace weir::observed {
namespace {

// Adds `more` to a sum, which becomes absent once an addend is.
void add_or_make_absent(std::optional<double>& sum, const std::optional<double>& more) {
  sum = sum && more ? std::optional(*sum + *more) : std::nullopt;
}

// Returns the flops of an op. An op that multiplies no matrices has 0; one that does, and whose
// shapes are not known, has none.
std::optional<double> flops_if_known(const ObservedOp& kind) {
  constexpr std::array k_products{"MUL_MAT", "OUT_PROD", "FLASH_ATTN", "CONV_", "IM2COL"};
  const bool product = kind.op.empty() || std::ranges::any_of(k_products, [&](const char* head) {
                         return kind.op.starts_with(head);
                       });
  return kind.flops || product ? kind.flops : std::optional(0.0);
}

// Adds the flops and bytes of all nodes that a fused command computes. Results that pass from one
// node to the next stay out of memory, so their bytes are subtracted.
void add_nodes(const Process& process, const std::vector<Node>& nodes, const Command& command,
               ObservedOp& row) {
  constexpr double k_write_and_read = 2;
  std::uint32_t remaining = command.nodes;
  for (std::size_t i = command.first_node; remaining > 0 && i < nodes.size(); ++i) {
    if (nodes[i].on_cpu) continue;
    --remaining;
    if (!nodes[i].kind || *nodes[i].kind >= process.op_kinds.size()) {
      row.flops.reset();
      row.bytes.reset();
      return;
    }
    const ObservedOp& op_kind = process.op_kinds[*nodes[i].kind];
    add_or_make_absent(row.flops, flops_if_known(op_kind));
    add_or_make_absent(row.bytes, op_kind.bytes);
    if (remaining == 0) continue;
    // The next node of the command reads this result, so it is neither written nor read in memory.
    const std::optional<double> result = result_bytes(op_kind);
    add_or_make_absent(row.bytes,
                       result ? std::optional(-k_write_and_read * *result) : std::nullopt);
  }
}

// Copies the type and shape that the operands of a mark give.
void copy_operands(const Process& process, const OpScope& mark, ObservedOp& out) {
  if (!mark.kind || *mark.kind >= process.op_kinds.size()) return;
  out.type = process.op_kinds[*mark.kind].type;
  out.shape = process.op_kinds[*mark.kind].shape;
}

// Copies the layer, backend and operands of the engine's op scopes around a piece's commands, each
// if all agree. Returns false if a command is in no scope. A piece is work that is timed together.
bool describe_by_scopes(const Piece& piece, ObservedOp& row) {
  const OpScope* first = nullptr;
  bool is_one_layer = true, is_one_backend = true, is_one_kind = true;
  for (const Command* command : piece.commands) {
    if (!command->scope || *command->scope >= piece.process.op_scopes.size()) return false;
    const OpScope& scope = piece.process.op_scopes[*command->scope];
    if (first == nullptr) first = &scope;
    is_one_layer = is_one_layer && scope.layer == first->layer;
    is_one_backend = is_one_backend && scope.backend == first->backend;
    is_one_kind = is_one_kind && scope.kind == first->kind;
  }
  if (first == nullptr) return false;
  if (is_one_layer) row.layer = first->layer;
  if (is_one_backend) row.backend = first->backend;
  if (is_one_kind) copy_operands(piece.process, *first, row);
  return true;
}

// Returns the row of an op's scope, without its times. A scope is an engine's mark around its
// work, or a node that was timed alone.
ObservedOp describe_scope(const Process& process, const OpScope& scope) {
  ObservedOp row;
  const bool is_mark = !scope.place;
  if (is_mark) {
    row.op = scope.op;
    row.backend = scope.backend;
    copy_operands(process, scope, row);
    if (scope.run) row.phase = graph_phase(process, process.graph_runs[*scope.run].graph);
  } else {
    if (scope.place->kind < process.op_kinds.size()) row = process.op_kinds[scope.place->kind];
    row.flops = flops_if_known(row);
    row.phase = graph_phase(process, scope.place->graph);
  }
  row.layer = scope.layer;
  return row;
}

// Copies the backend of the graph nodes that a piece's commands compute, and their layer and
// operands if equal. Adds up their flops and bytes.
void describe_by_nodes(const Piece& piece, const std::vector<Node>& nodes, ObservedOp& row) {
  const Process& process = piece.process;
  row.flops = 0;
  row.bytes = 0;
  const Node* first = nullptr;
  bool is_one_layer = true, is_one_kind = true;
  for (const Command* command : piece.commands) {
    if (command->first_node >= nodes.size() || command->op.empty()) continue;
    const Node& node = nodes[command->first_node];
    if (first == nullptr) first = &node;
    is_one_layer = is_one_layer && node.layer == first->layer;
    is_one_kind = is_one_kind && node.kind == first->kind;
    add_nodes(process, nodes, *command, row);
  }
  if (first == nullptr) return;
  row.backend = first->backend;
  if (is_one_layer) row.layer = first->layer;
  if (is_one_kind && first->kind && *first->kind < process.op_kinds.size()) {
    row.type = process.op_kinds[*first->kind].type;
    row.shape = process.op_kinds[*first->kind].shape;
  }
}

// Returns the row of a piece, without its times. A piece is work that is timed together: one or
// more commands, or the scope of an op. Copies get their bytes, other commands their op's name, and
// ops of a known graph also phase, layer, shape, flops and bytes (of all calls together).
ObservedOp describe_work(const Piece& piece) {
  const Process& process = piece.process;
  if (piece.scope != nullptr) return describe_scope(process, *piece.scope);
  ObservedOp row;
  row.kernel = work_name(piece, By::kernel).name;
  const std::string& label = piece.commands.front()->label;
  const auto has_label = [&](const Command* command) { return command->label == label; };
  if (std::ranges::all_of(piece.commands, has_label)) row.buffer = label;
  if (has_only_copies(piece)) {
    row.category = "copy";
    std::uint64_t bytes = 0;
    for (const Command* command : piece.commands) bytes += command->bytes;
    if (bytes != 0) row.bytes = static_cast<double>(bytes);
    return row;
  }
  row.category = "device";
  const GraphRun* run = find_graph_run(process, piece);
  const bool has_graph = run != nullptr && run->graph < process.graphs.size();
  if (has_graph) row.phase = graph_phase(process, run->graph);
  const auto has_op = [](const Command* command) { return !command->op.empty(); };
  if (!std::ranges::any_of(piece.commands, has_op)) return row;
  row.op = work_name(piece, By::op).name;
  if (!has_graph) return row;
  const bool is_described = describe_by_scopes(piece, row);
  if (!is_described) describe_by_nodes(piece, process.graphs[run->graph].nodes, row);
  return row;
}

// Rows of equal work, added up.
class WorkRows {
 public:
  void add(const Piece& piece, const std::optional<double>& own = std::nullopt) {
    const std::uint64_t calls = work_name(piece, By::kernel).calls;
    Row& row = find_or_add_row(describe_work(piece));
    add_piece(row.work, piece, calls);
    if (own) row.of.seconds_without_nested = row.of.seconds_without_nested.value_or(0) + *own;
  }
  // Adds one call that nobody timed.
  void add_untimed(ObservedOp call) { ++find_or_add_row(std::move(call)).work.calls; }

  // All rows, most time first. Flops and bytes are then for one call.
  std::vector<ObservedOp> finish() && {
    std::vector<ObservedOp> out;
    for (auto& [key, row] : rows_) {
      const auto calls = static_cast<double>(row.work.calls);
      row.of.calls = static_cast<std::int64_t>(row.work.calls);
      if (row.of.flops) *row.of.flops /= calls;
      if (row.of.bytes) *row.of.bytes /= calls;
      if (row.work.timed == row.work.calls) {
        row.of.seconds = row.work.seconds;
        row.of.min_seconds = row.work.min_seconds;
        row.of.max_seconds = row.work.max_seconds;
      }
      out.push_back(std::move(row.of));
    }
    std::ranges::stable_sort(out, std::greater{},
                             [](const ObservedOp& row) { return row.seconds.value_or(-1); });
    return out;
  }

 private:
  using Key = std::tuple<std::string, std::string, std::string, std::string, std::string,
                         std::string, std::string, std::optional<std::int64_t>, Phase>;
  struct Row {
    WorkTime work;
    ObservedOp of;
  };
  // The row of a call, with the call's flops and bytes added; the caller adds the call itself.
  Row& find_or_add_row(ObservedOp call) {
    Row& row = rows_[{call.kernel, call.op, call.type, call.shape, call.backend, call.buffer,
                      call.category, call.layer, call.phase}];
    if (row.work.calls == 0) {
      row.of = std::move(call);
    } else {
      observed::add_or_make_absent(row.of.flops, call.flops);
      observed::add_or_make_absent(row.of.bytes, call.bytes);
    }
    return row;
  }
  std::map<Key, Row> rows_;
};

// Adds the ops of graphs that nobody timed: those on the CPU, and with `on_devices` those on
// devices. A graph that ran node by node has rows with times already.
void add_untimed_nodes(const Process& process, bool on_devices, WorkRows& rows) {
  if (ran_by_node(process)) return;
  for (const GraphRun& run : process.graph_runs) {
    if (run.graph >= process.graphs.size()) continue;
    for (const Node& node : process.graphs[run.graph].nodes) {
      if (!node.on_cpu && !on_devices) continue;
      ObservedOp row;
      if (node.kind && *node.kind < process.op_kinds.size()) row = process.op_kinds[*node.kind];
      row.op = node.op;
      row.backend = node.backend;
      row.layer = node.layer;
      row.phase = graph_phase(process, run.graph);
      row.flops = flops_if_known(row);
      rows.add_untimed(std::move(row));
    }
  }
}

// Returns, for each scope by its index, whether a device's work in it or nested in it has a row.
// `around` holds the index of the scope around each.
std::vector<bool> find_scopes_with_work(const Process& process,
                                        const std::vector<std::size_t>& around) {
  std::vector<bool> has_work(process.op_scopes.size());
  visit_counted_pieces(process, [&](const Piece& piece) {
    for (const Command* command : piece.commands) {
      if (!command->scope) continue;
      for (std::size_t scope = *command->scope; scope < has_work.size() && !has_work[scope];
           scope = around[scope]) {
        has_work[scope] = true;
      }
    }
  });
  return has_work;
}

// Times in which each thread waited for devices; overlapping waits count once.
class WaitTimes {
 public:
  explicit WaitTimes(const Process& process) {
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
  // The seconds of a scope in which its thread waited.
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

// Adds the ops that an engine marked, each without the time of marks nested in it. If probes saw
// devices at work, marks of that work are left out, and the CPU's rows have no waits.
void add_marks(const Process& process, bool devices_seen, WorkRows& rows) {
  const std::vector<OpScope>& scopes = process.op_scopes;
  std::vector<double> own_seconds;
  std::vector<std::size_t> parent;                                // index of the scope around it
  std::map<std::uint32_t, std::vector<std::size_t>> open_scopes;  // by thread, the outermost first
  const WaitTimes waits(process);
  for (const OpScope& scope : scopes) {
    std::vector<std::size_t>& open = open_scopes[scope.thread];
    while (!open.empty() && scopes[open.back()].depth >= scope.depth) open.pop_back();
    const double seconds = scope.call.length() - (devices_seen ? waits.within(scope) : 0);
    if (!open.empty()) own_seconds[open.back()] -= seconds;
    parent.push_back(open.empty() ? scopes.size() : open.back());
    open.push_back(own_seconds.size());
    own_seconds.push_back(seconds);
  }
  const std::vector<bool> has_work = find_scopes_with_work(process, parent);
  std::set<std::string_view> devices;
  for (const Queue& queue : process.queues) {
    if (devices_seen) devices.insert(queue.device);
  }
  for (std::size_t i = 0; i < own_seconds.size(); ++i) {
    if (scopes[i].place || has_work[i] || devices.count(scopes[i].backend) != 0) continue;
    rows.add({process, {}, &scopes[i], scopes[i].call}, std::max(own_seconds[i], 0.0));
  }
}

// By index of a run of a graph: the index of its step.
using StepsOfRuns = std::vector<std::optional<std::size_t>>;

// Adds a step for each run of a graph, and counts the tokens that were decoded. Returns the step's
// index for each run; absent if its graph is not known.
StepsOfRuns add_steps(const Process& process, Observed& observed) {
  StepsOfRuns steps;
  const bool is_node_by_node = ran_by_node(process);
  struct LastStep {
    std::size_t index;
    double begin;
  };
  std::map<std::uint32_t, LastStep> last_steps;  // by thread
  for (const GraphRun& run : process.graph_runs) {
    std::optional<std::size_t>& index = steps.emplace_back();
    if (run.graph >= process.graphs.size()) continue;
    index = observed.steps.size();
    const Phase phase = graph_phase(process, run.graph);
    const auto rows = static_cast<std::int64_t>(process.graphs[run.graph].rows);
    ObservedStep step;
    if (run.from_marks) {
      step.label = fmt::format("evaluation {}", observed.steps.size());
    } else {
      step.label = fmt::format("graph {}", run.graph);
      if (run.node_by_node) step.label += ", node by node";
    }
    step.phase = phase;
    if (rows > 0) step.tokens = rows;
    if (is_node_by_node || run.from_marks) {
      // The begin of a first run without any mark is not known.
      if (run.call.length() > 0) step.seconds = run.call.length();
    } else {
      // The device may work on after the call returned: the step lasts until the next one begins.
      if (const LastStep* last = look_up(last_steps, run.thread)) {
        observed.steps[last->index].seconds = run.call.begin - last->begin;
      }
      last_steps[run.thread] = {*index, run.call.begin};
    }
    observed.steps.push_back(std::move(step));
    if (phase == Phase::decode && (run.node_by_node || !is_node_by_node)) {
      observed.profiled_tokens = observed.profiled_tokens.value_or(0) + rows;
    }
  }
  return steps;
}

// Adds the command buffers that an engine labelled, by label and step. Steps with an unlabelled
// buffer that has work are marked as incomplete.
void add_buffers(const Process& process, const StepsOfRuns& steps, Observed& observed) {
  std::map<std::pair<std::optional<std::size_t>, std::string>, ObservedBuffer> sums;
  std::set<std::size_t> unlabelled;  // steps with work in a buffer without a label
  // Only marks have labels.
  const auto is_marked = [&](const Submission& submission) {
    return submission.queue < process.queues.size() && process.queues[submission.queue].from_marks;
  };
  const auto has_commands = [](const BufferWork& buffer) { return !buffer.commands.empty(); };
  const bool lists_commands =
      std::ranges::any_of(process.submissions, [&](const Submission& submission) {
        return is_marked(submission) && std::ranges::any_of(submission.buffers, has_commands);
      });
  for (const Submission& submission : process.submissions) {
    if (!is_marked(submission)) continue;
    const auto run = find_run_at(process, submission.thread, submission.call.begin);
    const std::optional<std::size_t> step = run ? steps[*run] : std::nullopt;
    for (const BufferWork& buffer : submission.buffers) {
      if (buffer.label.empty()) {
        if (step && !buffer.commands.empty()) unlabelled.insert(*step);
        continue;
      }
      ObservedBuffer row;
      row.label = buffer.label;
      row.step = step;
      if (lists_commands) {
        row.dispatches =
            std::ranges::count(buffer.commands, Command::Kind::dispatch, &Command::kind);
      }
      if (buffer.device) row.seconds = row.min_seconds = row.max_seconds = buffer.device->length();
      const auto [sum, is_new] = sums.try_emplace({step, buffer.label}, row);
      if (!is_new) add_up(sum->second, row);
    }
  }
  if (sums.empty()) return;
  for (const std::size_t step : unlabelled) observed.steps[step].labels_left_out = 1;
  for (auto& [key, sum] : sums) observed.buffers.push_back(std::move(sum));
}

// Adds the splits of each graph: stretches of nodes that run on one backend. Warns if the engine
// cut the graph into another number of splits.
void add_splits(const Process& process, Observed& observed) {
  std::set<std::uint32_t> computed;
  for (const GraphRun& run : process.graph_runs) computed.insert(run.graph);
  for (std::size_t graph = 0; graph < process.graphs.size(); ++graph) {
    const Graph& split_graph = process.graphs[graph];
    if (computed.count(static_cast<std::uint32_t>(graph)) == 0) continue;
    const std::size_t first = observed.splits.size();
    for (const Node& node : split_graph.nodes) {
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
    const std::size_t split_count = observed.splits.size() - first;
    if (split_graph.splits != 0 && split_count != 0 && split_count != split_graph.splits) {
      observed.warnings.push_back(fmt::format(
          "graph {} was cut into {} splits; {} of them lie in different places and are told apart",
          graph, split_graph.splits, split_count));
    }
  }
}

// Adds the CPU's calls as rows, most time first.
void add_cpu_calls(const Timeline& timeline, Observed& observed) {
  for (CpuCall& call : cpu_calls(timeline)) {
    ObservedOp& row = observed.cpu_calls.emplace_back();
    row.op = std::move(call.name);
    row.category = std::move(call.category);
    row.calls = static_cast<std::int64_t>(call.calls);
    row.seconds = call.seconds;
    if (call.seconds_without_nested < call.seconds)
      row.seconds_without_nested = std::max(call.seconds_without_nested, 0.0);
    row.min_seconds = call.min_seconds;
    row.max_seconds = call.max_seconds;
    if (call.bytes != 0) {
      row.bytes = static_cast<double>(call.bytes) / static_cast<double>(call.calls);
    }
  }
  std::ranges::stable_sort(observed.cpu_calls, std::greater{}, &ObservedOp::seconds);
}

}  // namespace

// Turns a timeline, all that the probes saw, into an Observed: rows of work, steps, command
// buffers and counts.
Observed to_observed(const Timeline& timeline) {
  Observed observed;
  observed.format = "weir-probes";
  std::set<std::string> names, devices;
  WorkRows rows;
  for (const Process& process : timeline.processes) {
    names.insert(process.name);
    for (const Queue& queue : process.queues) {
      if (!queue.device.empty()) devices.insert(queue.device);
    }
    bool has_work = false;
    visit_counted_pieces(process, [&](const Piece& piece) {
      has_work = true;
      rows.add(piece);
    });
    add_marks(process, has_work, rows);
    const bool has_marked_runs = std::ranges::any_of(process.graph_runs, &GraphRun::from_marks);
    add_untimed_nodes(process, /*on_devices=*/!has_work && !has_marked_runs, rows);
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

// Sets the layer of each node by its name. A node without one, between two nodes of one layer,
// belongs to that layer.
void find_layers(Graph& graph) {
  std::vector<Node>& nodes = graph.nodes;
  for (Node& node : nodes) node.layer = layer_of_node(node.name);
  std::optional<std::size_t> last;  // the last node with a layer
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
