#include "gate/probes/read/work.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "gate/probes/read/event_names.hpp"
#include "gate/profile/replay.hpp"

namespace weir::probes {
namespace {

constexpr std::size_t k_most_shapes = 64;
constexpr std::size_t k_most_ops = 8192;

constexpr std::pair<const char*, weir_probe_graph_sum> k_sums[] = {
    {"tensor_copies", WEIR_GRAPH_TENSOR_COPIES}, {"tensor_sets", WEIR_GRAPH_TENSOR_SETS},
    {"tensor_gets", WEIR_GRAPH_TENSOR_GETS},     {"copied_bytes", WEIR_GRAPH_COPIED_BYTES},
    {"backend_syncs", WEIR_GRAPH_BACKEND_SYNCS},
};

std::int64_t whole(std::uint64_t count) {
  std::int64_t out = 0;
  add_count(&out, count);
  return out;
}

// The sources, then what becomes of them.
template <class TextOf>
std::string operands_text(const ProbeOp& op, TextOf text_of) {
  std::string out;
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    const bool result = i + 1 == op.operands.size();
    if (i > 0) out += result ? "->" : ",";
    out += text_of(op.operands[i]);
  }
  return out;
}

}  // namespace

void add_count(std::int64_t* sum, std::uint64_t amount) {
  const auto room = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max() - *sum);
  *sum += static_cast<std::int64_t>(std::min(amount, room));
}

std::string type_text(const ProbeOp& op) {
  return operands_text(op, [](const ProbeOperand& operand) { return operand.type; });
}

std::string shape_text(const ProbeOp& op) {
  return operands_text(op,
                       [](const ProbeOperand& operand) { return profile::sizes_text(operand.ne); });
}

bool is_cpu_backend(const ProbeDevice& device) {
  return device.type == "cpu" && (device.api == "cpu" || device.api == "ggml");
}

void Work::add(const ProbeFile& file) {
  std::vector<GraphKey> keys;
  for (const ProbeGraph& graph : file.graphs) {
    keys.emplace_back(graph.rows, graph.ops, graph.cpu_ops, graph.splits, graph.hash);
    if (graph.computed == 0) continue;
    profile::GraphCount& sum = graphs_[keys.back()];
    sum.rows = whole(graph.rows);
    sum.ops = whole(graph.ops);
    sum.cpu_ops = whole(graph.cpu_ops);
    sum.splits = whole(graph.splits);
    add_count(&sum.computed, graph.computed);
    for (const auto& [name, which] : k_sums) add_count(&sum.sums[name], graph.sums[which]);
  }
  for (const ProbeOp& op : file.ops) {
    // A graph is counted after its ops: one that was being counted when the process was killed is
    // left out with them, unless it had been computed before.
    if (op.count == 0 || file.graphs[op.graph].computed == 0) continue;
    const ProbeDevice& device = file.devices[op.device];
    Shapes& shapes =
        ops_[{keys[op.graph], op.op, type_text(op), device.name, is_cpu_backend(device)}];
    add_count(&shapes[shape_text(op)], op.count);
  }
  for (const ProbeTransfer& transfer : file.transfers) {
    if (transfer.calls == 0 || transfer.kind > WEIR_TRANSFER_FILL) continue;
    auto& [calls, bytes] =
        transfers_[{std::string(transfer_name(transfer.kind)), transfer.from, transfer.to}];
    add_count(&calls, transfer.calls);
    add_count(&bytes, transfer.bytes);
  }
}

void Work::tell(profile::ProbeCounts* out) const {
  std::map<GraphKey, std::int64_t> index;
  for (const auto& [key, graph] : graphs_) {
    index[key] = static_cast<std::int64_t>(out->graphs.size());
    out->graphs.push_back(graph);
  }
  bool cut = false;
  for (const auto& [key, shapes] : ops_) {
    profile::OpCount op{.op = key.op,
                        .type = key.type,
                        .shape = "",
                        .backend = key.backend,
                        .on_cpu = key.on_cpu,
                        .graph = index.at(key.graph),
                        .count = 0};
    Shapes told = shapes;
    if (shapes.size() > k_most_shapes) {
      std::int64_t sum = 0;
      for (const auto& [shape, count] : shapes) add_count(&sum, static_cast<std::uint64_t>(count));
      told = {{"*", sum}};
    }
    for (const auto& [shape, count] : told) {
      cut = cut || out->ops.size() == k_most_ops;
      if (cut) break;
      op.shape = shape;
      op.count = count;
      out->ops.push_back(op);
    }
  }
  if (cut) {
    out->warnings.push_back(fmt::format(
        "more than {} kinds of ops: the list ends there, the counts do not", k_most_ops));
  }
  for (const auto& [key, moved] : transfers_) {
    const auto& [kind, from, to] = key;
    out->transfers.push_back(
        {.kind = kind, .from = from, .to = to, .calls = moved.first, .bytes = moved.second});
  }
}

}  // namespace weir::probes
