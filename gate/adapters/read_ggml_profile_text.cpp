// The same profiler's summary (GGML_PROFILE=1) and its table (a file that ends in .txt).
//
// Totals there have a step of 10 us; the mean has one of 10 ns, so mean x count says more.
#include "gate/adapters/readers.hpp"
#include "gate/base/text.hpp"

namespace weir::adapters::ggml_profile_text {
namespace {

void set_times(observed::ObservedOp& op, std::int64_t calls, double mean, double least,
               double most) {
  op.calls = calls;
  op.seconds = mean / 1e6 * static_cast<double>(calls);
  op.least = least / 1e6;
  op.most = most / 1e6;
}

// "[256 x 9]", "[64, 9, 4] x [64, 256]" -> "256x9", "64x9x4,64x256"
std::string shapes_of(std::string_view text) {
  std::string shapes;
  while (!text.empty()) {
    const std::size_t open = text.find('[');
    const std::size_t close = text.find(']', open == std::string_view::npos ? 0 : open);
    if (open == std::string_view::npos || close == std::string_view::npos) break;
    std::string shape;
    for (const char c : text.substr(open + 1, close - open - 1)) {
      if (c >= '0' && c <= '9') shape += c;
      if (c == 'x' || c == ',') shape += 'x';
    }
    shapes += (shapes.empty() ? "" : ",") + shape;
    text.remove_prefix(close + 1);
  }
  return shown_text(shapes);
}

// Past "0.03 GB/s", "1.20 TB/s".
void skip_speed(Scan& scan) {
  Scan ahead = scan;
  if (ahead.number() && (ahead.take("GB/s") || ahead.take("TB/s"))) scan = ahead;
}

// "[OP  ] backend 0 MUL_MAT   17.4%  count=2  total= 0.45 ms  avg= 223.56 us  min= …  max= …  …"
std::optional<observed::ObservedOp> summary_row(std::string_view line) {
  Scan scan(line);
  observed::ObservedOp op;
  const bool copy = scan.take("[COPY]");
  if (!copy && !scan.take("[OP  ]")) return std::nullopt;
  if (!scan.take("backend")) return std::nullopt;
  const auto backend = scan.whole();
  const auto name = scan.word();
  if (!backend || !name || !scan.number() || !scan.take("%") || !scan.take("count="))
    return std::nullopt;
  const auto calls = scan.whole();
  if (!calls || !scan.take("total=") || !scan.number() || !scan.take("ms") || !scan.take("avg="))
    return std::nullopt;
  const auto mean = scan.number();
  if (!mean || !scan.take("us") || !scan.take("min=")) return std::nullopt;
  const auto least = scan.number();
  if (!least || !scan.take("us") || !scan.take("max=")) return std::nullopt;
  const auto most = scan.number();
  if (!most || !scan.take("us")) return std::nullopt;
  op.op = shown_text(*name);
  op.category = copy ? "copy" : "";
  op.backend = fmt::format("backend {}", *backend);
  set_times(op, *calls, *mean, *least, *most);
  skip_speed(scan);
  op.shape = shapes_of(scan.rest());
  return op;
}

// "OP       0  MUL_MAT      17.4%       2        0.45      223.56      113.59  …"
std::optional<observed::ObservedOp> table_row(std::string_view line) {
  Scan scan(line);
  const bool copy = scan.take("COPY ");
  if (!copy && !scan.take("OP ")) return std::nullopt;
  observed::ObservedOp op;
  const auto backend = scan.whole();
  const auto name = scan.word();
  if (!backend || !name || !scan.number() || !scan.take("%")) return std::nullopt;
  const auto calls = scan.whole();
  const auto total = scan.number();
  const auto mean = scan.number();
  const auto least = scan.number();
  const auto most = scan.number();
  if (!calls || !total || !mean || !least || !most) return std::nullopt;
  op.op = shown_text(*name);
  op.category = copy ? "copy" : "";
  op.backend = fmt::format("backend {}", *backend);
  set_times(op, *calls, *mean, *least, *most);
  skip_speed(scan);
  op.shape = shapes_of(scan.rest());
  return op;
}

// "  Backend 0 (Vulkan0): 2.12 ms (82.5%)"
bool read_backend(std::string_view line, observed::Observed& observed) {
  Scan scan(line);
  if (!scan.take("Backend")) return false;
  const auto number = scan.whole();
  if (!number || !scan.take("(")) return false;
  const auto name = scan.until("):");
  if (name) observed.context.facts[fmt::format("backend {}", *number)] = shown_text(*name);
  return name.has_value();
}

// Its table has a column that the summary has not: they do not both stand in one text.
void name_backends(observed::Observed& observed) {
  for (auto& op : observed.ops) {
    const auto known = observed.context.facts.find(op.backend);
    if (known != observed.context.facts.end()) op.backend = known->second;
  }
}

}  // namespace

int recognises(const Printed& printed) {
  if (printed.begins("=== Profiling Summary ===")) return 85;
  return printed.begins("[OP  ] backend ") ? 70 : 0;
}

Result<observed::Observed> read(const Printed& printed) {
  observed::Observed observed;
  observed.context.engine = "llama.cpp";
  bool total = false;
  for (const std::string_view line : printed.lines()) {
    auto op = summary_row(line);
    if (!op) op = table_row(line);
    if (op) {
      keep_row(observed.ops, std::move(*op), observed);
    } else if (!read_backend(line, observed)) {
      Scan scan(line);
      total = total || (scan.take("Total:") && scan.number() && scan.take("ms") &&
                        scan.until("unique ops)"));
    }
  }
  name_backends(observed);
  if (observed.ops.empty()) return nothing_found("ggml-profiler-text");
  if (!total) mark_truncated(observed);
  return observed;
}

}  // namespace weir::adapters::ggml_profile_text
