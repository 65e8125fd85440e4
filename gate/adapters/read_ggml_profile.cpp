// llama.cpp's profiler of all backends (a branch that was not merged): its JSON, versions 2 to 4,
// and its texts.
//
// Records have no number of graph or token, and the start of a device's op is a time of the CPU, so
// there are neither steps nor gaps. Equal records are one row. `bytes` of an op are those of its
// result only; the bytes that it reads and writes follow from its shapes, if the version has types.

#include "gate/adapters/readers.hpp"

namespace weir::adapters::ggml_profile {
namespace {

std::vector<std::int64_t> read_sizes(const Json& json) {
  std::vector<std::int64_t> sizes;
  if (!json.is_array() || json.size() > 8) return sizes;
  for (const Json& size : json) {
    if (!size.is_number_integer()) return {};
    sizes.push_back(size.get<std::int64_t>());
  }
  return sizes;
}

// Sets shape and types of an op of versions 3 and 4: `ne` is the result's shape, ne_src are the
// sources'.
void set_shape_and_types(const Json& record, ObservedOp& op) {
  std::vector<std::string> shapes;
  for (const Json& source : record["ne_src"]) {
    const std::string shape = shape_text(read_sizes(source));
    if (shape.empty()) return;
    shapes.push_back(shape);
  }
  const auto types = collect<std::string>(read_sizes(list_or_empty(record, "type_src")), type_text);
  const std::string result = shape_text(read_sizes(list_or_empty(record, "ne")));
  if (shapes.empty() || result.empty()) return;
  op.shape = text::join(shapes, ",") + "->" + result;
  const std::string out = type_text(json_integer(record, "out_type").value_or(-1));
  if (types.size() == shapes.size() && !out.empty()) op.type = text::join(types, ",") + "->" + out;
}

// Sets the shape of an op of version 2, which has sources only, with zeros for absent ones. Before
// version 2, `ne` is the first source.
void set_source_shapes(const Json& record, ObservedOp& op) {
  std::vector<std::string> shapes;
  for (const char* key : {"ne_src0", "ne_src1", "ne_src2", "ne"}) {
    if (key == std::string_view("ne") && !shapes.empty()) break;
    std::string shape = shape_text(read_sizes(list_or_empty(record, key)));
    if (!shape.empty()) shapes.push_back(std::move(shape));
  }
  op.shape = text::join(shapes, ",");
}

// Adds up records into rows of `observed`.
class RowReader {
 public:
  explicit RowReader(Observed& observed) : observed_(observed) {}

  void add(const Json& record) {
    const auto name = json_text(record, "name");
    const auto nanoseconds = json_number(record, "duration_ns");
    if (!name || !nanoseconds || *nanoseconds < 0) {
      ++unread_;
      return;
    }
    ObservedOp op;
    op.op = *name;
    const bool is_copy = json_integer(record, "type") == 1;
    if (is_copy) op.category = "copy";
    // `extra` is the fusion of an op, or the tensor of a copy.
    const auto extra = json_text(record, "extra");
    if (extra && is_copy) op.node = *extra;
    if (extra && !is_copy) op.kernel = *extra;
    if (const auto tensor = json_text(record, "tensor_name")) op.node = *tensor;
    op.layer = observed::layer_of_node(op.node);
    if (member_or_null(record, "ne_src").is_array()) {
      set_shape_and_types(record, op);
    } else {
      set_source_shapes(record, op);
    }
    if (is_copy) op.bytes = json_number(record, "bytes");
    // The list of backends may come after the records, so ops have backend numbers until then.
    op.backend = fmt::format("backend {}", json_integer(record, "backend_id").value_or(-1));
    merge(std::move(op), *nanoseconds / 1e9);
  }

  // Adds a span of a host function (a fork of version 4). Functions contain each other and the ops.
  void add_function(const Json& record) {
    const auto name = json_text(record, "name");
    const auto begin = json_number(record, "start_ns");
    const auto end = json_number(record, "end_ns");
    if (!name || !begin || !end || *end < *begin) {
      ++unread_;
      return;
    }
    ObservedOp op;
    op.op = *name;
    op.category = "function";
    op.includes_other_rows = true;
    merge(std::move(op), (*end - *begin) / 1e9);
  }

  // Replaces "backend 0" by the backend's name in the rows added since the last call.
  void name_backends(const std::map<std::string, std::string>& names) {
    for (auto op = observed_.ops.begin() + named_; op != observed_.ops.end(); ++op) {
      op->backend = look_up(names, op->backend, op->backend);
    }
    named_ = std::ssize(observed_.ops);
    rows_.clear();
  }
  [[nodiscard]] std::size_t unread() const { return unread_; }

 private:
  using Key = std::tuple<std::string, std::string, std::string, std::string, std::string,
                         std::string, double>;

  // Adds a call to the row of equal records.
  void merge(ObservedOp op, double seconds) {
    const Key key{op.backend, op.op, op.kernel, op.node, op.type, op.shape, op.bytes.value_or(-1)};
    const auto [at, fresh] = rows_.try_emplace(key, observed_.ops.size());
    if (fresh && !append_valid_op(std::move(op), observed_)) return void(rows_.erase(at));
    add_call(observed_.ops[at->second], seconds);
  }

  Observed& observed_;
  std::map<Key, std::size_t> rows_;
  std::ptrdiff_t named_ = 0;  // number of rows that have their backends' names
  std::size_t unread_ = 0;
};

// Returns the names of the backends by their numbers ("backend 0").
std::map<std::string, std::string> read_backends(const Json& json, Observed& observed) {
  std::map<std::string, std::string> backends;
  for (const Json& backend : list_or_empty(json, "backends")) {
    const auto id = json_integer(backend, "id");
    const auto name = json_text(backend, "name");
    if (!id || !name || backends.size() > 64) continue;
    const std::string number = fmt::format("backend {}", *id);
    backends[number] = *name;
    if (const auto device = json_text(backend, "device")) {
      observed.context.facts[number] = fmt::format("{} ({})", *name, *device);
    }
  }
  return backends;
}

// Warns about an unknown version, and about records that are missing.
void check_version(const Json& json, std::size_t records, Observed& observed) {
  const auto version = json_integer(json, "version");
  if (version) observed.version = fmt::format("{}", *version);
  if (!version || *version < 1 || *version > 4) {
    add_unknown_version(observed.version.value_or("(none)"), "1 to 4", observed);
  }
  const auto total = json_integer(json, "total_records");
  if (total && std::cmp_not_equal(*total, records)) {
    add_warning(observed, "it says it has {} records, and {} are there", *total, records);
  }
}

}  // namespace

// Reads {"version": 4, "backends": […], "records": [{"name": "MUL_MAT", "duration_ns": 5120, …},
// …]}. Functions of the host are in "fn_records".
void read(const Printed& printed, Observed& observed) {
  RowReader rows(observed);
  std::size_t records = 0;
  const auto take_element = [&](std::string_view list, const Json& element) {
    if (list == "records") {
      ++records;
      rows.add(element);
    } else if (list == "fn_records") {
      rows.add_function(element);
    }
  };
  const auto take_members = [&](const Json& json) {
    rows.name_backends(read_backends(json, observed));
    check_version(json, records, observed);
  };
  read_pieces(printed, {"records", "fn_records"}, {take_element, take_members}, observed);
  if (rows.unread() > 0) {
    add_warning(observed, "{} records have no name or no duration", rows.unread());
  }
}

}  // namespace weir::adapters::ggml_profile

const weir::adapters::Format weir::adapters::k_ggml_profile(
    "ggml-profiler", "llama.cpp's profiler of all backends, JSON", "llama.cpp", ggml_profile::read,
    {{95, {"\"profiler\": \"ggml\"", "\"profiler\":\"ggml\""}},
     {60, {"\"backend_id\" & \"duration_ns\""}}});

// The same profiler's summary (GGML_PROFILE=1) and its table (a file that ends in .txt).
//
// Totals there have a step of 10 us; the mean has one of 10 ns, so mean x count says more.
namespace weir::adapters::ggml_profile_text {
namespace {

// Returns shapes in weir's form: "[64, 9, 4] x [64, 256]" -> "64x9x4,64x256".
std::string parse_shapes(std::string_view text) {
  std::string shapes;
  for (LineScanner scan(text); scan.read_until("[");) {
    const auto sizes = scan.read_until("]");
    if (!sizes) break;
    shapes += shapes.empty() ? "" : ",";
    for (const char c : *sizes) {
      if (text::is_digit(c)) shapes += c;
      if (c == 'x' || c == ',') shapes += 'x';
    }
  }
  return display_text(shapes);
}

// Skips "0.03 GB/s" or "1.20 TB/s".
void skip_speed(LineScanner& scan) {
  LineScanner ahead = scan;
  if (ahead.number() && (ahead.skip_prefix("GB/s") || ahead.skip_prefix("TB/s"))) scan = ahead;
}

// Parses a row of the summary, "[OP  ] backend 0 MUL_MAT   17.4%  count=2  total= 0.45 ms  avg=
// 223.56 us  min= …  max= …  …", or of the table, "OP       0  MUL_MAT      17.4%       2
// 0.45      223.56      113.59  …". Rows "COPY" are copies between backends. The printed total has
// two decimals of a millisecond, so the time is the mean times the calls.
std::optional<ObservedOp> parse_row(std::string_view line) {
  LineScanner scan(line);
  std::string_view name;
  std::int64_t backend = 0, calls = 0;
  double share = 0, total = 0, mean = 0, least = 0, most = 0;
  bool is_copy = scan.skip_prefix("[COPY]");
  const bool is_summary = is_copy || scan.skip_prefix("[OP  ]");
  if (!is_summary) is_copy = scan.skip_prefix("COPY ");
  if (!is_summary && !is_copy && !scan.skip_prefix("OP ")) return std::nullopt;
  const std::string_view form =
      is_summary ? "backend {} {} {} %  count={}  total={} ms  avg={} us  min={} us  max={} us"
                 : "{} {} {} % {} {} {} {} {}";
  if (!scan.read_values(form, backend, name, share, calls, total, mean, least, most))
    return std::nullopt;
  ObservedOp op;
  op.op = display_text(name);
  op.category = is_copy ? "copy" : "";
  op.backend = fmt::format("backend {}", backend);
  op.calls = calls;
  op.seconds = mean / 1e6 * static_cast<double>(calls);
  op.min_seconds = least / 1e6;
  op.max_seconds = most / 1e6;
  skip_speed(scan);
  op.shape = parse_shapes(scan.rest());
  return op;
}

// "  Backend 0 (Vulkan0): 2.12 ms (82.5%)"
bool read_backend(std::string_view line, Observed& observed) {
  LineScanner scan(line);
  if (!scan.skip_prefix("Backend")) return false;
  std::int64_t number = 0;
  if (!scan.read_values("{} (", number)) return false;
  const auto name = scan.read_until("):");
  if (name) observed.context.facts[fmt::format("backend {}", number)] = display_text(*name);
  return name.has_value();
}

}  // namespace

// Reads the summary or the table, a row an op. A text without its "Total: … ms" is truncated.
void read(const Printed& printed, Observed& observed) {
  bool total = false;
  for (const std::string_view line : printed.lines()) {
    if (auto op = parse_row(line)) {
      append_valid_op(std::move(*op), observed);
    } else if (!read_backend(line, observed)) {
      LineScanner scan(line);
      if ((line.starts_with("[OP  ]") || line.starts_with("[COPY]")) && !printed.may_be_cut(line))
        add_unread_part(observed, "rows", "a row has another form");
      total = total || (scan.skip_prefix("Total:") && scan.number() && scan.skip_prefix("ms") &&
                        scan.read_until("unique ops)"));
    }
  }
  // A text has either the summary or the table.
  for (ObservedOp& op : observed.ops) {
    op.backend = look_up(observed.context.facts, op.backend, op.backend);
  }
  if (!total) mark_truncated(observed);
}

}  // namespace weir::adapters::ggml_profile_text

const weir::adapters::Format weir::adapters::k_ggml_profile_text(
    "ggml-profiler-text", "the same profiler's summary or table", "llama.cpp",
    ggml_profile_text::read, {{85, {"^=== Profiling Summary ==="}}, {70, {"^[OP  ] backend "}}});
