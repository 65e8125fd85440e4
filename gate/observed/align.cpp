#include <array>
#include <cctype>
#include <limits>
#include <set>
#include <span>

#include "gate/base/find.hpp"
#include "gate/observed/timeline.hpp"
#include "gate/unit/fusions.hpp"

namespace weir::observed {
namespace {

using Ops = std::vector<std::string_view>;

// Kernels whose name is not that of their op, by how the name begins; the first that fits counts.
struct Rule {
  std::string_view prefix;
  std::vector<Ops> computes;  // one of these runs of nodes
  bool part = false;          // or a part of another kernel's op
};

// What kernels with these names compute: an op alone, and the fusions (gate/unit/fusions.hpp) of
// ggml-vulkan's kernels that are called `like` that.
Rule computing(std::string_view prefix, std::vector<Ops> alone, std::string_view like) {
  Rule rule{prefix, std::move(alone)};
  for (const unit::Fusion& one : unit::fusions()) {
    if (one.kernel == like) rule.computes.push_back(one.ops);
  }
  return rule;
}
Rule computing(std::string_view prefix, std::vector<Ops> alone = {}) {
  return computing(prefix, std::move(alone), prefix);
}

const std::vector<Rule>& rules() {
  static const std::vector<Rule> k_rules = {
      {"matmul_id", {{"MUL_MAT_ID"}}},
      computing("mul_mat_vec_id", {{"MUL_MAT_ID"}}),
      {"matmul_split_k_reduce", {}, true},
      {"split_k_reduce", {}, true},
      {"matmul", {{"MUL_MAT"}}},
      computing("mul_mat_vec", {{"MUL_MAT"}}),
      {"quantize_q8_1", {}, true},
      {"dequant_", {}, true},
      {"count_experts", {}, true},
      {"fa_split_k_reduce", {}, true},
      {"fa_mask_opt", {}, true},
      {"flash_attn", {{"FLASH_ATTN_EXT"}}},
      computing("rms_norm_mul_rope"),
      computing("rms_norm_mul"),
      computing("rms_norm_set_rows"),
      computing("rope_", {{"ROPE"}}),
      computing("multi_add"),
      computing("topk_moe"),
      computing("silu_mul"),
      computing("gelu_mul"),
      computing("sigmoid_mul"),
      computing("softplus_mul"),
      computing("ssm_conv_bias_silu"),
      computing("ssm_conv_silu"),
      computing("snake"),
      // Several of them compute one op.
      {"soft_max_large", {{"SOFT_MAX"}}, true},
      {"argsort_large", {{"ARGSORT"}}, true},
      // Also what another kernel needs before it can start.
      {"contig_cpy_", {{"CPY"}, {"CONT"}, {"DUP"}}, true},
      {"cpy_", {{"CPY"}, {"CONT"}, {"DUP"}}, true},
      // ggml-cuda's. The sums and products of several tensors have more sources.
      {"rms_norm_f32<256, false", {{"RMS_NORM"}}},
      {"rms_norm_f32<1024, false", {{"RMS_NORM"}}},
      computing("rms_norm_f32<", {}, "rms_norm_mul"),
      {"k_bin_bcast<&op_mul, float, float, float, float const*>", {{"MUL"}}},
      {"k_bin_bcast<&op_add, float, float, float, float const*>", {{"ADD"}}},
      computing("k_bin_bcast<&op_add", {}, "multi_add"),
      {"k_set_rows<", {{"SET_ROWS"}}},
  };
  return k_rules;
}

const Rule* rule_of(std::string_view kernel) {
  return first_of(rules(), [&](const Rule& one) { return kernel.starts_with(one.prefix); });
}

// "scale_f32" is called like SCALE.
bool called_like(std::string_view kernel, std::string_view op) {
  const auto alike = [](char of_op, char of_kernel) {
    return std::toupper(static_cast<unsigned char>(of_kernel)) == of_op;
  };
  if (op.empty() || std::ranges::mismatch(op, kernel, alike).in1 != op.end()) return false;
  return kernel.size() == op.size() || kernel[op.size()] == '_';
}

bool stands_at(const Ops& run, std::span<const std::string> ops) {
  return run.size() <= ops.size() && std::equal(run.begin(), run.end(), ops.begin());
}

// How many nodes from `ops` on the kernel may compute, each possibility once.
std::vector<std::size_t> choices(std::string_view kernel, std::span<const std::string> ops) {
  std::vector<std::size_t> out;
  if (const Rule* rule = rule_of(kernel)) {
    for (const Ops& run : rule->computes) {
      if (stands_at(run, ops)) out.push_back(run.size());
    }
  } else if (!ops.empty() && called_like(kernel, ops.front())) {
    out.push_back(1);
  }
  return out;
}

constexpr std::uint32_t k_far = std::numeric_limits<std::uint32_t>::max() / 2;

// A step of the cheapest way from (kernel, node) to the end.
struct Cell {
  std::uint32_t cost = k_far;
  std::int32_t nodes = -1;  // the kernel computes so many; 0: it is part of an op, or left over
  bool skips_node = false;  // this node is left over
};

// What is left over costs; a part of another op costs a little, so that a copy that can be an op
// of its own is one.
constexpr std::uint32_t k_left_over = 1000;
constexpr std::uint32_t k_part = 1;

// The names of ggml's own log.
std::string fused_name(std::span<const std::string> ops) {
  std::string out;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    // A view lies between the two in the graph; views are no work and not among the nodes.
    if (i > 0 && ops[i] == "SET_ROWS" && ops[i - 1] == "ROPE") out += "_VIEW";
    out += (i == 0 ? "" : "_") + ops[i];
  }
  return out;
}

}  // namespace

std::string op_alone(std::string_view kernel, std::span<const std::string> ops) {
  if (const Rule* rule = rule_of(kernel)) {
    const bool one = !rule->part && rule->computes.size() == 1 && rule->computes[0].size() == 1;
    return one ? std::string(rule->computes[0][0]) : "";
  }
  std::string found;
  for (const std::string& op : ops) {
    if (called_like(kernel, op) && op.size() > found.size()) found = op;
  }
  return found;
}

bool may_compute(std::string_view kernel, std::span<const std::string_view> ops) {
  const Rule* rule = rule_of(kernel);
  return rule != nullptr && std::ranges::any_of(rule->computes, [&](const Ops& run) {
           return std::ranges::equal(run, ops);
         });
}

Aligned align_sequences(const std::vector<std::string>& kernels,
                        const std::vector<std::string>& ops) {
  Aligned out;
  out.ops.resize(kernels.size());
  out.nodes.assign(kernels.size(), -1);
  out.counts.assign(kernels.size(), 0);
  const std::size_t width = ops.size() + 1;
  // Beyond this the table would not fit in memory; no graph of one token is near it.
  constexpr std::size_t k_most_cells = std::size_t{1} << 26;
  if ((kernels.size() + 1) > k_most_cells / width) {
    for (std::size_t i = 0; i < kernels.size(); ++i) out.kernels_left.push_back(i);
    for (std::size_t j = 0; j < ops.size(); ++j) out.nodes_left.push_back(j);
    return out;
  }
  std::vector<Cell> table((kernels.size() + 1) * width);
  const auto at = [&](std::size_t kernel, std::size_t node) -> Cell& {
    return table[kernel * width + node];
  };
  const std::span<const std::string> all(ops);
  for (std::size_t i = kernels.size() + 1; i-- > 0;) {
    const Rule* rule = i < kernels.size() ? rule_of(kernels[i]) : nullptr;
    for (std::size_t j = width; j-- > 0;) {
      Cell& cell = at(i, j);
      if (i == kernels.size()) {
        cell = {static_cast<std::uint32_t>(ops.size() - j) * k_left_over, -1, j < ops.size()};
        continue;
      }
      const auto better = [&](std::uint32_t cost, std::int32_t nodes, bool skips) {
        if (cost < cell.cost) cell = {cost, nodes, skips};
      };
      for (const std::size_t count : choices(kernels[i], all.subspan(j))) {
        better(at(i + 1, j + count).cost, static_cast<std::int32_t>(count), false);
      }
      const bool part = rule != nullptr && rule->part;
      better(at(i + 1, j).cost + (part ? k_part : k_left_over), 0, false);
      if (j < ops.size()) better(at(i, j + 1).cost + k_left_over, -1, true);
    }
  }
  std::size_t i = 0, j = 0;
  std::string last;  // the op whose part a kernel is
  std::int64_t last_node = -1;
  std::vector<std::size_t> waiting;  // parts in front of their op
  while (i < kernels.size() || j < ops.size()) {
    const Cell cell = at(i, j);
    if (cell.skips_node) {
      out.nodes_left.push_back(j++);
      continue;
    }
    const Rule* rule = rule_of(kernels[i]);
    if (cell.nodes == 0) {
      if (rule == nullptr || !rule->part) {
        out.kernels_left.push_back(i);
      } else if (kernels[i].find("reduce") != std::string::npos && last_node >= 0) {
        out.ops[i] = last;
        out.nodes[i] = last_node;
      } else {
        waiting.push_back(i);
      }
      ++i;
      continue;
    }
    const auto count = static_cast<std::size_t>(cell.nodes);
    last = fused_name(all.subspan(j, count));
    last_node = static_cast<std::int64_t>(j);
    waiting.push_back(i);
    for (const std::size_t kernel : waiting) {
      out.ops[kernel] = last;
      out.nodes[kernel] = last_node;
    }
    waiting.clear();
    out.counts[i] = count;
    ++i;
    j += count;
  }
  out.kernels_left.insert(out.kernels_left.end(), waiting.begin(), waiting.end());
  return out;
}

namespace {

constexpr std::size_t k_most_told = 12;

void tell(std::set<std::string>& told, std::string what, Alignment& alignment) {
  if (!told.insert(what).second) return;
  if (alignment.left_over.size() < k_most_told) alignment.left_over.push_back(std::move(what));
}

// The dispatches that computing a graph sent, in order.
std::vector<Command*> sent_by(const GraphRun& run, Process& process,
                              const std::vector<bool>& again) {
  std::vector<Command*> out;
  const auto first = std::lower_bound(
      process.submissions.begin(), process.submissions.end(), run.call.begin,
      [](const Submission& submission, double begin) { return submission.call.begin < begin; });
  for (auto at = first; at != process.submissions.end() && at->call.begin <= run.call.end; ++at) {
    if (at->thread != run.thread || !told_once(again, at->queue)) continue;
    for (BufferWork& buffer : at->buffers) {
      for (Command& command : buffer.commands) {
        if (command.kind == Command::Kind::dispatch) out.push_back(&command);
      }
    }
  }
  return out;
}

void align_process(Process& process, Alignment& alignment, std::set<std::string>& told) {
  // The same graph sends the same kernels again and again.
  std::map<std::pair<std::uint32_t, std::vector<std::string>>, Aligned> seen;
  const std::vector<bool> again = repeated_queues(process);
  for (std::uint32_t index = 0; index < process.graph_runs.size(); ++index) {
    const GraphRun& run = process.graph_runs[index];
    if (run.marked || run.graph >= process.graphs.size()) continue;
    const std::vector<Node>& all = process.graphs[run.graph].nodes;
    std::vector<const Node*> nodes;
    std::vector<std::string> ops;
    for (const Node& node : all) {
      if (node.on_cpu) continue;
      nodes.push_back(&node);
      ops.push_back(node.op);
    }
    const std::vector<Command*> commands = sent_by(run, process, again);
    // A device that no probe beside ggml's sees sends nothing that could be laid beside the nodes.
    if (commands.empty()) continue;
    const auto kernels = collect<std::string>(commands, &Command::name);
    const auto [place, fresh] = seen.try_emplace({run.graph, kernels});
    if (fresh) place->second = align_sequences(kernels, ops);
    const Aligned& aligned = place->second;
    for (std::size_t i = 0; i < commands.size(); ++i) {
      commands[i]->op = aligned.ops[i];
      commands[i]->run = index;
      if (aligned.nodes[i] < 0) continue;
      const Node* first = nodes[static_cast<std::size_t>(aligned.nodes[i])];
      commands[i]->node = first->name;
      commands[i]->first_node = static_cast<std::uint32_t>(first - all.data());
      commands[i]->nodes = static_cast<std::uint32_t>(aligned.counts[i]);
    }
    ++alignment.graphs;
    alignment.dispatches += commands.size();
    alignment.nodes += nodes.size();
    alignment.dispatches_left += aligned.kernels_left.size();
    alignment.nodes_left += aligned.nodes_left.size();
    for (const std::size_t i : aligned.kernels_left) {
      tell(told, fmt::format("graph {}: kernel {}", run.graph, kernels[i]), alignment);
    }
    for (const std::size_t j : aligned.nodes_left) {
      tell(told, fmt::format("graph {}: {} {}", run.graph, ops[j], nodes[j]->name), alignment);
    }
  }
}

struct Dispatch {
  double sent;
  Command* command;
};

// What was sent to the queues that marks tell of, or to the others, in the order of its calls.
std::vector<Dispatch> dispatches_of(Process& process, bool marked) {
  std::vector<Dispatch> found;
  const auto add = [&](std::uint32_t queue, double when, Command& command) {
    const bool wanted = queue < process.queues.size() && process.queues[queue].marked == marked;
    if (wanted && command.kind == Command::Kind::dispatch) found.push_back({when, &command});
  };
  for (Submission& submission : process.submissions) {
    for (BufferWork& buffer : submission.buffers) {
      for (Command& command : buffer.commands) {
        add(submission.queue, submission.call.begin, command);
      }
    }
  }
  for (LoneCommand& lone : process.commands) add(lone.queue, lone.enqueued, lone.command);
  std::ranges::stable_sort(found, {}, &Dispatch::sent);
  return found;
}

// Where as much was submitted as marks tell, what a device's probe saw in each is in the command
// buffers of that label, copies too.
void carry_labels(Process& process) {
  std::array<std::vector<Submission*>, 2> sent;  // seen, marked
  for (Submission& one : process.submissions) {
    if (one.queue < process.queues.size()) {
      sent[process.queues[one.queue].marked ? 1 : 0].push_back(&one);
    }
  }
  if (sent[0].size() != sent[1].size()) return;
  for (std::size_t i = 0; i < sent[0].size(); ++i) {
    const std::vector<BufferWork>& marks = sent[1][i]->buffers;
    if (marks.size() != 1) continue;
    for (BufferWork& buffer : sent[0][i]->buffers) {
      for (Command& command : buffer.commands) command.label = marks.front().label;
    }
  }
}

// Dispatches that a device's probe saw have the marks that the engine set at the same ones: those
// with the same names in the same order, or with names of the engine's own, as many of them.
void carry_marks(const std::vector<Dispatch>& marks, const std::vector<Dispatch>& seen) {
  std::set<std::string_view> names;
  for (const auto& mark : marks) names.insert(mark.command->name);
  const bool same_names =
      std::ranges::any_of(seen, [&](const auto& one) { return names.contains(one.command->name); });
  if (!same_names && marks.size() != seen.size()) return;
  const auto alike = [&](std::size_t one, std::size_t mark) {
    return one < seen.size() && mark < marks.size() &&
           (!same_names || seen[one].command->name == marks[mark].command->name);
  };
  constexpr std::size_t k_most_left_out = 256;  // by either, at a place
  for (std::size_t i = 0, j = 0; i < seen.size() && j < marks.size();) {
    std::size_t left_out = 0;
    while (left_out < k_most_left_out && !alike(i + left_out, j) && !alike(i, j + left_out)) {
      ++left_out;
    }
    // Where either may have left something out, it is the shorter one.
    const bool fewer_seen = seen.size() - i < marks.size() - j;
    const bool by_seen = alike(i, j + left_out) && (fewer_seen || !alike(i + left_out, j));
    (by_seen ? j : i) += left_out;
    if (alike(i, j)) {
      seen[i].command->scope = marks[j].command->scope;
      seen[i].command->label = marks[j].command->label;
    }
    ++i;
    ++j;
  }
}

// Op, graph and label of what marks are around.
void take_marks(Process& process) {
  const bool marked = std::ranges::any_of(process.queues, &Queue::marked) ||
                      std::ranges::any_of(process.graph_runs, &GraphRun::marked);
  if (!marked) return;
  for (Submission& submission : process.submissions) {
    for (BufferWork& buffer : submission.buffers) {
      for (Command& command : buffer.commands) command.label = buffer.label;
    }
  }
  carry_labels(process);
  const auto marks = dispatches_of(process, true), seen = dispatches_of(process, false);
  carry_marks(marks, seen);
  std::vector<std::uint32_t> runs;
  for (std::uint32_t i = 0; i < process.graph_runs.size(); ++i) {
    if (process.graph_runs[i].marked) runs.push_back(i);
  }
  for (OpScope& scope : process.op_scopes) {
    if (!scope.place && scope.token < runs.size()) scope.run = runs[scope.token];
  }
  // Before the first one none had ended: it began with what it computed.
  if (!runs.empty()) {
    GraphRun& first = process.graph_runs[runs.front()];
    const OpScope* begin = first_of(
        process.op_scopes, [&](const OpScope& scope) { return scope.run == runs.front(); });
    if (begin != nullptr) first.call.begin = std::min(first.call.begin, begin->call.begin);
  }
  // Within no op, what was sent before a token's end is of that token.
  const auto run_of = [&](const Dispatch& one) -> std::optional<std::uint32_t> {
    if (one.command->scope) return process.op_scopes[*one.command->scope].run;
    const auto end = std::ranges::lower_bound(
        runs, one.sent, {}, [&](std::uint32_t run) { return process.graph_runs[run].call.end; });
    if (end == runs.end() || process.graph_runs[*end].call.begin > one.sent) return std::nullopt;
    return *end;
  };
  for (const auto* dispatches : {&marks, &seen}) {
    for (const Dispatch& one : *dispatches) {
      if (one.command->scope) one.command->op = process.op_scopes[*one.command->scope].op;
      if (const auto run = run_of(one)) one.command->run = run;
    }
  }
}

}  // namespace

void align(Timeline& timeline) {
  Alignment alignment;
  std::set<std::string> told;
  for (Process& process : timeline.processes) {
    align_process(process, alignment, told);
    take_marks(process);
  }
  if (alignment.graphs != 0) timeline.alignment = std::move(alignment);
}

}  // namespace weir::observed
