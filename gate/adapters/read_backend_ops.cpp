// llama.cpp's programs for single ops: test-backend-ops (the console's lines, perf and test, and
// its sql; its csv holds no times) and test-export-graph-ops.

#include "gate/adapters/readers.hpp"

namespace weir::adapters::backend_ops {
namespace {

// "[64,1,1,1]" -> "64"
std::string parse_shape(std::string_view list) {
  std::vector<std::int64_t> sizes;
  for (const std::string& part : text::split(list, ',')) {
    const auto size = text::to_int(text::trim(part));
    if (!size || sizes.size() == 8) return "";
    sizes.push_back(*size);
  }
  return shape_text(sizes);
}

// Sets the op's shape, types and node from its parameters. Cases from a file name all their
// tensors: "name=Kcur-0,type=f32,ne=[64,1,1,1],op_params=[],sources=q8_0[256,64,1,1],
// f32[256,1,1,1]". Built-in cases have a form for each op and keep their text.
void read_params(std::string_view params, ObservedOp& op) {
  op.shape = display_text(params, 400);
  LineScanner result(params), sources(params), type(params);
  if (!result.read_until("ne=[") || !sources.read_until("sources=") || !type.read_until("type="))
    return;
  std::string types, shapes;
  while (!sources.done()) {
    sources.skip_prefix(",");
    const auto source_type = sources.read_until("["), sizes = sources.read_until("]");
    const std::string shape = source_type && sizes ? parse_shape(*sizes) : "";
    if (shape.empty()) return;
    text::append_item(types, ",", display_text(*source_type, 20));
    text::append_item(shapes, ",", shape);
  }
  const std::string out = parse_shape(result.read_until("]").value_or(""));
  const auto out_type = type.read_until(",");
  if (out.empty() || types.empty() || !out_type) return;
  op.type = fmt::format("{}->{}", types, display_text(*out_type, 20));
  op.shape = fmt::format("{}->{}", shapes, out);
  if (params.starts_with("name=")) op.node = display_text(params.substr(5, params.find(',') - 5));
  op.layer = observed::layer_of_node(op.node);
}

// A line "OP(PARAMS): RESULT". `before` is a note in front of the op.
struct Case {
  std::string_view op, params, result, before;
};
// PARAMS hold brackets, so the last "):" ends them.
std::optional<Case> parse_case(std::string_view line) {
  LineScanner scan(line);
  const auto head = scan.read_until_last("):");
  if (!head) return std::nullopt;
  // Notes such as "[NONE] NaN at index 617 (CPU=nan CPU=nan)   OP(…)" stand in front of the op.
  LineScanner rest(*head);
  const std::string_view before = rest.read_until_last("  ").value_or("");
  const auto op = rest.read_until("(");
  if (!op || !is_op_name(*op)) return std::nullopt;
  return Case{*op, rest.rest(), scan.rest(), before};
}

// Returns the factor of a unit's prefix: 1e6 for "MFLOP/run".
double unit_scale(std::string_view unit) {
  constexpr std::string_view k_letters = "kMGT";
  const std::size_t letter = unit.empty() ? k_letters.npos : k_letters.find(unit[0]);
  return letter == k_letters.npos ? 1 : std::pow(1e3, static_cast<double>(letter + 1));
}

// Reads the times of a case: "10084352 runs -     0.10 us/run -        3 kB/run -   28.85 GB/s",
// or for ops with a formula "… - 4.19 MFLOP/run - 120.32 GFLOPS".
bool read_times(std::string_view result, ObservedOp& op) {
  LineScanner scan(result);
  std::int64_t runs = 0;
  double each = 0, amount = 0;
  std::string_view unit;
  if (!scan.read_values("{} runs - {} us/run -", runs, each) || each < 0) return false;
  op.calls = runs;
  op.seconds = each / 1e6 * static_cast<double>(runs);
  if (!scan.read_values("{} {}", amount, unit)) return true;
  if (unit == "kB/run") {
    observed::fill_from_shape(op);  // exact, where "18 kB" is rounded
    if (!op.bytes) op.bytes = amount * 1024;
  } else if (unit.ends_with("FLOP/run")) {
    op.flops = amount * unit_scale(unit);
  }
  return true;
}

// Reads the console's output.
class ConsoleReader {
 public:
  explicit ConsoleReader(Observed& observed) : observed_(observed) {}
  [[nodiscard]] bool ended() const { return ended_; }

  void read_line(std::string_view line) {
    LineScanner scan(line);
    if (scan.skip_prefix("Backend ")) return read_backend(line);
    if (scan.skip_prefix("Device description:")) {
      observed_.context.device = display_text(scan.rest());
    } else if (scan.skip_prefix("Skipping")) {
      add_warning(observed_, "{} was skipped: nothing was measured on it", backend_);
    } else if (line.starts_with("failed to allocate") || scan.skip_prefix("what():")) {
      observed_.errors.push_back(display_text(line));
    } else if (line.find(" backends passed") != std::string_view::npos) {
      ended_ = true;
    } else if (line.starts_with("Failing tests:")) {
      in_summary_ = true;  // repeats the failed cases
    } else if (!in_summary_) {
      read_case(line);
    }
  }

 private:
  // "Backend 1/1: CPU", "  Backend CPU: OK"
  void read_backend(std::string_view line) {
    in_summary_ = false;
    LineScanner scan(line);
    std::int64_t number = 0, of = 0;
    if (!scan.read_values("Backend {} / {} :", number, of)) return;
    backend_ = display_text(scan.rest(), 60);
    observed_.context.backend = backend_;
  }

  void read_case(std::string_view line) {
    const auto parsed = parse_case(line);
    if (!parsed) return;
    ObservedOp op;
    op.op = display_text(parsed->op);
    op.backend = backend_;
    read_params(parsed->params, op);
    if (parsed->result.starts_with("FAIL")) {
      observed_.errors.push_back(
          display_text(fmt::format("{}({}): {}", parsed->op, parsed->params,
                                   parsed->before.empty() ? "FAIL" : parsed->before),
                       400));
    } else if (parsed->result.starts_with("not supported")) {
      add_warning(observed_, "not supported: {}({})", parsed->op, display_text(parsed->params));
    } else if (read_times(parsed->result, op) || parsed->result.starts_with("OK")) {
      add_read_parts(observed_, "cases");
      append_valid_op(std::move(op), observed_);
    } else {
      add_unread_part(observed_, "cases",
                      fmt::format("\"{}\" is no result", display_text(parsed->result, 60)));
    }
  }

  Observed& observed_;
  std::string backend_ = "a backend";
  bool in_summary_ = false, ended_ = false;
};

// Adds a row of the sql output.
void add_sql(const TableRow& row, Observed& observed) {
  const auto value = [&](const char* column) { return look_up(row, column, ""); };
  ObservedOp op;
  op.op = display_text(value("op_name"));
  op.backend = display_text(value("backend_name"));
  read_params(value("op_params"), op);
  observed.context.backend = op.backend;
  if (const std::string build = value("build_commit"); !build.empty()) {
    observed.context.engine_build = display_text(build);
  }
  if (!value("error_message").empty() || value("passed") == "0") {
    observed.errors.push_back(display_text(
        fmt::format("{}({}): {}", op.op, value("op_params"), value("error_message")), 400));
  }
  const auto runs = text::to_int(value("n_runs"));
  const auto time_us = printed_number(value("time_us"));
  if (runs && *runs > 0) op.calls = *runs;
  if (time_us && *time_us > 0) {
    const double seconds_per_call = *time_us / 1e6;
    if (op.calls) op.seconds = seconds_per_call * static_cast<double>(*op.calls);
    const auto flop_per_second = printed_number(value("flops"));
    if (flop_per_second && *flop_per_second > 0) op.flops = *flop_per_second * seconds_per_call;
  }
  observed::fill_from_shape(op);
  const auto kib = printed_number(value("memory_kb"));
  if (!op.bytes && kib && *kib > 0) op.bytes = *kib * 1024;
  append_valid_op(std::move(op), observed);
}

constexpr std::string_view k_csv = "\"backend_name\",\"op_name\",\"op_params\",\"test_mode\"";

// Adds a line of the csv output, which has no times.
void add_csv(std::string_view line, Observed& observed) {
  const auto fields = csv_fields(line);
  if (fields.size() < 6) return add_unread_part(observed, "rows", "a row has too few fields");
  if (fields[0] == "backend_name") return;
  ObservedOp op;
  op.op = display_text(fields[1]);
  op.backend = display_text(fields[0]);
  read_params(fields[2], op);
  if (fields[4] == "1") {
    append_valid_op(std::move(op), observed);
  } else {
    add_warning(observed, "not supported: {}({})", op.op, display_text(fields[2]));
  }
}

}  // namespace

// Reads the console's lines of test-backend-ops, its CSV or its SQL:
//
//   MUL_MAT(type_a=q4_0,m=4096,n=1,k=14336):  852 runs -  1184.27 us/run - 99.2 GFLOPS
//   INSERT INTO test_backend_ops (test_time, op_name, …) VALUES ('…', 'MUL_MAT', …);
void read(const Printed& printed, Observed& observed) {
  ConsoleReader console(observed);
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
      console.read_line(line);
    }
  }
  if (csv) add_warning(observed, "test-backend-ops writes no times as csv: take --output sql");
  if ((csv || sql) && printed.lacks_final_newline()) mark_truncated(observed);
  if (!csv && !sql && printed.begins("Testing ") && !console.ended()) mark_truncated(observed);
  // The name of a backend alone is no result.
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

// test-export-graph-ops: the ops of a model's graphs, one per line, with shapes and types but
// neither counts nor times.
//
// OP OUT_TYPE NE×4 N_PARAMS P×n N_SRC (TYPE NE×4 NB×4)×n NAME. The numbers of ops change from build
// to build. They are named as in v0.5.0 if the sources of all lines fit that; else an op is
// "op 29".
namespace weir::adapters::graph_ops {
namespace {

constexpr std::int64_t k_max_params = 64;
constexpr std::int64_t k_max_sources = 16;

// Reads numbers in order; `ok` becomes false at the first word that is none.
struct NumberScan {
  LineScanner scan;
  bool ok = true;
  std::int64_t next() {
    const bool negative = scan.skip_prefix("-");
    const auto value = scan.integer();
    if (!value) ok = false;
    return negative ? -value.value_or(0) : value.value_or(0);
  }
  std::string shape() {
    std::vector<std::int64_t> sizes;
    for (int i = 0; i < 4; ++i) sizes.push_back(next());
    return shape_text(sizes);
  }
};

// An op's number in llama.cpp v0.5.0, and the number of sources that it may have.
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

// Returns true if the op's sources fit the op of that number.
bool fits(const ObservedOp& op, const OpNumber& entry) {
  const auto sources = text::split(op.shape.substr(0, op.shape.find("->")), ',');
  if (sources.size() < entry.least || sources.size() > entry.most) return false;
  const auto summed = [&](std::size_t i) { return sources[i].substr(0, sources[i].find('x')); };
  return entry.name != "MUL_MAT" || summed(0) == summed(1);
}

// Replaces the numbers of ops by the names of v0.5.0, if all shapes fit them and there is a matrix
// multiplication, whose shapes are unmistakable.
void name_ops(Observed& observed) {
  const auto find_number = [](const ObservedOp& op) {
    return find_first(k_numbers, [&](const OpNumber& entry) { return entry.number == op.op; });
  };
  bool has_matmul = false;
  for (const ObservedOp& op : observed.ops) {
    const OpNumber* entry = find_number(op);
    if (entry == nullptr) continue;
    if (!fits(op, *entry)) return;
    has_matmul = has_matmul || entry->name == "MUL_MAT";
  }
  if (!has_matmul) return;
  for (ObservedOp& op : observed.ops) {
    const OpNumber* entry = find_number(op);
    if (entry == nullptr) continue;
    op.op = entry->name;
    op.flops.reset();
    op.bytes.reset();
    observed::fill_from_shape(op);
  }
  observed.context.facts["op numbers"] = "of llama.cpp v0.5.0";
}

// Parses one line, as described above.
std::optional<ObservedOp> parse_op(std::string_view line) {
  if (line.empty() || !text::is_digit(line[0])) return std::nullopt;
  NumberScan numbers{LineScanner(line)};
  ObservedOp op;
  op.op = fmt::format("op {}", numbers.next());
  const std::string out_type = type_text(numbers.next());
  const std::string result = numbers.shape();
  const std::int64_t params = numbers.next();
  if (!numbers.ok || params < 0 || params > k_max_params) return std::nullopt;
  for (std::int64_t i = 0; i < params; ++i) numbers.next();
  const std::int64_t sources = numbers.next();
  if (!numbers.ok || sources < 0 || sources > k_max_sources) return std::nullopt;
  std::string types, shapes;
  for (std::int64_t i = 0; i < sources && numbers.ok; ++i) {
    text::append_item(types, ",", type_text(numbers.next()));
    text::append_item(shapes, ",", numbers.shape());
    for (int stride = 0; stride < 4; ++stride) numbers.next();
  }
  if (!numbers.ok || result.empty() || numbers.scan.done()) return std::nullopt;
  op.type = fmt::format("{}->{}", types, out_type);
  op.shape = fmt::format("{}->{}", shapes, result);
  op.node = display_text(numbers.scan.rest(), 100);
  op.layer = observed::layer_of_node(op.node);
  return op;
}

}  // namespace

int recognises(const Printed& printed) {
  std::size_t ops = 0;
  for (const std::string_view line : printed.out()) {
    if (parse_op(line)) ++ops;
    if (ops > 0 && (ops > 2 || printed.out().size() < 4)) return 50;
  }
  return 0;
}

// Reads one op a line: its number, the type and shape of its result, its parameters, its sources
// and the name of its node.
//
//   2 0 256 1 1 1 16 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 2 0 256 1 1 1 4 1024 1024 1024 … sa_out-0
void read(const Printed& printed, Observed& observed) {
  for (const std::string_view line : printed.out()) {
    auto op = parse_op(line);
    if (op && !printed.may_be_cut(line)) {
      append_valid_op(std::move(*op), observed);
    } else if (!line.empty()) {
      add_warning(observed, "a line is not an op and was left out");
    }
  }
  if (printed.lacks_final_newline()) mark_truncated(observed);
  name_ops(observed);
}

}  // namespace weir::adapters::graph_ops

const weir::adapters::Format weir::adapters::k_graph_ops(
    "graph-ops", "test-export-graph-ops: the ops of a model", "llama.cpp", graph_ops::read, {}, {},
    graph_ops::recognises);
