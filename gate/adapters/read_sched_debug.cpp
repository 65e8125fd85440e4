// GGML_SCHED_DEBUG=1 or 2: the splits of every graph that is laid out, and (2) its nodes.
//
// Most of the graphs are laid out only to reserve memory: their number says nothing of tokens.
// Names are cut to 20 characters and ops to 10; sizes are rounded down.
#include "gate/adapters/readers.hpp"

namespace weir::adapters::sched_debug {
namespace {

// "(   1K)" behind a name: nothing when the number is none.
std::optional<std::int64_t> bytes_of(Scan scan) {
  const auto number = scan.whole();
  if (!number || *number > (std::int64_t{1} << 40)) return std::nullopt;
  if (scan.take("K")) return *number * 1024;
  if (scan.take("M")) return *number * 1024 * 1024;
  return std::nullopt;
}

// "[embd ( 256K)] [cache_k_l0 (view) (  32K)] ": names hold brackets, so the size is the last one.
void read_inputs(std::string_view list, ObservedSplit& split) {
  Scan scan(list);
  while (scan.take("[")) {
    const auto item = scan.until(")]");
    if (!item) return;  // cut
    const std::size_t bracket = item->rfind('(');
    if (bracket == std::string_view::npos) continue;
    const auto bytes = bytes_of(Scan(item->substr(bracket + 1)));
    if (bytes) split.inputs.push_back({shown_text(item->substr(0, bracket), 100), *bytes});
  }
}

// "## SPLIT #1: Vulkan0 # 7 inputs: [ffn_post_norm-2 (   1K)] …"
std::optional<ObservedSplit> split_of(std::string_view line,
                                      std::optional<std::int64_t>& announced) {
  Scan scan(line);
  if (!scan.until("## SPLIT #")) return std::nullopt;
  ObservedSplit split;
  std::string_view backend;
  std::int64_t inputs = 0;
  if (!scan.fits("{} : {} # {} inputs", split.number, backend, inputs)) return std::nullopt;
  announced = inputs;
  split.backend = shown_text(backend, 60);
  if (scan.take(":")) read_inputs(scan.rest(), split);
  return split;
}

// "node #  4 (   MUL_MAT):               Qcur-0 (   1K) [  CPU         ] use=1,c=1:  …"
std::optional<ObservedOp> node_of(std::string_view line) {
  Scan scan(line);
  std::int64_t number = 0;
  if (!scan.fits("node # {} (", number)) return std::nullopt;
  const auto op = scan.until("):");
  const auto rest = op ? scan.until("] use=") : std::nullopt;
  if (!rest) return std::nullopt;
  const std::size_t backend = rest->rfind('[');
  const std::size_t size = rest->substr(0, backend).rfind('(');
  if (backend == std::string_view::npos || size == std::string_view::npos) return std::nullopt;
  ObservedOp node;
  node.op = shown_text(*op, 20);
  node.node = shown_text(rest->substr(0, size), 100);
  node.layer = observed::layer_of_node(node.node);
  node.calls = 1;
  return node;
}

// "input tensor 'inp_tokens' [i32, ne = {   256,     1, …": the tokens of the graph that follows.
std::optional<std::int64_t> tokens_of(std::string_view line) {
  if (line.find("inp_tokens'") == std::string_view::npos) return std::nullopt;
  Scan scan(line);
  return scan.until("ne = {") ? scan.whole() : std::nullopt;
}

bool add_split(ObservedSplit split, std::optional<std::int64_t> tokens, Observed& observed) {
  if (split.number == 0 || observed.steps.empty()) {
    const std::string label = fmt::format("graph {}", observed.steps.size());
    const Phase phase = observed::phase_of_rows(tokens.value_or(0));
    if (!keep_row(observed.steps, {label, phase, tokens, {}}, observed)) return false;
  }
  split.graph = observed.steps.size() - 1;
  return keep_row(observed.splits, std::move(split), observed);
}

void add_node(ObservedOp node, Observed& observed) {
  if (observed.splits.empty()) return;
  ObservedSplit& split = observed.splits.back();
  node.backend = split.backend;
  node.step = split.graph;
  node.phase = observed.steps[split.graph].phase;
  if (keep_op(std::move(node), observed)) split.ops = split.ops.value_or(0) + 1;
}

}  // namespace

void read(const Printed& printed, Observed& observed) {
  std::optional<std::int64_t> tokens;
  bool cut = false;
  for (const std::string_view line : printed.lines()) {
    cut = false;
    if (const auto count = tokens_of(line)) {
      tokens = count;
      continue;
    }
    std::optional<std::int64_t> announced;
    if (auto split = split_of(line, announced)) {
      cut = std::cmp_less(split->inputs.size(), *announced);
      if (!add_split(std::move(*split), tokens, observed)) break;
      if (cut) add_warning(observed, "a split lists fewer inputs than it says it has");
      tokens.reset();
    } else if (auto node = node_of(line)) {
      add_node(std::move(*node), observed);
    } else {
      cut = line.starts_with("node #") || line.starts_with("## ");
    }
  }
  if (printed.open() && cut) mark_truncated(observed);
}

}  // namespace weir::adapters::sched_debug

const weir::adapters::Format weir::adapters::k_sched_debug(
    "sched-debug", "GGML_SCHED_DEBUG=1 or 2: splits and nodes", "llama.cpp", sched_debug::read,
    {{85, {"## SPLIT #"}}});
