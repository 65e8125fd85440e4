// Reads weir's own formats: weir.observed/1 and weir.timeline/1.
#include "gate/adapters/readers.hpp"

namespace weir::adapters::weir_observed {

Result<Observed> read(const Printed& printed) {
  WEIR_TRY(const Json json, parse_json(printed.document().out));
  return read_fields<observed::Observed>(json, "observed");
}

}  // namespace weir::adapters::weir_observed

const weir::adapters::Format weir::adapters::k_weir_observed("weir",
                                                             "weir.observed/1, as weir writes it",
                                                             "", weir_observed::read,
                                                             {{90, {"\"weir.observed/1\""}}},
                                                             {"weir-observed", 8, Counts::always});

// weir.timeline/1, written by weir profile --json: a program's work as rows, with ops, layers and
// tokens. Older files have kernels and copies only.
namespace weir::adapters::weir_timeline {
namespace {

constexpr const char* k_schema = "weir.timeline/1";

// Reads a kernel or copy of an older file. Its times are used only if all its calls were timed.
std::optional<ObservedOp> read_row(const Json& row) {
  if (!row.is_object()) return std::nullopt;
  ObservedOp op;
  op.kernel = json_text(row, "name").value_or("");
  op.calls = json_integer(row, "calls");
  if (op.kernel.empty() || !op.calls) return std::nullopt;
  if (json_flag(row, "copy")) op.category = "copy";
  if (json_integer(row, "timed") == op.calls && *op.calls > 0) {
    op.seconds = json_number(row, "seconds");
    op.min_seconds = json_number(row, "least");
    op.max_seconds = json_number(row, "most");
  }
  return op;
}

// Reads a row of the CPU's calls.
std::optional<ObservedOp> read_call(const Json& row) {
  if (!row.is_object()) return std::nullopt;
  ObservedOp op;
  op.op = json_text(row, "name").value_or("");
  op.category = json_text(row, "category").value_or("");
  op.calls = json_integer(row, "calls");
  op.seconds = json_number(row, "seconds");
  op.seconds_without_nested = json_number(row, "own_seconds");
  op.min_seconds = json_number(row, "least");
  op.max_seconds = json_number(row, "most");
  if (op.op.empty() || op.calls.value_or(0) <= 0) return std::nullopt;
  if (const auto bytes = json_number(row, "bytes"))
    op.bytes = *bytes / static_cast<double>(*op.calls);
  return op;
}

}  // namespace

// Reads the JSON of `weir profile`: its work, or its kernels if it has none, then calls of the CPU
// and warnings.
Result<Observed> read(const Printed& printed) {
  WEIR_TRY(const Json json, parse_json(printed.document().out));
  const std::string schema = json.is_object() ? json_text(json, "schema").value_or("") : "";
  if (schema != k_schema) {
    return fail(Code::data, "its schema is {}, this weir reads {}",
                schema.empty() ? "missing" : schema, k_schema);
  }
  Observed observed;
  if (json.contains("work")) {
    WEIR_TRY_SET(observed, read_fields<Observed>(json["work"], "work"));
  } else {
    for (const Json& kernel : list_or_empty(json, "kernels")) {
      if (auto row = read_row(kernel)) append_valid_op(*std::move(row), observed);
    }
  }
  for (const Json& call : list_or_empty(json, "cpu_calls")) {
    if (auto row = read_call(call))
      append_row_within_limit(observed.cpu_calls, *std::move(row), observed);
  }
  std::ranges::stable_sort(observed.cpu_calls, std::greater{}, &ObservedOp::seconds);
  for (const Json& warning : list_or_empty(json, "warnings")) {
    if (warning.is_string()) add_warning(observed, display_text(warning.get<std::string>(), 600));
  }
  if (observed.ops.empty()) return nothing_found("weir profile --json: no device did anything");
  return observed;
}

}  // namespace weir::adapters::weir_timeline

const weir::adapters::Format weir::adapters::k_weir_timeline("weir-timeline",
                                                             "weir profile --json of a program", "",
                                                             weir_timeline::read,
                                                             {{90, {"\"weir.timeline/"}}});
