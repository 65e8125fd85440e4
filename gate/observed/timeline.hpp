// A timeline of one run of one program: what its CPU asked of devices, and what these did, and
// when.
//
// Times are seconds from the earliest one in the timeline; a device's are tied to the CPU's clock
// as well as its driver allows, and a warning says if that is not well. Absent is absent: work that
// was not timed has no interval.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gate/observed/observed.hpp"

namespace weir::observed {
struct Interval {
  double begin = 0, end = 0;  // seconds; end >= begin
  [[nodiscard]] double length() const { return end - begin; }
};

// One command of a command buffer.
struct Command {
  enum class Kind { dispatch, barrier, copy };
  Kind kind = Kind::dispatch;
  std::string name;  // kernel; for a copy "fill" and the like; what a barrier orders ("memory")
  std::string op;    // the ops of the engine's graph it computes (align()); "" when not known
  std::string node;  // the engine's name of the first node of these; "" when not known
  // Index into Process::graph_runs of the run that sent it, and the nodes of that graph that it
  // computes: so many of the device's, from the first on. None if it is a part of another's op.
  std::optional<std::uint32_t> run{};
  std::uint32_t first_node = 0, nodes = 0;
  std::optional<std::uint32_t> scope{};   // index into Process::op_scopes: the mark that it is in
  std::string label{};                    // the command buffer's, as marks have it (align())
  std::array<std::uint32_t, 3> groups{};  // workgroups of a dispatch; 0 if indirect
  bool indirect = false;
  std::uint32_t push_bytes = 0;
  std::uint64_t bytes = 0;             // for a copy; 0: unknown
  std::optional<std::uint32_t> group;  // index into BufferWork::groups
};

// A command buffer as it was submitted once. Commands between two barriers may overlap: they share
// a group and its time.
struct BufferWork {
  std::vector<Command> commands;
  std::optional<Interval> device;  // for all commands
  std::vector<Interval> groups;    // empty when it was not timed
  std::string label{};             // given by the engine; "" when none
};

struct Submission {
  std::uint32_t queue = 0;   // index into Process::queues
  std::uint32_t thread = 0;  // the system's number
  Interval call;
  std::vector<BufferWork> buffers;
};

// Device work that is enqueued command by command, outside of command buffers (OpenCL).
struct LoneCommand {
  std::uint32_t queue = 0;
  Command command;
  double enqueued = 0;             // when the call that enqueued it began; seconds
  std::optional<Interval> device;  // nothing when it was not timed
};

struct Wait {
  std::optional<std::uint32_t> queue;
  std::uint32_t thread = 0;
  std::string kind;  // "fence", "semaphore", "queue idle", "device idle", "poll", "backend", …
  Interval call;
  bool sync = false;  // counted as a sync
};

// One op of a graph; views are left out.
struct Node {
  std::string op;       // "MUL_MAT"
  std::string name;     // "Qcur-0"; the engine's name of its result
  std::string backend;  // "Vulkan0"
  bool on_cpu = false;
  std::optional<std::uint32_t> kind{};  // index into Process::op_kinds
  std::optional<std::int64_t> layer{};  // the model's
};

struct Graph {
  std::vector<Node> nodes;   // in order; empty if they are not known
  std::uint64_t rows = 0;    // tokens of a language model's batch; 0 when unknown
  std::uint64_t splits = 0;  // number that the scheduler cut it into; 0 when unknown
  bool rows_apart = false;   // each of several rows is the next token of a sequence of its own
};

struct GraphRun {
  std::uint32_t graph = 0;  // index into Process::graphs
  std::uint32_t thread = 0;
  Interval call;
  // It was computed node by node to time each of them (op_scopes). The time is for all of it, and
  // so are then the times of the process's other runs.
  bool node_by_node = false;
  bool from_marks = false;  // made from the engine's own marks: all since the one before
};

struct Transfer {
  std::string kind, from, to;  // as in TransferCount
  std::uint64_t bytes = 0;
  std::uint32_t thread = 0;
  Interval call;
};

// Work that an engine says it does, on the CPU (gate/probes/instrument), or one node of a graph
// that was computed node by node: from before it was handed to its backend until it was done.
struct OpScope {
  std::string op;                     // "MUL_MAT"
  std::string backend;                // device that does it
  std::optional<std::int32_t> layer;  // the model's
  std::uint64_t token = 0;            // marked runs of graphs that had ended before
  std::uint32_t depth = 0;            // scopes around it
  std::uint32_t thread = 0;
  Interval call;
  struct Place {
    std::uint32_t graph = 0, node = 0;  // indices into Process::graphs, Graph::nodes
    std::uint32_t kind = 0;             // index into Process::op_kinds
  };
  std::optional<Place> place{};         // for a node
  std::optional<std::uint32_t> run{};   // for a mark: index into Process::graph_runs (align())
  std::optional<std::uint32_t> kind{};  // for a mark with operands: index into Process::op_kinds
};

struct Queue {
  std::string device;       // "NVIDIA H200"
  std::string name;         // "vulkan queue 0.0"
  bool from_marks = false;  // its work comes from the engine's own marks (gate/probes/instrument)
};

struct Process {
  std::uint32_t pid = 0;
  std::string name;
  std::vector<Queue> queues;
  std::vector<Submission> submissions;  // these in the order of their begin
  std::vector<LoneCommand> commands;
  std::vector<Wait> waits;
  std::vector<Graph> graphs;
  std::vector<GraphRun> graph_runs;
  std::vector<Transfer> transfers;
  std::vector<OpScope> op_scopes{};
  // The common part of equal ops: op, type, shape, backend, and the flops and bytes that follow
  // from these (totals.hpp).
  std::vector<ObservedOp> op_kinds{};
};

// By index of a queue: true if another probe saw its work as well. An engine's marks repeat work
// that the device's own probe saw, and that probe's times are the device's. Marks count alone where
// it saw nothing, or had no times and the marks do.
[[nodiscard]] std::vector<bool> repeated_queues(const Process& process);
// Returns false for work of a queue whose work is repeated by marks, or repeats theirs. `repeated`
// is repeated_queues(); work without a queue is never repeated.
[[nodiscard]] bool is_counted_once(const std::vector<bool>& repeated,
                                   std::optional<std::uint32_t> queue);

// How the dispatches of a device match the nodes of the graphs that sent them (align.cpp).
struct Alignment {
  std::uint64_t graphs = 0;                // computed ones that sent dispatches
  std::uint64_t dispatches = 0;            // dispatches of these graphs
  std::uint64_t unmatched_dispatches = 0;  // dispatches that belong to no node
  std::uint64_t nodes = 0, unmatched_nodes = 0;
  std::vector<std::string> left_over;  // a few that are left, in words
};

struct Timeline {
  std::vector<Process> processes;
  std::optional<Alignment> alignment;
  std::size_t unread = 0;              // event files that could not be read; a warning says why
  bool dispatches_serialized = false;  // the probe separated commands to time each alone
  double recording = 0;                // processor seconds that recording took, about; 0: unknown
  std::vector<std::string> warnings;
};

// One row of a table: work that shares a name, or work of several names that may overlap and has
// one time ("a, b x 2").
struct WorkTime {
  std::string name;
  bool copy = false;
  std::uint64_t calls = 0;  // how often such a group was seen
  std::uint64_t timed = 0;  // timed calls
  double seconds = 0;       // for the timed ones together, as are the two below
  double min_seconds = 0, max_seconds = 0;
  std::uint64_t bytes = 0;
};

// All work of devices, each piece once (repeated_queues()), most time first, then most calls, then
// by name. Dispatches go by the name of their kernel, or by the op that they compute if that is
// known.
enum class By { kernel, op };
[[nodiscard]] std::vector<WorkTime> work_times(const Timeline& timeline, By by = By::kernel);

// Calls of the CPU that share a name: submissions, waits, graphs, transfers.
struct CpuCall {
  std::string name;         // "wait for fence", "set program → Vulkan0"
  std::string category;     // as in Observed::cpu_calls
  std::uint64_t calls = 0;  // at least 1
  std::uint64_t syncs = 0;  // calls that were syncs
  std::uint64_t bytes = 0;  // for all together; 0: none, or unknown
  double seconds = 0;       // for all together
  double min_seconds = 0, max_seconds = 0;
  double seconds_without_nested = 0;  // for all together, without calls within them
};
// By name; calls that marks repeat are left out (repeated_queues()).
[[nodiscard]] std::vector<CpuCall> cpu_calls(const Timeline& timeline);

// Dispatches, barriers, copies, submissions and syncs of each token that a graph of its own
// decoded, in order. Tokens that were decoded together, or node by node, have none.
[[nodiscard]] std::vector<ObservedCount> token_counts(const Timeline& timeline);

// How well the times of a buffer's parts explain the whole: 1 - sum of groups / buffers' times.
// Above 0 the device idled between them; below it they overlap, or a clock is at fault.
struct Coverage {
  std::uint64_t buffers = 0, timed = 0;
  double buffer_seconds = 0, part_seconds = 0;  // seconds
  // The relative difference; nothing without any time.
  [[nodiscard]] std::optional<double> gap() const;
};
[[nodiscard]] Coverage coverage(const Timeline& timeline);

// The work of the busiest queue, compared with the clock: from the begin of the first call that
// gave it work to the end of the last call that the process made.
struct Busy {
  double device = 0;  // seconds of its work together; overlapping work counts twice
  double wall = 0;
};
// Nothing if no work was timed.
[[nodiscard]] std::optional<Busy> busy(const Timeline& timeline);

// The cost of recording the timeline, without the cost of timestamps on devices.
struct RecordingCost {
  double seconds = 0;  // processor time, about
  double wall = 0;     // from the first recorded event to the last call
};
// Nothing if it is not known.
[[nodiscard]] std::optional<RecordingCost> recording_cost(const Timeline& timeline);

// Graphs that were computed node by node, compared with graphs of the same kind that were left
// whole: for the kind that was computed most often.
struct NodeByNodeTiming {
  std::uint64_t graphs = 0, whole_graphs = 0;  // graphs of any kind
  std::uint64_t rows = 0;                      // from here on for that kind
  // Medians: the time of a graph, and the shares of ops and of transfers in it (0.9).
  double each = 0, ops = 0, transfers = 0;
  std::optional<double> whole_graph_seconds;  // absent if none was left whole
  // How much longer it takes node by node: 0.1 for a tenth. Nothing for fewer than five of a sort.
  [[nodiscard]] std::optional<double> cost() const;
};
// Nothing if no graph was computed node by node.
[[nodiscard]] std::optional<NodeByNodeTiming> node_by_node(const Timeline& timeline);

// The work of a timeline as rows, for --by groups, comparisons and explanations. Pure.

// A row holds the work of the same kernels, op, type, shape, backend, layer and phase; work between
// two barriers is together as work_times() has it. A graph of one row decodes, and so does one
// whose rows each belong to a sequence of their own; others are prefill. If graphs were computed
// node by node, only those and work that belongs to no graph are in the rows. Flops are those of
// matrix multiplications, attention's included: other ops have none.
//
// An engine's marks of ops give op, operands, layer and step of the work in them. They are rows
// themselves if nothing saw a device do it. Ops of graphs that ran on the CPU, or if no probe saw a
// device, are rows without times, unless they were timed. Steps are the graphs, and profiled_tokens
// the rows of those that decode, of the ones in the rows. A row has times if all of it was timed.
[[nodiscard]] Observed to_observed(const Timeline& timeline);

// Gives each node the layer in its name. A node without one gets the layer that all nodes around it
// have.
void find_layers(Graph& graph);

// Finds the op of the engine's graph that each dispatch computes: matches the dispatches that one
// computation of a graph sent with the graph's nodes, in order. Pure.
//
// A kernel is known by its name in ggml's backends ("mul_mat_vec_f16_f32_f32" computes MUL_MAT,
// perhaps with the ADD after it). Some are part of another kernel's op ("fa_split_k_reduce"), and
// one that is named like an op ("scale_f32") computes it. Of all ways to match the two sequences,
// the one that leaves the fewest over is taken. The rest is listed, never forced.

struct Aligned {
  // The op that each kernel computes ("MUL_MAT_ADD", as ggml's maintainers name fusions), or "";
  // and the first of its nodes, or -1.
  std::vector<std::string> ops;
  std::vector<std::int64_t> nodes;
  std::vector<std::size_t> counts;  // number of nodes that it computes; 0 for parts of an op
  std::vector<std::size_t> unmatched_kernels;  // indices of kernels that belong to no node
  std::vector<std::size_t> unmatched_nodes;
};

[[nodiscard]] Aligned align_sequences(const std::vector<std::string>& kernels,
                                      const std::vector<std::string>& ops);

// The op of `ops` that a kernel of this name computes and nothing beside it ("mul_f32": MUL). "" if
// it may compute more, or its name says nothing.
[[nodiscard]] std::string op_alone(std::string_view kernel, std::span<const std::string> ops);
// Returns true if a kernel of this name may compute these ops in a row.
[[nodiscard]] bool may_compute(std::string_view kernel, std::span<const std::string_view> ops);

// Sets `op`, `node` and the nodes of every dispatch that can be matched, and Timeline::alignment.
// An engine's marks of its dispatches (op, layer, token) go to the same dispatches as the device's
// own probe saw them.
void align(Timeline& timeline);

}  // namespace weir::observed
