// test-export-graph-ops: which ops a model's graphs have, one a line. It tells shapes and types;
// how often each occurs and how long it takes is not in it.
//
// OP OUT_TYPE NE×4 N_PARAMS P×n N_SRC (TYPE NE×4 NB×4)×n NAME. The numbers of ops shift from build
// to build, so an op is "op 29" here, unless one of its name says more.
#include "gate/adapters/readers.hpp"
#include "gate/base/text.hpp"

namespace weir::adapters::graph_ops {
namespace {

constexpr std::int64_t k_most_params = 64;
constexpr std::int64_t k_most_sources = 16;

// Numbers in turn; `ok` is false after one that was none.
struct Numbers {
  Scan scan;
  bool ok = true;
  std::int64_t next() {
    const bool negative = scan.take("-");
    const auto value = scan.whole();
    if (!value) ok = false;
    return negative ? -value.value_or(0) : value.value_or(0);
  }
  std::string shape() {
    std::vector<std::int64_t> sizes;
    for (int i = 0; i < 4; ++i) sizes.push_back(next());
    return shape_text(sizes);
  }
};

std::optional<observed::ObservedOp> op_of(std::string_view line) {
  if (line.empty() || line[0] < '0' || line[0] > '9') return std::nullopt;
  Numbers numbers{Scan(line)};
  observed::ObservedOp op;
  op.op = fmt::format("op {}", numbers.next());
  const std::string out_type = type_text(numbers.next());
  const std::string result = numbers.shape();
  const std::int64_t params = numbers.next();
  if (!numbers.ok || params < 0 || params > k_most_params) return std::nullopt;
  for (std::int64_t i = 0; i < params; ++i) numbers.next();
  const std::int64_t sources = numbers.next();
  if (!numbers.ok || sources < 0 || sources > k_most_sources) return std::nullopt;
  std::string types;
  std::string shapes;
  for (std::int64_t i = 0; i < sources && numbers.ok; ++i) {
    types += (types.empty() ? "" : ",") + type_text(numbers.next());
    shapes += (shapes.empty() ? "" : ",") + numbers.shape();
    for (int stride = 0; stride < 4; ++stride) numbers.next();
  }
  if (!numbers.ok || result.empty() || numbers.scan.done()) return std::nullopt;
  op.type = fmt::format("{}->{}", types, out_type);
  op.shape = fmt::format("{}->{}", shapes, result);
  op.node = shown_text(numbers.scan.rest(), 100);
  op.layer = observed::layer_of_node(op.node);
  observed::fill_from_shape(op);
  return op;
}

}  // namespace

int recognises(const Printed& printed) {
  std::size_t ops = 0;
  for (const std::string_view line : printed.out()) {
    if (op_of(line)) ++ops;
    if (ops > 0 && (ops > 2 || printed.out().size() < 4)) return 50;
  }
  return 0;
}

Result<observed::Observed> read(const Printed& printed) {
  observed::Observed observed;
  observed.context.engine = "llama.cpp";
  for (const std::string_view line : printed.out()) {
    auto op = op_of(line);
    if (op && !printed.cut(line)) {
      keep_row(observed.ops, std::move(*op), observed);
    } else if (!line.empty()) {
      add_warning(observed, "a line is no op: it was left out");
    }
  }
  if (printed.open()) mark_truncated(observed);
  if (observed.ops.empty()) return nothing_found("graph-ops");
  return observed;
}

}  // namespace weir::adapters::graph_ops
