// llama.cpp's profiler of all backends (a branch that was not merged): its JSON, versions 2 to 4,
// and its texts.
//
// Records carry no number of graph or token, and the start of a device's op is a time of the CPU:
// neither steps nor gaps are made of them. Records alike are one row. `bytes` of an op are those of
// its result alone; what it reads and writes follows from its shapes, where the version has types.

#include "gate/adapters/readers.hpp"

namespace weir::adapters::ggml_profile {
namespace {

std::vector<std::int64_t> sizes_of(const Json& json) {
  std::vector<std::int64_t> sizes;
  if (!json.is_array() || json.size() > 8) return sizes;
  for (const Json& size : json) {
    if (!size.is_number_integer()) return {};
    sizes.push_back(size.get<std::int64_t>());
  }
  return sizes;
}

// Versions 3 and 4: `ne` is the result's and ne_src the sources'.
void shape_with_types(const Json& record, ObservedOp& op) {
  std::vector<std::string> shapes;
  for (const Json& source : record["ne_src"]) {
    const std::string shape = shape_text(sizes_of(source));
    if (shape.empty()) return;
    shapes.push_back(shape);
  }
  const auto types = collect<std::string>(sizes_of(list_in(record, "type_src")), type_text);
  const std::string result = shape_text(sizes_of(list_in(record, "ne")));
  if (shapes.empty() || result.empty()) return;
  op.shape = text::join(shapes, ",") + "->" + result;
  const std::string out = type_text(json_whole(record, "out_type").value_or(-1));
  if (types.size() == shapes.size() && !out.empty()) op.type = text::join(types, ",") + "->" + out;
}

// Version 2: sources alone, with zeros for those that are absent. Before it, `ne` is the first one.
void shape_of_sources(const Json& record, ObservedOp& op) {
  std::vector<std::string> shapes;
  for (const char* key : {"ne_src0", "ne_src1", "ne_src2", "ne"}) {
    if (key == std::string_view("ne") && !shapes.empty()) break;
    std::string shape = shape_text(sizes_of(list_in(record, key)));
    if (!shape.empty()) shapes.push_back(std::move(shape));
  }
  op.shape = text::join(shapes, ",");
}

class Rows {
 public:
  explicit Rows(Observed& observed) : observed_(observed) {}

  void add(const Json& record) {
    const auto name = json_text(record, "name");
    const auto nanoseconds = json_number(record, "duration_ns");
    if (!name || !nanoseconds || *nanoseconds < 0) {
      ++unread_;
      return;
    }
    ObservedOp op;
    op.op = *name;
    const bool copy = json_whole(record, "type") == 1;
    if (copy) op.category = "copy";
    const auto extra = json_text(record, "extra");
    // Of an op its fusion, of a copy the tensor.
    if (extra && copy) op.node = *extra;
    if (extra && !copy) op.kernel = *extra;
    if (const auto tensor = json_text(record, "tensor_name")) op.node = *tensor;
    op.layer = observed::layer_of_node(op.node);
    if (below(record, "ne_src").is_array()) {
      shape_with_types(record, op);
    } else {
      shape_of_sources(record, op);
    }
    if (copy) op.bytes = json_number(record, "bytes");
    // The backends' list may stand behind the records: their numbers until then.
    op.backend = fmt::format("backend {}", json_whole(record, "backend_id").value_or(-1));
    merge(std::move(op), *nanoseconds / 1e9);
  }

  // A span of the host's functions (a fork of version 4): they hold each other and the ops.
  void add_function(const Json& record) {
    const auto name = json_text(record, "name");
    const auto begin = json_number(record, "start_ns");
    const auto end = json_number(record, "end_ns");
    if (!name || !begin || !end || *end < *begin) return;
    ObservedOp op;
    op.op = *name;
    op.category = "function";
    op.covers_others = true;
    merge(std::move(op), (*end - *begin) / 1e9);
  }

  // Of the rows since the last call; "backend 0" -> its name.
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

  void merge(ObservedOp op, double seconds) {
    const Key key{op.backend, op.op, op.kernel, op.node, op.type, op.shape, op.bytes.value_or(-1)};
    const auto [at, fresh] = rows_.try_emplace(key, observed_.ops.size());
    if (fresh && !keep_op(std::move(op), observed_)) return void(rows_.erase(at));
    add_call(observed_.ops[at->second], seconds);
  }

  Observed& observed_;
  std::map<Key, std::size_t> rows_;
  std::ptrdiff_t named_ = 0;  // so many rows have the names of their backends
  std::size_t unread_ = 0;
};

std::map<std::string, std::string> backends_of(const Json& json, Observed& observed) {
  std::map<std::string, std::string> backends;
  for (const Json& backend : list_in(json, "backends")) {
    const auto id = json_whole(backend, "id");
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

void check_version(const Json& json, std::size_t records, Observed& observed) {
  const auto version = json_whole(json, "version");
  if (version) observed.version = fmt::format("{}", *version);
  if (!version || *version < 1 || *version > 4) {
    add_unknown_version(observed.version.value_or("(none)"), "1 to 4", observed);
  }
  const auto total = json_whole(json, "total_records");
  if (total && std::cmp_not_equal(*total, records)) {
    add_warning(observed, "it says it has {} records, and {} are there", *total, records);
  }
}

}  // namespace

void read(const Printed& printed, Observed& observed) {
  Rows rows(observed);
  std::size_t records = 0;
  const auto take_element = [&](std::string_view list, const Json& element) {
    if (list == "records") {
      ++records;
      if (element.is_object()) rows.add(element);
    } else if (list == "fn_records") {
      rows.add_function(element);
    }
  };
  const auto take_members = [&](const Json& json) {
    rows.name_backends(backends_of(json, observed));
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

// "[256 x 9]", "[64, 9, 4] x [64, 256]" -> "256x9", "64x9x4,64x256"
std::string shapes_of(std::string_view text) {
  std::string shapes;
  for (Scan scan(text); scan.until("[");) {
    const auto sizes = scan.until("]");
    if (!sizes) break;
    shapes += shapes.empty() ? "" : ",";
    for (const char c : *sizes) {
      if (text::is_digit(c)) shapes += c;
      if (c == 'x' || c == ',') shapes += 'x';
    }
  }
  return shown_text(shapes);
}

// Past "0.03 GB/s", "1.20 TB/s".
void skip_speed(Scan& scan) {
  Scan ahead = scan;
  if (ahead.number() && (ahead.take("GB/s") || ahead.take("TB/s"))) scan = ahead;
}

// "[OP  ] backend 0 MUL_MAT   17.4%  count=2  total= 0.45 ms  avg= 223.56 us  min= …  max= …  …",
// and of the table "OP       0  MUL_MAT      17.4%       2        0.45      223.56      113.59  …"
std::optional<ObservedOp> row_of(std::string_view line) {
  Scan scan(line);
  std::string_view name;
  std::int64_t backend = 0, calls = 0;
  double share = 0, total = 0, mean = 0, least = 0, most = 0;
  bool copy = scan.take("[COPY]");
  const bool summary = copy || scan.take("[OP  ]");
  if (!summary) copy = scan.take("COPY ");
  if (!summary && !copy && !scan.take("OP ")) return std::nullopt;
  const std::string_view form =
      summary ? "backend {} {} {} %  count={}  total={} ms  avg={} us  min={} us  max={} us"
              : "{} {} {} % {} {} {} {} {}";
  if (!scan.fits(form, backend, name, share, calls, total, mean, least, most)) return std::nullopt;
  ObservedOp op;
  op.op = shown_text(name);
  op.category = copy ? "copy" : "";
  op.backend = fmt::format("backend {}", backend);
  op.calls = calls;
  op.seconds = mean / 1e6 * static_cast<double>(calls);
  op.least = least / 1e6;
  op.most = most / 1e6;
  skip_speed(scan);
  op.shape = shapes_of(scan.rest());
  return op;
}

// "  Backend 0 (Vulkan0): 2.12 ms (82.5%)"
bool read_backend(std::string_view line, Observed& observed) {
  Scan scan(line);
  if (!scan.take("Backend")) return false;
  std::int64_t number = 0;
  if (!scan.fits("{} (", number)) return false;
  const auto name = scan.until("):");
  if (name) observed.context.facts[fmt::format("backend {}", number)] = shown_text(*name);
  return name.has_value();
}

}  // namespace

void read(const Printed& printed, Observed& observed) {
  bool total = false;
  for (const std::string_view line : printed.lines()) {
    if (auto op = row_of(line)) {
      keep_op(std::move(*op), observed);
    } else if (!read_backend(line, observed)) {
      Scan scan(line);
      total = total || (scan.take("Total:") && scan.number() && scan.take("ms") &&
                        scan.until("unique ops)"));
    }
  }
  // Its table has a column that the summary has not: they do not both stand in one text.
  for (ObservedOp& op : observed.ops) {
    op.backend = look_up(observed.context.facts, op.backend, op.backend);
  }
  if (!total) mark_truncated(observed);
}

}  // namespace weir::adapters::ggml_profile_text

const weir::adapters::Format weir::adapters::k_ggml_profile_text(
    "ggml-profiler-text", "the same profiler's summary or table", "llama.cpp",
    ggml_profile_text::read, {{85, {"^=== Profiling Summary ==="}}, {70, {"^[OP  ] backend "}}});
