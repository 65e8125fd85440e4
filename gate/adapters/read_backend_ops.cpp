// llama.cpp's programs for single ops: test-backend-ops (the console's lines, perf and test, and
// its sql; its csv holds no times) and test-export-graph-ops.

#include "gate/adapters/readers.hpp"

namespace weir::adapters::backend_ops {
namespace {

// "[64,1,1,1]" -> "64"
std::string shape_of(std::string_view list) {
  std::vector<std::int64_t> sizes;
  for (const std::string& part : text::split(list, ',')) {
    const auto size = text::to_int(text::trim(part));
    if (!size || sizes.size() == 8) return "";
    sizes.push_back(*size);
  }
  return shape_text(sizes);
}

// Cases from a file name all their tensors: "name=Kcur-0,type=f32,ne=[64,1,1,1],op_params=[],
// sources=q8_0[256,64,1,1],f32[256,1,1,1]". Built-in ones have a form for each op.
void describe(std::string_view params, ObservedOp& op) {
  op.shape = shown_text(params, 400);
  Scan result(params), sources(params), type(params);
  if (!result.until("ne=[") || !sources.until("sources=") || !type.until("type=")) return;
  std::string types, shapes;
  while (!sources.done()) {
    sources.take(",");
    const auto source_type = sources.until("["), sizes = sources.until("]");
    const std::string shape = sizes ? shape_of(*sizes) : "";
    if (shape.empty()) return;
    types += (types.empty() ? "" : ",") + shown_text(*source_type, 20);
    shapes += (shapes.empty() ? "" : ",") + shape;
  }
  const std::string out = shape_of(result.until("]").value_or(""));
  const auto out_type = type.until(",");
  if (out.empty() || types.empty() || !out_type) return;
  op.type = fmt::format("{}->{}", types, shown_text(*out_type, 20));
  op.shape = fmt::format("{}->{}", shapes, out);
  if (params.starts_with("name=")) op.node = shown_text(params.substr(5, params.find(',') - 5));
  op.layer = observed::layer_of_node(op.node);
}

// "OP(PARAMS): …": params hold brackets, so the last "):" ends them.
struct Case {
  std::string_view op, params, result, before;
};
std::optional<Case> case_of(std::string_view line) {
  Scan scan(line);
  const auto head = scan.until_last("):");
  if (!head) return std::nullopt;
  // Notes such as "[NONE] NaN at index 617 (CPU=nan CPU=nan)   OP(…)" stand in front of the op.
  Scan rest(*head);
  const std::string_view before = rest.until_last("  ").value_or("");
  const auto op = rest.until("(");
  if (!op || !names_op(*op)) return std::nullopt;
  return Case{*op, rest.rest(), scan.rest(), before};
}

double scale_of(std::string_view unit) {
  constexpr std::string_view k_letters = "kMGT";
  const std::size_t letter = unit.empty() ? k_letters.npos : k_letters.find(unit[0]);
  return letter == k_letters.npos ? 1 : std::pow(1e3, static_cast<double>(letter + 1));
}

// "10084352 runs -     0.10 us/run -        3 kB/run -   28.85 GB/s"; where a formula is known
// "4.19 MFLOP/run - 120.32 GFLOPS".
bool read_times(std::string_view result, ObservedOp& op) {
  Scan scan(result);
  std::int64_t runs = 0;
  double each = 0, amount = 0;
  std::string_view unit;
  if (!scan.fits("{} runs - {} us/run -", runs, each) || each < 0) return false;
  op.calls = runs;
  op.seconds = each / 1e6 * static_cast<double>(runs);
  if (!scan.fits("{} {}", amount, unit)) return true;
  if (unit == "kB/run") {
    observed::fill_from_shape(op);  // exact, where "18 kB" is rounded
    if (!op.bytes) op.bytes = amount * 1024;
  } else if (unit.ends_with("FLOP/run")) {
    op.flops = amount * scale_of(unit);
  }
  return true;
}

class Console {
 public:
  explicit Console(Observed& observed) : observed_(observed) {}
  [[nodiscard]] bool ended() const { return ended_; }

  void take(std::string_view line) {
    Scan scan(line);
    if (scan.take("Backend ")) return backend(line);
    if (scan.take("Device description:")) {
      observed_.context.device = shown_text(scan.rest());
    } else if (scan.take("Skipping")) {
      add_warning(observed_, "{} was skipped: nothing was measured on it", backend_);
    } else if (line.starts_with("failed to allocate") || scan.take("what():")) {
      observed_.errors.push_back(shown_text(line));
    } else if (line.find(" backends passed") != std::string_view::npos) {
      ended_ = true;
    } else if (line.starts_with("Failing tests:")) {
      list_ = true;  // the same cases again
    } else if (!list_) {
      one(line);
    }
  }

 private:
  // "Backend 1/1: CPU", "  Backend CPU: OK"
  void backend(std::string_view line) {
    list_ = false;
    Scan scan(line);
    std::int64_t number = 0, of = 0;
    if (!scan.fits("Backend {} / {} :", number, of)) return;
    backend_ = shown_text(scan.rest(), 60);
    observed_.context.backend = backend_;
  }

  void one(std::string_view line) {
    const auto found = case_of(line);
    if (!found) return;
    ObservedOp op;
    op.op = shown_text(found->op);
    op.backend = backend_;
    describe(found->params, op);
    if (found->result.starts_with("FAIL")) {
      observed_.errors.push_back(
          shown_text(fmt::format("{}({}): {}", found->op, found->params,
                                 found->before.empty() ? "FAIL" : found->before),
                     400));
    } else if (found->result.starts_with("not supported")) {
      add_warning(observed_, "not supported: {}({})", found->op, shown_text(found->params));
    } else if (read_times(found->result, op) || found->result.starts_with("OK")) {
      keep_op(std::move(op), observed_);
    }
  }

  Observed& observed_;
  std::string backend_ = "a backend";
  bool list_ = false, ended_ = false;
};

void add_sql(const TableRow& row, Observed& observed) {
  const auto value = [&](const char* column) { return look_up(row, column, ""); };
  ObservedOp op;
  op.op = shown_text(value("op_name"));
  op.backend = shown_text(value("backend_name"));
  describe(value("op_params"), op);
  observed.context.backend = op.backend;
  if (const std::string build = value("build_commit"); !build.empty()) {
    observed.context.engine_build = shown_text(build);
  }
  if (!value("error_message").empty() || value("passed") == "0") {
    observed.errors.push_back(shown_text(
        fmt::format("{}({}): {}", op.op, value("op_params"), value("error_message")), 400));
  }
  const auto runs = text::to_int(value("n_runs"));
  const auto each = printed_number(value("time_us"));
  if (runs && *runs > 0) op.calls = *runs;
  if (op.calls && each && *each > 0) op.seconds = *each / 1e6 * static_cast<double>(*op.calls);
  // In FLOP a second.
  const auto flops = printed_number(value("flops"));
  if (flops && *flops > 0 && each && *each > 0) op.flops = *flops * *each / 1e6;
  observed::fill_from_shape(op);
  const auto kib = printed_number(value("memory_kb"));
  if (!op.bytes && kib && *kib > 0) op.bytes = *kib * 1024;
  keep_op(std::move(op), observed);
}

constexpr std::string_view k_csv = "\"backend_name\",\"op_name\",\"op_params\",\"test_mode\"";

void add_csv(std::string_view line, Observed& observed) {
  const auto fields = csv_fields(line);
  if (fields.size() < 6 || fields[0] == "backend_name") return;
  ObservedOp op;
  op.op = shown_text(fields[1]);
  op.backend = shown_text(fields[0]);
  describe(fields[2], op);
  if (fields[4] == "1") {
    keep_op(std::move(op), observed);
  } else {
    add_warning(observed, "not supported: {}({})", op.op, shown_text(fields[2]));
  }
}

}  // namespace

void read(const Printed& printed, Observed& observed) {
  Console console(observed);
  const bool csv = printed.begins(k_csv);
  const bool sql = printed.holds("CREATE TABLE IF NOT EXISTS test_backend_ops") ||
                   printed.holds("INSERT INTO test_backend_ops");
  for (const std::string_view line : printed.lines()) {
    if (csv && line.starts_with('"')) {
      add_csv(line, observed);
    } else if (sql && line.starts_with("INSERT INTO")) {
      const auto row = sql_row(line, "test_backend_ops");
      if (row) add_sql(*row, observed);
      if (!row) mark_truncated(observed);
    } else if (!csv && !sql) {
      console.take(line);
    }
  }
  if (csv) add_warning(observed, "test-backend-ops writes no times as csv: take --output sql");
  if ((csv || sql) && printed.open()) mark_truncated(observed);
  if (!csv && !sql && printed.begins("Testing ") && !console.ended()) mark_truncated(observed);
  // The name of a backend alone says nothing.
  if (observed.ops.empty() && observed.errors.empty() &&
      observed.warnings.size() <= (observed.truncated ? 1U : 0U)) {
    observed = {};
  }
}

}  // namespace weir::adapters::backend_ops

const weir::adapters::Format weir::adapters::k_backend_ops(
    "test-backend-ops", "test-backend-ops, console, sql or csv", "llama.cpp", backend_ops::read,
    {{95,
      {"^\"backend_name\",\"op_name\",\"op_params\",\"test_mode\"",
       "INSERT INTO test_backend_ops"}},
     {85, {"^Testing  & ^Backend 1/"}},
     {60, {" us/run - ", "make_test_cases_from_file", "Unable to read test file"}}});

// test-export-graph-ops: which ops a model's graphs have, one a line. It tells shapes and types;
// how often each occurs and how long it takes is not in it.
//
// OP OUT_TYPE NE×4 N_PARAMS P×n N_SRC (TYPE NE×4 NB×4)×n NAME. The numbers of ops shift from build
// to build: where no line has other sources than its number asks for in v0.5.0 they are taken for
// those, else an op is "op 29".
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

// llama.cpp v0.5.0's numbers of ops, recorded; how many sources each has.
struct OpNumber {
  std::string_view number, name;
  std::size_t least, most;
};
constexpr std::array k_numbers{
    OpNumber{"op 2", "ADD", 2, 2},       OpNumber{"op 7", "MUL", 2, 2},
    OpNumber{"op 25", "RMS_NORM", 1, 1}, OpNumber{"op 29", "MUL_MAT", 2, 2},
    OpNumber{"op 32", "SCALE", 1, 1},    OpNumber{"op 40", "GET_ROWS", 2, 2},
    OpNumber{"op 42", "SET_ROWS", 2, 3}, OpNumber{"op 48", "ROPE", 2, 3},
    OpNumber{"op 100", "GLU", 1, 2},     OpNumber{"op 74", "FLASH_ATTN_EXT", 3, 5},
};

bool fits(const ObservedOp& op, const OpNumber& known) {
  const auto sources = text::split(op.shape.substr(0, op.shape.find("->")), ',');
  if (sources.size() < known.least || sources.size() > known.most) return false;
  const auto summed = [&](std::size_t i) { return sources[i].substr(0, sources[i].find('x')); };
  return known.name != "MUL_MAT" || summed(0) == summed(1);
}

void name_ops(Observed& observed) {
  const auto number_of = [](const ObservedOp& op) {
    return first_of(k_numbers, [&](const OpNumber& one) { return one.number == op.op; });
  };
  bool product = false;  // whose shapes tell that it is one
  for (const ObservedOp& op : observed.ops) {
    const OpNumber* known = number_of(op);
    if (known == nullptr) continue;
    if (!fits(op, *known)) return;
    product = product || known->name == "MUL_MAT";
  }
  if (!product) return;
  for (ObservedOp& op : observed.ops) {
    const OpNumber* known = number_of(op);
    if (known == nullptr) continue;
    op.op = known->name;
    op.flops.reset();
    op.bytes.reset();
    observed::fill_from_shape(op);
  }
  observed.context.facts["op numbers"] = "of llama.cpp v0.5.0";
}

std::optional<ObservedOp> op_of(std::string_view line) {
  if (line.empty() || !text::is_digit(line[0])) return std::nullopt;
  Numbers numbers{Scan(line)};
  ObservedOp op;
  op.op = fmt::format("op {}", numbers.next());
  const std::string out_type = type_text(numbers.next());
  const std::string result = numbers.shape();
  const std::int64_t params = numbers.next();
  if (!numbers.ok || params < 0 || params > k_most_params) return std::nullopt;
  for (std::int64_t i = 0; i < params; ++i) numbers.next();
  const std::int64_t sources = numbers.next();
  if (!numbers.ok || sources < 0 || sources > k_most_sources) return std::nullopt;
  std::string types, shapes;
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

void read(const Printed& printed, Observed& observed) {
  for (const std::string_view line : printed.out()) {
    auto op = op_of(line);
    if (op && !printed.cut(line)) {
      keep_op(std::move(*op), observed);
    } else if (!line.empty()) {
      add_warning(observed, "a line is not an op and was left out");
    }
  }
  if (printed.open()) mark_truncated(observed);
  name_ops(observed);
}

}  // namespace weir::adapters::graph_ops

const weir::adapters::Format weir::adapters::k_graph_ops(
    "graph-ops", "test-export-graph-ops: the ops of a model", "llama.cpp", graph_ops::read, {}, {},
    graph_ops::recognises);
