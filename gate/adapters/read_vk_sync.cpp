// GGML_VK_SYNC_LOGGER: every node and every barrier of each graph, in order.
#include "gate/adapters/readers.hpp"

namespace weir::adapters::vk_sync {
namespace {

struct Node {
  std::int64_t index = 0;
  std::string_view op, name;
};

// "12 ROPE Qcur-0 rope mode: 2"
std::optional<Node> node_of(std::string_view line) {
  if (line.empty() || line[0] < '0' || line[0] > '9') return std::nullopt;
  Scan scan(line);
  Node node;
  const auto index = scan.whole();
  const auto op = scan.word();
  const auto name = scan.word();
  if (!index || !op || !name) return std::nullopt;
  for (const char c : *op) {
    if (!((c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_')) return std::nullopt;
  }
  return Node{*index, *op, *name};
}

}  // namespace

int recognises(const Printed& printed) {
  std::size_t syncs = 0;
  std::size_t nodes = 0;
  for (const std::string_view line : printed.lines()) {
    if (line == "sync") ++syncs;
    if (node_of(line)) ++nodes;
    if (syncs > 2 && nodes > 2) return 60;
  }
  return 0;
}

Result<observed::Observed> read(const Printed& printed) {
  observed::Observed observed;
  observed.context.engine = "llama.cpp";
  observed.context.backend = "Vulkan";
  std::int64_t last = -1;
  for (const std::string_view line : printed.lines()) {
    const auto node = node_of(line);
    if (!node && line != "sync") continue;
    if (node && printed.cut(line)) {
      mark_truncated(observed);  // its name may go on
      break;
    }
    if (observed.buffers.empty() || (node && node->index < last)) {
      observed::ObservedBuffer graph;
      graph.label = fmt::format("graph {}", observed.buffers.size());
      graph.step = observed.steps.size();
      graph.barriers = 0;
      if (!keep_row(observed.steps, {graph.label, observed::Phase::unknown, {}, {}}, observed))
        break;
      observed.buffers.push_back(std::move(graph));
    }
    observed::ObservedBuffer& graph = observed.buffers.back();
    if (!node) {
      graph.barriers = *graph.barriers + 1;
      continue;
    }
    last = node->index;
    observed::ObservedOp op;
    op.op = shown_text(node->op);
    op.node = shown_text(node->name);
    op.layer = observed::layer_of_node(op.node);
    op.backend = "Vulkan";
    op.calls = 1;
    op.step = graph.step;
    keep_row(observed.ops, std::move(op), observed);
  }
  if (observed.buffers.empty()) return nothing_found("vk-sync-logger");
  return observed;
}

}  // namespace weir::adapters::vk_sync
