// GGML_VK_PERF_LOGGER (llama.cpp's Vulkan backend): a block of timings for every graph.
//
// The first number of a line is a mean in whole nanoseconds, so the second one, the sum, is used.
// The flops of a call are its rate times its time, for ops that have a formula.
#include <limits>
#include <numeric>

#include "gate/adapters/readers.hpp"

namespace weir::adapters::vk_perf {
namespace {

// A line "NAME: 4 x 737.189 us = 2948.76 us (0.355599 GFLOPS/s)".
struct Timing {
  std::string_view name;
  std::int64_t calls = 0;
  double seconds = 0;
  std::optional<double> flops_per_second;
};

// Names hold ", " and brackets, but no ": ".
std::optional<Timing> parse_timing(std::string_view text) {
  LineScanner scan(text);
  Timing line;
  const auto name = scan.read_until_last(": ");
  if (!name || name->empty()) return std::nullopt;
  line.name = *name;
  double each = 0, all = 0, rate = 0;
  if (!scan.read_values("{} x {} us  = {} us", line.calls, each, all)) return std::nullopt;
  if (line.calls == 0 || all < 0) return std::nullopt;
  line.seconds = all / 1e6;
  if (scan.read_values("({} GFLOPS/s)", rate) && rate > 0) line.flops_per_second = rate * 1e9;
  return line;
}

// Returns true for text that was meant to be a row: "NAME: … x … us".
bool resembles_row(std::string_view text) {
  return text.find(": ") != text.npos && text.find(" x ") != text.npos &&
         text.find(" us") != text.npos;
}

// Returns true for a row of a build before July 2025: "ADD: 64 x 263.644 ms", a mean.
bool is_old_row(std::string_view text) {
  LineScanner scan(text);
  std::int64_t calls = 0;
  double each = 0;
  const auto name = scan.read_until_last(": ");
  return name && scan.read_values("{} x {} ms", calls, each) && scan.done();
}

// Sets op, kernel and shape from a node's name, "[FUSION ]OP[ details]" or "OP(details)". A name of
// several nodes between two syncs, "ADD, MUL", cannot be split safely, so it is kept as a kernel of
// its own; details of attention and convolutions have commas too. "MUL_MAT_VEC" is the kernel of
// the op "MUL_MAT".
void parse_op_name(std::string_view name, ObservedOp& op) {
  LineScanner scan(name);
  const std::string_view first = scan.word().value_or("");
  const std::string_view rest = scan.rest();
  const std::size_t bracket = rest.find('(');
  const std::string_view second = rest.substr(0, std::min(rest.find(' '), bracket));
  const bool is_joined = name.find(", ") != std::string_view::npos &&
                         !first.starts_with("FLASH_ATTN") && !first.starts_with("CONV_");
  if (is_joined || first.ends_with(',')) {
    op.op = display_text(name, 400);
    op.kernel = op.op;
    return;
  }
  std::string_view details = rest;
  if (is_op_name(second)) {
    op.kernel = display_text(first);
    op.op = display_text(second);
    details = rest.substr(second.size());
  } else {
    op.op = display_text(first.substr(0, first.find('(')));
    if (first.find('(') != std::string_view::npos) details = name.substr(first.find('('));
  }
  if (op.op == "MUL_MAT_VEC" || op.op == "MUL_MAT_ID_VEC") {
    op.kernel = op.op;
    op.op = op.op.substr(0, op.op.size() - std::string_view("_VEC").size());
  }
  op.shape = display_text(details, 300);
}

// Returns the number after `key` ("m="), which must begin a word.
std::optional<std::int64_t> number_after(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos || (at > 0 && text[at - 1] != ' ')) return std::nullopt;
  return LineScanner(text.substr(at + key.size())).integer();
}

// Sets type and shape of a matrix multiplication from "q8_0 m=64 n=1 k=256": the first source is
// k x m, the second k x n, the result m x n.
void set_matmul_shape(ObservedOp& op) {
  if (op.op != "MUL_MAT") return;
  const auto m = number_after(op.shape, "m=");
  const auto n = number_after(op.shape, "n=");
  const auto k = number_after(op.shape, "k=");
  if (!m || !n || !k || op.shape.find("batch=") != std::string::npos) return;
  const std::string weights(LineScanner(op.shape).word().value_or(""));
  const std::string first_source = shape_text({*k, *m});
  const std::string second_source = shape_text({*k, *n});
  const std::string result = shape_text({*m, *n});
  if (first_source.empty() || second_source.empty() || result.empty()) return;
  op.type = fmt::format("{},f32->f32", weights);
  op.shape = fmt::format("{},{}->{}", first_source, second_source, result);
}

// The timings of one or more graphs.
struct Block {
  std::size_t step = 0;
  std::optional<std::int64_t> columns;  // most columns of a matrix multiplication
  std::int64_t graphs = 0;              // greatest common divisor of the calls of all lines
  bool open = false;
};

// Adds one line of a block as an op. The block's columns are the largest n of its matrix
// multiplications, and its graphs the greatest common divisor of all calls.
void add_timing(const Timing& line, Block& block, Observed& observed) {
  ObservedOp op;
  parse_op_name(line.name, op);
  if (op.op == "MUL_MAT") {
    if (const auto n = number_after(op.shape, "n="))
      block.columns = std::max(block.columns.value_or(0), *n);
  }
  set_matmul_shape(op);
  block.graphs = std::gcd(block.graphs, line.calls);
  op.backend = "Vulkan";
  op.step = block.step;
  op.calls = line.calls;
  op.seconds = line.seconds;
  if (line.flops_per_second) {
    op.flops = *line.flops_per_second * line.seconds / static_cast<double>(line.calls);
  }
  append_valid_op(std::move(op), observed);
}

// Ends a block and sets phase and tokens of its step. A graph whose matrix multiplications have one
// column is a token's. A block may hold several graphs (GGML_VK_PERF_LOGGER_FREQUENCY) without
// their number. Every graph has ops that occur once (the last norm, the output), so the number is
// the greatest common divisor of the calls.
void end_block(Block& block, std::optional<double> total, Observed& observed) {
  ObservedStep& step = observed.steps[block.step];
  step.seconds = total;
  if (block.columns) {
    step.phase = observed::phase_of_rows(*block.columns);
    const std::int64_t graphs = std::max<std::int64_t>(block.graphs, 1);
    if (*block.columns <= std::numeric_limits<std::int64_t>::max() / graphs) {
      step.tokens = *block.columns * graphs;
    }
  }
  if (block.graphs > 1) {
    add_warning(observed,
                "blocks hold several graphs: weir takes their number from how often ops occur");
  }
  for (auto op = observed.ops.rbegin(); op != observed.ops.rend() && op->step == block.step; ++op) {
    op->phase = step.phase;
  }
  block.open = false;
}

}  // namespace

void read(const Printed& printed, Observed& observed) {
  Block block;
  std::size_t invalid_rows = 0;
  for (const std::string_view line : printed.lines()) {
    LineScanner scan(line);
    if (!block.open && scan.skip_prefix("ggml_vulkan: 0 =")) {
      const auto device = scan.read_until(" | ");
      if (device) observed.context.device = display_text(*device);
    } else if (scan.skip_prefix("Vulkan Timings:")) {
      if (block.open) {
        end_block(block, std::nullopt, observed);
        add_warning(observed, "a block of timings has no total: it is incomplete");
        add_unread_part(observed, "blocks of timings", "no total stands at its end");
      }
      block = {};
      block.step = observed.steps.size();
      const std::string label = fmt::format("block {}", observed.steps.size());
      block.open =
          append_row_within_limit(observed.steps, {label, Phase::unknown, {}, {}}, observed);
    } else if (block.open && scan.skip_prefix("Total time:")) {
      const auto total = scan.number();
      if (!total || !scan.skip_prefix("us.")) continue;
      end_block(block, *total / 1e6, observed);
      add_read_parts(observed, "blocks of timings");
    } else if (block.open) {
      if (const auto timing = parse_timing(line)) {
        add_timing(*timing, block, observed);
      } else if (is_old_row(line) && !printed.may_be_cut(line)) {
        add_unread_part(observed, "rows", "an older form that prints microseconds as \"ms\"");
      } else if (resembles_row(line) && !printed.may_be_cut(line)) {
        ++invalid_rows;
      }
    } else if (parse_timing(line)) {
      add_unread_part(observed, "rows of timings", "no heading of a block stands above it");
    }
  }
  if (block.open) {
    end_block(block, std::nullopt, observed);
    mark_truncated(observed);
  }
  if (invalid_rows > 0) {
    add_warning(observed, "{} of the rows of timings make no sense and were left out",
                invalid_rows);
  }
  if (observed.ops.empty() && !observed.parts.empty()) observed.steps.clear();  // nothing was read
  if (!observed.steps.empty()) observed.context.backend = "Vulkan";
}

}  // namespace weir::adapters::vk_perf

const weir::adapters::Format weir::adapters::k_vk_perf("vk-perf-logger",
                                                       "GGML_VK_PERF_LOGGER, also concurrent",
                                                       "llama.cpp", vk_perf::read,
                                                       {{95, {"^Vulkan Timings:"}}});

// GGML_VK_SYNC_LOGGER: every node and every barrier of each graph, in order.
namespace weir::adapters::vk_sync {
namespace {

struct Node {
  std::int64_t index = 0;
  std::string_view op, name;
};

// Parses "12 ROPE Qcur-0 rope mode: 2".
std::optional<Node> parse_node(std::string_view line) {
  if (line.empty() || !text::is_digit(line[0])) return std::nullopt;
  Node node;
  const bool fits = LineScanner(line).read_values("{} {} {}", node.index, node.op, node.name);
  return fits && is_op_name(node.op) ? std::optional(node) : std::nullopt;
}

}  // namespace

int recognises(const Printed& printed) {
  std::size_t syncs = 0, nodes = 0;
  for (const std::string_view line : printed.lines()) {
    if (line == "sync") ++syncs;
    if (parse_node(line)) ++nodes;
    if (syncs > 2 && nodes > 2) return 60;
  }
  return 0;
}

// Reads nodes ("12 ROPE Qcur-0 rope mode: 2") and barriers ("sync"). A smaller index than the last
// begins the next graph.
void read(const Printed& printed, Observed& observed) {
  std::int64_t last = -1;
  for (const std::string_view line : printed.lines()) {
    const auto node = parse_node(line);
    if (!node && line != "sync") {
      LineScanner scan(line);
      const bool is_like_node = scan.integer() && is_op_name(scan.word().value_or(""));
      if (is_like_node && scan.done() && !printed.may_be_cut(line))
        add_unread_part(observed, "nodes", "a node has no name");
      continue;
    }
    if (node && printed.may_be_cut(line)) {
      mark_truncated(observed);  // its name may go on
      break;
    }
    if (observed.buffers.empty() || (node && node->index < last)) {
      ObservedBuffer graph;
      graph.label = fmt::format("graph {}", observed.buffers.size());
      graph.step = observed.steps.size();
      graph.barriers = 0;
      if (!append_row_within_limit(observed.steps, {graph.label, Phase::unknown, {}, {}}, observed))
        break;
      observed.buffers.push_back(std::move(graph));
    }
    ObservedBuffer& graph = observed.buffers.back();
    if (!node) {
      graph.barriers = *graph.barriers + 1;
      continue;
    }
    last = node->index;
    ObservedOp op;
    op.op = display_text(node->op);
    op.node = display_text(node->name);
    op.layer = observed::layer_of_node(op.node);
    op.backend = "Vulkan";
    op.calls = 1;
    op.step = graph.step;
    append_valid_op(std::move(op), observed);
  }
  if (!observed.buffers.empty()) observed.context.backend = "Vulkan";
}

}  // namespace weir::adapters::vk_sync

const weir::adapters::Format weir::adapters::k_vk_sync("vk-sync-logger", "GGML_VK_SYNC_LOGGER",
                                                       "llama.cpp", vk_sync::read, {}, {},
                                                       vk_sync::recognises);
