// Matches the dispatches of a device with the nodes of the engine's graphs.
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

// A rule for kernels whose name is not that of their op. The first whose prefix fits counts.
struct Rule {
  std::string_view prefix;
  std::vector<Ops> computes;  // the kernel computes one of these runs of nodes
  bool part = false;          // it may also be a part of another kernel's op
};
constexpr bool k_or_part_of_op = true;

// Returns a rule for kernels with this prefix that also compute fused ops: one of `alone`, or one
// of the fusions (gate/unit/fusions.hpp) of ggml-vulkan's kernel `fused_like`, by default `prefix`.
Rule make_fusion_rule(std::string_view prefix, std::vector<Ops> alone,
                      std::string_view fused_like) {
  Rule rule{prefix, std::move(alone)};
  for (const unit::Fusion& fusion : unit::fusions()) {
    if (fusion.kernel == fused_like) rule.computes.push_back(fusion.ops);
  }
  return rule;
}
Rule make_fusion_rule(std::string_view prefix, std::vector<Ops> alone = {}) {
  return make_fusion_rule(prefix, std::move(alone), prefix);
}

// Returns which ops a kernel computes, by the beginning of its name; the first rule that fits
// counts. Kernels without fusions need no make_fusion_rule().
const std::vector<Rule>& kernel_rules() {
  static const std::vector<Rule> k_rules = {
      {"matmul_id", {{"MUL_MAT_ID"}}},
      make_fusion_rule("mul_mat_vec_id", {{"MUL_MAT_ID"}}),
      {"matmul_split_k_reduce", {}, k_or_part_of_op},
      {"split_k_reduce", {}, k_or_part_of_op},
      {"matmul", {{"MUL_MAT"}}},
      make_fusion_rule("mul_mat_vec", {{"MUL_MAT"}}),
      {"quantize_q8_1", {}, k_or_part_of_op},
      {"dequant_", {}, k_or_part_of_op},
      {"count_experts", {}, k_or_part_of_op},
      {"fa_split_k_reduce", {}, k_or_part_of_op},
      {"fa_mask_opt", {}, k_or_part_of_op},
      {"flash_attn", {{"FLASH_ATTN_EXT"}}},
      make_fusion_rule("rms_norm_mul_rope"),
      make_fusion_rule("rms_norm_mul"),
      make_fusion_rule("rms_norm_set_rows"),
      make_fusion_rule("rope_", {{"ROPE"}}),
      make_fusion_rule("multi_add"),
      make_fusion_rule("topk_moe"),
      make_fusion_rule("silu_mul"),
      make_fusion_rule("gelu_mul"),
      make_fusion_rule("sigmoid_mul"),
      make_fusion_rule("softplus_mul"),
      make_fusion_rule("ssm_conv_bias_silu"),
      make_fusion_rule("ssm_conv_silu"),
      make_fusion_rule("snake"),
      // Several of these kernels compute one op.
      {"soft_max_large", {{"SOFT_MAX"}}, k_or_part_of_op},
      {"argsort_large", {{"ARGSORT"}}, k_or_part_of_op},
      // These also prepare the input of another kernel.
      {"contig_cpy_", {{"CPY"}, {"CONT"}, {"DUP"}}, k_or_part_of_op},
      {"cpy_", {{"CPY"}, {"CONT"}, {"DUP"}}, k_or_part_of_op},
      // ggml-cuda's kernels. Sums and products of several tensors have more sources.
      {"rms_norm_f32<256, false", {{"RMS_NORM"}}},
      {"rms_norm_f32<1024, false", {{"RMS_NORM"}}},
      make_fusion_rule("rms_norm_f32<", {}, "rms_norm_mul"),
      {"k_bin_bcast<&op_mul, float, float, float, float const*>", {{"MUL"}}},
      {"k_bin_bcast<&op_add, float, float, float, float const*>", {{"ADD"}}},
      make_fusion_rule("k_bin_bcast<&op_add", {}, "multi_add"),
      {"k_set_rows<", {{"SET_ROWS"}}},
  };
  return k_rules;
}

const Rule* find_rule(std::string_view kernel) {
  return find_first(kernel_rules(),
                    [&](const Rule& rule) { return kernel.starts_with(rule.prefix); });
}

// Returns true if the kernel's name begins with the op's: "scale_f32" computes SCALE.
bool has_name_of_op(std::string_view kernel, std::string_view op) {
  const auto equal_letters = [](char op_letter, char kernel_letter) {
    return std::toupper(static_cast<unsigned char>(kernel_letter)) == op_letter;
  };
  if (op.empty() || std::ranges::mismatch(op, kernel, equal_letters).in1 != op.end()) return false;
  return kernel.size() == op.size() || kernel[op.size()] == '_';
}

bool matches_at(const Ops& run, std::span<const std::string> ops) {
  return run.size() <= ops.size() && std::equal(run.begin(), run.end(), ops.begin());
}

// Returns how many of the next nodes `ops` the kernel may compute: each possible number.
std::vector<std::size_t> count_choices(std::string_view kernel, std::span<const std::string> ops) {
  std::vector<std::size_t> out;
  if (const Rule* rule = find_rule(kernel)) {
    for (const Ops& run : rule->computes) {
      if (matches_at(run, ops)) out.push_back(run.size());
    }
  } else if (!ops.empty() && has_name_of_op(kernel, ops.front())) {
    out.push_back(1);
  }
  return out;
}

constexpr std::uint32_t k_not_reached = std::numeric_limits<std::uint32_t>::max() / 2;

// A step of the cheapest way to match the rest, from a kernel and a node on.
struct Step {
  std::uint32_t cost = k_not_reached;
  std::int32_t nodes = -1;  // the kernel computes so many; 0: it is part of an op, or left over
  bool skips_node = false;  // this node is left over
};

// A kernel or node that is left over is expensive. A part of another op costs a little, so that a
// copy which can be an op of its own is one.
constexpr std::uint32_t k_left_over = 1000;
constexpr std::uint32_t k_part = 1;

// Returns the name of a fusion of `ops`, as ggml's own log has it.
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

// Returns the only op that a kernel of this name can compute; "" if that is not certain. `ops`:
// names of ops, of which the longest that begins the kernel's name is taken.
std::string op_alone(std::string_view kernel, std::span<const std::string> ops) {
  if (const Rule* rule = find_rule(kernel)) {
    const bool is_single_op =
        !rule->part && rule->computes.size() == 1 && rule->computes[0].size() == 1;
    return is_single_op ? std::string(rule->computes[0][0]) : "";
  }
  std::string longest;
  for (const std::string& op : ops) {
    if (has_name_of_op(kernel, op) && op.size() > longest.size()) longest = op;
  }
  return longest;
}

bool may_compute(std::string_view kernel, std::span<const std::string_view> ops) {
  const Rule* rule = find_rule(kernel);
  return rule != nullptr && std::ranges::any_of(rule->computes, [&](const Ops& run) {
           return std::ranges::equal(run, ops);
         });
}

namespace {

// The cheapest way to match kernels [i, …) with nodes [j, …), for all i and j.
class MatchTable {
 public:
  MatchTable(const std::vector<std::string>& kernels, const std::vector<std::string>& ops)
      : width_(ops.size() + 1), steps_((kernels.size() + 1) * width_) {
    const std::span<const std::string> all(ops);
    for (std::size_t j = 0; j < width_; ++j) {
      const auto cost = static_cast<std::uint32_t>(ops.size() - j) * k_left_over;
      at(kernels.size(), j) = {cost, -1, j < ops.size()};
    }
    for (std::size_t i = kernels.size(); i-- > 0;) {
      const Rule* rule = find_rule(kernels[i]);
      const bool part = rule != nullptr && rule->part;
      for (std::size_t j = width_; j-- > 0;) {
        Step& step = at(i, j);
        const auto keep_cheaper = [&](std::uint32_t cost, std::int32_t nodes, bool skips_node) {
          if (cost < step.cost) step = {cost, nodes, skips_node};
        };
        for (const std::size_t count : count_choices(kernels[i], all.subspan(j))) {
          keep_cheaper(at(i + 1, j + count).cost, static_cast<std::int32_t>(count),
                       /*skips_node=*/false);
        }
        keep_cheaper(at(i + 1, j).cost + (part ? k_part : k_left_over), 0, /*skips_node=*/false);
        if (j < ops.size()) keep_cheaper(at(i, j + 1).cost + k_left_over, -1, /*skips_node=*/true);
      }
    }
  }
  [[nodiscard]] const Step& step(std::size_t kernel, std::size_t node) const {
    return steps_[kernel * width_ + node];
  }

 private:
  Step& at(std::size_t kernel, std::size_t node) { return steps_[kernel * width_ + node]; }

  std::size_t width_;
  std::vector<Step> steps_;
};

}  // namespace

Aligned align_sequences(const std::vector<std::string>& kernels,
                        const std::vector<std::string>& ops) {
  Aligned out;
  out.ops.resize(kernels.size());
  out.nodes.assign(kernels.size(), -1);
  out.counts.assign(kernels.size(), 0);
  // Beyond this the table would not fit in memory; no graph of one token is near it.
  constexpr std::size_t k_max_steps = std::size_t{1} << 26;
  if ((kernels.size() + 1) > k_max_steps / (ops.size() + 1)) {
    for (std::size_t i = 0; i < kernels.size(); ++i) out.unmatched_kernels.push_back(i);
    for (std::size_t j = 0; j < ops.size(); ++j) out.unmatched_nodes.push_back(j);
    return out;
  }
  const MatchTable table(kernels, ops);
  std::size_t i = 0, j = 0;
  std::string last;  // the op of the last kernel that computes one
  std::int64_t last_node = -1;
  std::vector<std::size_t> waiting;  // parts that come before their op
  while (i < kernels.size() || j < ops.size()) {
    const Step& step = table.step(i, j);
    if (step.skips_node) {
      out.unmatched_nodes.push_back(j);
      ++j;
      continue;
    }
    if (step.nodes == 0) {
      const Rule* rule = find_rule(kernels[i]);
      if (rule == nullptr || !rule->part) {
        out.unmatched_kernels.push_back(i);
      } else if (kernels[i].find("reduce") != std::string::npos && last_node >= 0) {
        out.ops[i] = last;
        out.nodes[i] = last_node;
      } else {
        waiting.push_back(i);
      }
      ++i;
      continue;
    }
    const auto count = static_cast<std::size_t>(step.nodes);
    last = fused_name(std::span(ops).subspan(j, count));
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
  out.unmatched_kernels.insert(out.unmatched_kernels.end(), waiting.begin(), waiting.end());
  return out;
}

namespace {

constexpr std::size_t k_max_listed = 12;

// Lists a kernel or node that is left over, each once.
void add_left_over(std::set<std::string>& listed, std::string text, Alignment& alignment) {
  if (!listed.insert(text).second) return;
  if (alignment.left_over.size() < k_max_listed) alignment.left_over.push_back(std::move(text));
}

// Returns the kernel launches (dispatches) that one computation of a graph sent, in order: those
// that its thread submitted during the call. Queues that repeat others' work are left out.
std::vector<Command*> find_sent_dispatches(const GraphRun& run, Process& process,
                                           const std::vector<bool>& repeated) {
  std::vector<Command*> out;
  const auto first = std::lower_bound(
      process.submissions.begin(), process.submissions.end(), run.call.begin,
      [](const Submission& sent, double begin) { return sent.call.begin < begin; });
  for (auto submission = first;
       submission != process.submissions.end() && submission->call.begin <= run.call.end;
       ++submission) {
    if (submission->thread != run.thread || !is_counted_once(repeated, submission->queue)) continue;
    for (BufferWork& buffer : submission->buffers) {
      for (Command& command : buffer.commands) {
        if (command.kind == Command::Kind::dispatch) out.push_back(&command);
      }
    }
  }
  return out;
}

// The nodes of a graph that a device computes, in order.
struct DeviceNodes {
  std::vector<std::size_t> indices;  // among all nodes of the graph
  std::vector<std::string> ops;
};

DeviceNodes list_device_nodes(const std::vector<Node>& nodes) {
  DeviceNodes listed;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].on_cpu) continue;
    listed.indices.push_back(i);
    listed.ops.push_back(nodes[i].op);
  }
  return listed;
}

// Writes into each dispatch the op, the graph run and the nodes of the graph that it computes.
// Nodes stay empty where the match has none (-1).
void write_match(const Aligned& aligned, const std::vector<Node>& nodes,
                 const DeviceNodes& device_nodes, std::uint32_t graph_run,
                 std::span<Command* const> dispatches) {
  for (std::size_t i = 0; i < dispatches.size(); ++i) {
    Command& dispatch = *dispatches[i];
    dispatch.op = aligned.ops[i];
    dispatch.run = graph_run;
    if (aligned.nodes[i] < 0) continue;
    const std::size_t first_node = device_nodes.indices[static_cast<std::size_t>(aligned.nodes[i])];
    dispatch.node = nodes[first_node].name;
    dispatch.first_node = static_cast<std::uint32_t>(first_node);
    dispatch.nodes = static_cast<std::uint32_t>(aligned.counts[i]);
  }
}

// Matches the dispatches (kernel launches) of every graph that a process computed with the graph's
// nodes. `listed` holds kernels and nodes that were listed as left over already.
void align_process(Process& process, Alignment& alignment, std::set<std::string>& listed) {
  // The same graph sends the same kernels again and again, so each match is made once.
  std::map<std::pair<std::uint32_t, std::vector<std::string>>, Aligned> matches;
  const std::vector<bool> repeated = repeated_queues(process);
  for (std::uint32_t graph_run = 0; graph_run < process.graph_runs.size(); ++graph_run) {
    const GraphRun& run = process.graph_runs[graph_run];
    if (run.from_marks || run.graph >= process.graphs.size()) continue;
    const std::vector<Node>& nodes = process.graphs[run.graph].nodes;
    const DeviceNodes device_nodes = list_device_nodes(nodes);
    const std::vector<Command*> dispatches = find_sent_dispatches(run, process, repeated);
    // A device that only ggml's probe sees sends nothing that could be matched with the nodes.
    if (dispatches.empty()) continue;
    const auto kernels = collect<std::string>(dispatches, &Command::name);
    const auto [match, is_new] = matches.try_emplace({run.graph, kernels});
    if (is_new) match->second = align_sequences(kernels, device_nodes.ops);
    const Aligned& aligned = match->second;
    write_match(aligned, nodes, device_nodes, graph_run, dispatches);
    ++alignment.graphs;
    alignment.dispatches += dispatches.size();
    alignment.nodes += device_nodes.indices.size();
    alignment.unmatched_dispatches += aligned.unmatched_kernels.size();
    alignment.unmatched_nodes += aligned.unmatched_nodes.size();
    for (const std::size_t i : aligned.unmatched_kernels) {
      add_left_over(listed, fmt::format("graph {}: kernel {}", run.graph, kernels[i]), alignment);
    }
    for (const std::size_t j : aligned.unmatched_nodes) {
      const Node& node = nodes[device_nodes.indices[j]];
      add_left_over(listed, fmt::format("graph {}: {} {}", run.graph, node.op, node.name),
                    alignment);
    }
  }
}

struct Dispatch {
  double sent;
  Command* command;
};

// Returns the dispatches (kernel launches) on queues that an engine's marks made, or on those that
// a probe saw, in the order of their sending.
std::vector<Dispatch> list_dispatches(Process& process, bool from_marks) {
  std::vector<Dispatch> dispatches;
  const auto add = [&](std::uint32_t queue, double sent, Command& command) {
    const bool is_on_such_queue =
        queue < process.queues.size() && process.queues[queue].from_marks == from_marks;
    if (is_on_such_queue && command.kind == Command::Kind::dispatch)
      dispatches.push_back({sent, &command});
  };
  for (Submission& submission : process.submissions) {
    for (BufferWork& buffer : submission.buffers) {
      for (Command& command : buffer.commands) {
        add(submission.queue, submission.call.begin, command);
      }
    }
  }
  for (LoneCommand& lone : process.commands) add(lone.queue, lone.enqueued, lone.command);
  std::ranges::stable_sort(dispatches, {}, &Dispatch::sent);
  return dispatches;
}

// Copies the labels of submissions that an engine marked to the commands that a probe saw in the
// same submissions. Does nothing if the two differ in number.
void copy_labels(Process& process) {
  std::vector<Submission*> probed, marked;
  for (Submission& submission : process.submissions) {
    if (submission.queue >= process.queues.size()) continue;
    std::vector<Submission*>& list = process.queues[submission.queue].from_marks ? marked : probed;
    list.push_back(&submission);
  }
  if (probed.size() != marked.size()) return;
  for (std::size_t i = 0; i < probed.size(); ++i) {
    const std::vector<BufferWork>& marks = marked[i]->buffers;
    if (marks.size() != 1) continue;
    for (BufferWork& buffer : probed[i]->buffers) {
      for (Command& command : buffer.commands) command.label = marks.front().label;
    }
  }
}

// Copies the engine's marks to the dispatches that a probe saw: equal names are paired in order.
// If no name is equal, all are paired one by one, if there are as many.
void copy_marks(const std::vector<Dispatch>& marks, const std::vector<Dispatch>& probed) {
  std::set<std::string_view> names;
  for (const auto& mark : marks) names.insert(mark.command->name);
  const bool has_equal_names = std::ranges::any_of(
      probed, [&](const Dispatch& dispatch) { return names.contains(dispatch.command->name); });
  if (!has_equal_names && marks.size() != probed.size()) return;
  const auto matches = [&](std::size_t dispatch, std::size_t mark) {
    return dispatch < probed.size() && mark < marks.size() &&
           (!has_equal_names || probed[dispatch].command->name == marks[mark].command->name);
  };
  constexpr std::size_t k_max_left_out = 256;  // in one place
  for (std::size_t dispatch_index = 0, mark_index = 0;
       dispatch_index < probed.size() && mark_index < marks.size();) {
    std::size_t skipped = 0;
    while (skipped < k_max_left_out && !matches(dispatch_index + skipped, mark_index) &&
           !matches(dispatch_index, mark_index + skipped)) {
      ++skipped;
    }
    // If either list may have left something out, the shorter one did.
    const bool has_fewer_probed = probed.size() - dispatch_index < marks.size() - mark_index;
    const bool probe_left_out =
        matches(dispatch_index, mark_index + skipped) &&
        (has_fewer_probed || !matches(dispatch_index + skipped, mark_index));
    if (probe_left_out) {
      mark_index += skipped;
    } else {
      dispatch_index += skipped;
    }
    if (matches(dispatch_index, mark_index)) {
      probed[dispatch_index].command->scope = marks[mark_index].command->scope;
      probed[dispatch_index].command->label = marks[mark_index].command->label;
    }
    ++dispatch_index;
    ++mark_index;
  }
}

// Sets op, graph run and label of the commands that an engine's marks surround. Marks are what the
// engine reports of its own work.
void apply_marks(Process& process) {
  const bool has_marks = std::ranges::any_of(process.queues, &Queue::from_marks) ||
                         std::ranges::any_of(process.graph_runs, &GraphRun::from_marks);
  if (!has_marks) return;
  for (Submission& submission : process.submissions) {
    for (BufferWork& buffer : submission.buffers) {
      for (Command& command : buffer.commands) command.label = buffer.label;
    }
  }
  copy_labels(process);
  const auto marks = list_dispatches(process, /*has_marks=*/true);
  const auto probed = list_dispatches(process, /*has_marks=*/false);
  copy_marks(marks, probed);
  std::vector<std::uint32_t> runs;
  for (std::uint32_t i = 0; i < process.graph_runs.size(); ++i) {
    if (process.graph_runs[i].from_marks) runs.push_back(i);
  }
  for (OpScope& scope : process.op_scopes) {
    if (!scope.place && scope.token < runs.size()) scope.run = runs[scope.token];
  }
  // The first marked run has no end before it: it begins with its first op.
  if (!runs.empty()) {
    GraphRun& first_run = process.graph_runs[runs.front()];
    const OpScope* first_op = find_first(
        process.op_scopes, [&](const OpScope& scope) { return scope.run == runs.front(); });
    if (first_op != nullptr)
      first_run.call.begin = std::min(first_run.call.begin, first_op->call.begin);
  }
  // Outside of ops, a dispatch belongs to the token that ends next after it was sent.
  const auto find_run = [&](const Dispatch& dispatch) -> std::optional<std::uint32_t> {
    if (dispatch.command->scope) return process.op_scopes[*dispatch.command->scope].run;
    const auto next_run = std::ranges::lower_bound(runs, dispatch.sent, {}, [&](std::uint32_t run) {
      return process.graph_runs[run].call.end;
    });
    if (next_run == runs.end()) return std::nullopt;
    if (process.graph_runs[*next_run].call.begin > dispatch.sent) return std::nullopt;
    return *next_run;
  };
  for (const auto* dispatches : {&marks, &probed}) {
    for (const Dispatch& dispatch : *dispatches) {
      Command& command = *dispatch.command;
      if (command.scope) command.op = process.op_scopes[*command.scope].op;
      if (const auto run = find_run(dispatch)) command.run = run;
    }
  }
}

}  // namespace

void align(Timeline& timeline) {
  Alignment alignment;
  std::set<std::string> listed;
  for (Process& process : timeline.processes) {
    align_process(process, alignment, listed);
    apply_marks(process);
  }
  if (alignment.graphs != 0) timeline.alignment = std::move(alignment);
}

}  // namespace weir::observed
