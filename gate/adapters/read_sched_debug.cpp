// GGML_SCHED_DEBUG=1 or 2: the splits of every scheduled graph, and with 2 its nodes.
//
// Most graphs are scheduled only to reserve memory, so their number does not follow from tokens.
// Names are cut to 20 characters and ops to 10; sizes are rounded down.
#include "gate/adapters/readers.hpp"

namespace weir::adapters::sched_debug {
namespace {

// Parses the size in "(   1K)", in bytes.
std::optional<std::int64_t> parse_size(LineScanner scan) {
  const auto number = scan.integer();
  if (!number || *number > (std::int64_t{1} << 40)) return std::nullopt;
  if (scan.skip_prefix("K")) return *number * 1024;
  if (scan.skip_prefix("M")) return *number * 1024 * 1024;
  return std::nullopt;
}

// Reads a list of inputs: "[embd ( 256K)] [cache_k_l0 (view) (  32K)] ". Names may hold brackets,
// so the last bracket is the size.
void read_inputs(std::string_view list, ObservedSplit& split) {
  LineScanner scan(list);
  while (scan.skip_prefix("[")) {
    const auto item = scan.read_until(")]");
    if (!item) return;  // cut
    const std::size_t bracket = item->rfind('(');
    if (bracket == std::string_view::npos) continue;
    const auto bytes = parse_size(LineScanner(item->substr(bracket + 1)));
    if (bytes) split.inputs.push_back({display_text(item->substr(0, bracket), 100), *bytes});
  }
}

// Parses "## SPLIT #1: Vulkan0 # 7 inputs: [ffn_post_norm-2 (   1K)] …". `announced` becomes the
// number of inputs that the line names.
std::optional<ObservedSplit> parse_split(std::string_view line,
                                         std::optional<std::int64_t>& announced) {
  LineScanner scan(line);
  if (!scan.read_until("## SPLIT #")) return std::nullopt;
  ObservedSplit split;
  std::string_view backend;
  std::int64_t inputs = 0;
  if (!scan.read_values("{} : {} # {} inputs", split.number, backend, inputs)) return std::nullopt;
  announced = inputs;
  split.backend = display_text(backend, 60);
  if (scan.skip_prefix(":")) read_inputs(scan.rest(), split);
  return split;
}

// Parses "node #  4 (   MUL_MAT):               Qcur-0 (   1K) [  CPU         ] use=1,c=1:  …".
std::optional<ObservedOp> parse_node(std::string_view line) {
  LineScanner scan(line);
  std::int64_t number = 0;
  if (!scan.read_values("node # {} (", number)) return std::nullopt;
  const auto op = scan.read_until("):");
  const auto rest = op ? scan.read_until("] use=") : std::nullopt;
  if (!rest) return std::nullopt;
  const std::size_t backend = rest->rfind('[');
  const std::size_t size = rest->substr(0, backend).rfind('(');
  if (backend == std::string_view::npos || size == std::string_view::npos) return std::nullopt;
  ObservedOp node;
  node.op = display_text(*op, 20);
  node.node = display_text(rest->substr(0, size), 100);
  node.layer = observed::layer_of_node(node.node);
  node.calls = 1;
  return node;
}

// Parses "input tensor 'inp_tokens' [i32, ne = {   256,     1, …": the tokens of the next graph.
std::optional<std::int64_t> parse_tokens(std::string_view line) {
  if (line.find("inp_tokens'") == std::string_view::npos) return std::nullopt;
  LineScanner scan(line);
  return scan.read_until("ne = {") ? scan.integer() : std::nullopt;
}

// Adds a split. Split 0 begins a new graph, with a step of `tokens` tokens.
bool add_split(ObservedSplit split, std::optional<std::int64_t> tokens, Observed& observed) {
  if (split.number == 0 || observed.steps.empty()) {
    const std::string label = fmt::format("graph {}", observed.steps.size());
    const Phase phase = observed::phase_of_rows(tokens.value_or(0));
    if (!append_row_within_limit(observed.steps, {label, phase, tokens, {}}, observed))
      return false;
  }
  split.graph = observed.steps.size() - 1;
  return append_row_within_limit(observed.splits, std::move(split), observed);
}

// Adds a node to the last split.
void add_node(ObservedOp node, Observed& observed) {
  if (observed.splits.empty())
    return add_unread_part(observed, "nodes", "no split stands above the first");
  ObservedSplit& split = observed.splits.back();
  node.backend = split.backend;
  node.step = split.graph;
  node.phase = observed.steps[split.graph].phase;
  if (append_valid_op(std::move(node), observed)) split.ops = split.ops.value_or(0) + 1;
}

}  // namespace

// Reads the splits of each graph with their nodes, and the number of tokens that was printed before
// them. A line of another form is counted as unread, unless the text was cut within it:
//
//   graph_reserve: reserving a graph for ubatch with n_tokens =    1, n_seqs =  1, n_outputs =    1
//   ## SPLIT #1: Vulkan0 # 7 inputs: [ffn_post_norm-2 (   1K)] …
//   node #  2 (  RMS_NORM):               norm-0 (   1K) [  CPU         ] use=1,c=1: …
void read(const Printed& printed, Observed& observed) {
  std::optional<std::int64_t> tokens;  // of the next graph
  bool is_last_line_incomplete = false;
  for (const std::string_view line : printed.lines()) {
    is_last_line_incomplete = false;
    if (const auto count = parse_tokens(line)) {
      tokens = count;
      continue;
    }
    std::optional<std::int64_t> input_count;  // as the line says
    if (auto split = parse_split(line, input_count)) {
      is_last_line_incomplete = std::cmp_less(split->inputs.size(), *input_count);
      if (!add_split(std::move(*split), tokens, observed)) break;
      if (is_last_line_incomplete)
        add_warning(observed, "a split lists fewer inputs than it says it has");
      tokens.reset();
    } else if (auto node = parse_node(line)) {
      add_node(std::move(*node), observed);
    } else {
      const bool is_node = line.starts_with("node #");
      is_last_line_incomplete = is_node || line.starts_with("## ");
      if (printed.may_be_cut(line)) continue;
      if (is_node) add_unread_part(observed, "nodes", "a line has another form");
      if (line.starts_with("## SPLIT"))
        add_unread_part(observed, "splits", "a line has another form");
    }
  }
  if (printed.lacks_final_newline() && is_last_line_incomplete) mark_truncated(observed);
}

}  // namespace weir::adapters::sched_debug

const weir::adapters::Format weir::adapters::k_sched_debug(
    "sched-debug", "GGML_SCHED_DEBUG=1 or 2: splits and nodes", "llama.cpp", sched_debug::read,
    {{85, {"## SPLIT #"}}});
