// What happened when, in one run of one program: what its CPU asked of devices, and what these did.
//
// Times are seconds from the earliest one in the timeline; a device's are tied to the CPU's clock
// as well as its driver allows, and a warning says where that is not well. Absent is absent: what
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
  std::string name;  // kernel; what is copied ("fill"); what a barrier orders ("memory")
  std::string op;    // what of the engine's graph it computes (align()); "" when not known
  std::string node;  // what the engine calls the first node of that; "" when not known
  // Index into Process::graph_runs of what sent it, and the nodes of that graph that it computes:
  // so many of a device, from the first on. None where it is a part of another one's op.
  std::optional<std::uint32_t> run{};
  std::uint32_t first_node = 0, nodes = 0;
  std::optional<std::uint32_t> scope{};   // index into Process::op_scopes: the mark that it is in
  std::string label{};                    // of the command buffer, as marks have it (align())
  std::array<std::uint32_t, 3> groups{};  // workgroups of a dispatch; 0 where indirect
  bool indirect = false;
  std::uint32_t push_bytes = 0;
  std::uint64_t bytes = 0;             // of a copy; 0: unknown
  std::optional<std::uint32_t> group;  // index into BufferWork::groups
};

// A command buffer as it was submitted once. Commands between two barriers may overlap: they share
// a group and its time.
struct BufferWork {
  std::vector<Command> commands;
  std::optional<Interval> device;  // the whole of it
  std::vector<Interval> groups;    // empty when it was not timed
  std::string label{};             // that the engine gave it; "" when none
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
  std::string name;     // "Qcur-0"; what the engine calls its result
  std::string backend;  // "Vulkan0"
  bool on_cpu = false;
  std::optional<std::uint32_t> kind{};  // index into Process::op_kinds
  std::optional<std::int64_t> layer{};  // of the model
};

struct Graph {
  std::vector<Node> nodes;   // in order; empty when they could not be told
  std::uint64_t rows = 0;    // tokens of a language model's batch; 0 when unknown
  std::uint64_t splits = 0;  // that the scheduler cut it into; 0 when unknown
  bool rows_apart = false;   // each of several rows is the next token of a sequence of its own
};

struct GraphRun {
  std::uint32_t graph = 0;  // index into Process::graphs
  std::uint32_t thread = 0;
  Interval call;
  // It was computed node by node to time each of them (op_scopes); the time is that of all of it,
  // as is that of the process's other ones then.
  bool by_node = false;
  bool marked = false;  // what the engine's own marks say: all since the one before
};

struct Transfer {
  std::string kind, from, to;  // as in TransferCount
  std::uint64_t bytes = 0;
  std::uint32_t thread = 0;
  Interval call;
};

// What an engine says that it does, on the CPU (gate/probes/instrument), or one node of a graph
// that was computed node by node: from before it was handed to its backend until it was done.
struct OpScope {
  std::string op;                     // "MUL_MAT"
  std::string backend;                // the device that it does it on
  std::optional<std::int32_t> layer;  // of the model
  std::uint64_t token = 0;            // marked runs of graphs that had ended before
  std::uint32_t depth = 0;            // scopes around it
  std::uint32_t thread = 0;
  Interval call;
  struct Place {
    std::uint32_t graph = 0, node = 0;  // indices into Process::graphs, Graph::nodes
    std::uint32_t kind = 0;             // index into Process::op_kinds
  };
  std::optional<Place> place{};         // of a node
  std::optional<std::uint32_t> run{};   // of a mark: index into Process::graph_runs (align())
  std::optional<std::uint32_t> kind{};  // of a mark with operands: index into Process::op_kinds
};

struct Queue {
  std::string device;   // "NVIDIA H200"
  std::string name;     // "vulkan queue 0.0"
  bool marked = false;  // what is on it the engine's own marks say (gate/probes/instrument)
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
  // What is alike in ops that are alike: op, type, shape, backend, and what these give of flops and
  // bytes (totals.hpp).
  std::vector<ObservedOp> op_kinds{};
};

// By index of a queue: whether its work is work that another probe saw as well. An engine's marks
// tell again what the device's own probe saw, and that probe's times are the device's; they stand
// alone where it saw nothing, or had no times and the marks do.
[[nodiscard]] std::vector<bool> repeated_queues(const Process& process);
// Of work of one queue, or of none: whether marks do not tell it again. `again` as above.
[[nodiscard]] bool told_once(const std::vector<bool>& again, std::optional<std::uint32_t> queue);

// How the dispatches of a device match the nodes of the graphs that sent them (align.cpp).
struct Alignment {
  std::uint64_t graphs = 0;           // computed ones that sent dispatches
  std::uint64_t dispatches = 0;       // of these graphs
  std::uint64_t dispatches_left = 0;  // of them those that belong to no node
  std::uint64_t nodes = 0, nodes_left = 0;
  std::vector<std::string> left_over;  // a few of them, in words
};

struct Timeline {
  std::vector<Process> processes;
  std::optional<Alignment> alignment;
  std::size_t unread = 0;   // event files that could not be read; a warning says why
  bool serialized = false;  // the probe kept commands apart to time each alone
  double recording = 0;     // seconds of the processor that this took, about; 0: unknown
  std::vector<std::string> warnings;
};

// One row of a table: work that shares a name, or work of several names that may overlap and has
// one time ("a, b x 2").
struct WorkTime {
  std::string name;
  bool copy = false;
  std::uint64_t calls = 0;  // how often such a group was seen
  std::uint64_t timed = 0;  // of them
  double seconds = 0;       // of the timed ones together, as are the two below
  double least = 0, most = 0;
  std::uint64_t bytes = 0;
};

// Everything devices did, each piece of work once (repeated_queues()), most time first, then most
// calls, then by name. Dispatches go by the name of their kernel, or by the op they compute where
// that is known.
enum class By { kernel, op };
[[nodiscard]] std::vector<WorkTime> work_times(const Timeline& timeline, By by = By::kernel);

// Calls of the CPU that share a name: submissions, waits, graphs, transfers.
struct CpuCall {
  std::string name;         // "wait for fence", "set program → Vulkan0"
  std::string category;     // as in Observed::cpu_calls
  std::uint64_t calls = 0;  // at least 1
  std::uint64_t syncs = 0;  // of them
  std::uint64_t bytes = 0;  // of all together; 0: none, or unknown
  double seconds = 0;       // of all together
  double least = 0, most = 0;
  double own_seconds = 0;  // of all together, without calls within them
};
// By name; calls that marks tell again are left out (repeated_queues()).
[[nodiscard]] std::vector<CpuCall> cpu_calls(const Timeline& timeline);

// Dispatches, barriers, copies, submissions and syncs of each token that a graph of its own
// decoded, in order. None of tokens that were decoded together, and none of tokens that were
// computed node by node to time them.
[[nodiscard]] std::vector<ObservedCount> token_counts(const Timeline& timeline);

// How well the times of a buffer's parts explain the whole: 1 - sum of groups / buffers' times.
// Above 0 the device idled between them; below it they overlap, or a clock is at fault.
struct Coverage {
  std::uint64_t buffers = 0, timed = 0;
  double whole = 0, parts = 0;  // seconds
  // Relative difference; nothing where nothing was timed.
  [[nodiscard]] std::optional<double> gap() const;
};
[[nodiscard]] Coverage coverage(const Timeline& timeline);

// What the busiest queue did, held against the clock: from the begin of the first call that gave it
// work to the end of the last call that the process made.
struct Busy {
  double device = 0;  // seconds of its work together; what overlaps counts twice
  double wall = 0;
};
// Nothing where nothing was timed.
[[nodiscard]] std::optional<Busy> busy(const Timeline& timeline);

// What recording the timeline cost the program, without what timestamps cost devices.
struct RecordingCost {
  double seconds = 0;  // of the processor, about
  double wall = 0;     // from the first thing that was recorded to the last call
};
// Nothing where it is not known.
[[nodiscard]] std::optional<RecordingCost> recording_cost(const Timeline& timeline);

// Graphs that were computed node by node, beside those of the same kind that were left whole: of
// the kind that was computed most often.
struct ByNode {
  std::uint64_t graphs = 0, whole = 0;  // of any kind
  std::uint64_t rows = 0;               // from here on of that kind
  // Medians: of the time of a graph, and how much of it is in ops and in transfers (0.9).
  double each = 0, ops = 0, transfers = 0;
  std::optional<double> each_whole;  // absent where none was left whole
  // How much longer it takes node by node: 0.1 for a tenth. Nothing of fewer than five of a sort.
  [[nodiscard]] std::optional<double> cost() const;
};
// Nothing where no graph was.
[[nodiscard]] std::optional<ByNode> by_node(const Timeline& timeline);

// A timeline's work as rows: what --by groups, and comparisons and explanations look at. Pure.

// A row for work of the same kernels, op, type, shape, backend, layer and phase; work between two
// barriers is together as work_times() has it. A graph of one row decodes, and one whose rows are
// each of a sequence of its own; others of several rows are prefill. Where graphs were computed
// node by node, only those and what belongs to no graph are in the rows. Flops are those of matrix
// multiplications, attention's included: other ops have none. An engine's marks of ops say op,
// operands, layer and step of the work in them, and are rows themselves where nothing saw a device
// do it. Ops of graphs that ran on the CPU, or where no probe saw a device, are rows without times,
// but for those that were timed. Steps are the graphs, and profiled_tokens the rows of those that
// decode, of the ones in the rows. Times are there where all of a row was timed.
[[nodiscard]] Observed observed_of(const Timeline& timeline);

// Gives each node the layer that its name tells, and those without the one that all around them
// have.
void find_layers(Graph& graph);

// Which op of the engine's graph each dispatch computes: the dispatches that one computation of a
// graph sent are laid beside the graph's nodes, in order. Pure.
//
// A kernel is known by what ggml's backends call it ("mul_mat_vec_f16_f32_f32" computes MUL_MAT,
// perhaps with the ADD behind it); some are part of another one's op ("fa_split_k_reduce"), and one
// that is called like an op ("scale_f32") computes it. Among all ways to lay the two sequences
// beside each other the one that leaves the fewest over is taken; what is left over is told, never
// forced.

struct Aligned {
  // For each kernel the op it computes ("MUL_MAT_ADD", as ggml's maintainers name fusions), or "";
  // and the first of its nodes, or -1.
  std::vector<std::string> ops;
  std::vector<std::int64_t> nodes;
  std::vector<std::size_t> counts;        // of the nodes that it computes; 0 for parts of an op
  std::vector<std::size_t> kernels_left;  // indices of those that belong to no node
  std::vector<std::size_t> nodes_left;
};

[[nodiscard]] Aligned align_sequences(const std::vector<std::string>& kernels,
                                      const std::vector<std::string>& ops);

// The op of `ops` that a kernel of this name computes and nothing beside it ("mul_f32": MUL); ""
// where it may compute more, or its name tells nothing.
[[nodiscard]] std::string op_alone(std::string_view kernel, std::span<const std::string> ops);
// A kernel of this name computes, or may compute, these ops in a row.
[[nodiscard]] bool may_compute(std::string_view kernel, std::span<const std::string_view> ops);

// Sets `op`, `node` and the nodes of every dispatch that can be told, and Timeline::alignment. What
// an engine's marks say of their dispatches (op, layer, token) goes to the same dispatches as the
// device's own probe saw them.
void align(Timeline& timeline);

}  // namespace weir::observed
