// nvprof's table of a profile: times with their units, "729.72us".
#include "gate/adapters/work_table.hpp"

namespace weir::adapters::nvprof {
namespace {

// Reads "89.16%  24.7485s  33915  729.72us  411.84us  2.2789ms  name". Nothing for other lines.
std::optional<WorkRow> parse_row(Scan scan) {
  WorkRow row;
  const auto share = scan.word();
  if (!share || !share->ends_with('%')) return std::nullopt;
  row.seconds = time_cell(scan.word().value_or(""));
  row.calls = scan.integer();
  const auto average = time_cell(scan.word().value_or(""));
  row.min_seconds = time_cell(scan.word().value_or(""));
  row.max_seconds = time_cell(scan.word().value_or(""));
  row.name = display_text(scan.rest(), 2000);
  if (!row.seconds || !row.calls || !average) row.seconds.reset();
  return row;
}

}  // namespace

void read(const Printed& printed, Observed& observed) {
  WorkRows rows(observed);
  bool in_table = false, of_calls = false;
  for (const std::string_view line : printed.lines()) {
    Scan scan(line);
    if (line.find("Time(%)") != line.npos && line.find("Calls") != line.npos) {
      in_table = true;
      rows.begin_table();
      continue;
    }
    if (scan.done() || scan.skip_prefix("==")) {  // "==4711== API calls:"
      in_table = false;
      if (line.ends_with("Profiling result:")) of_calls = false;
      if (line.ends_with("API calls:")) of_calls = true;
    }
    if (!in_table) continue;
    if (scan.skip_prefix("GPU activities:")) of_calls = false;
    if (scan.skip_prefix("API calls:")) of_calls = true;
    const auto row = parse_row(scan);
    if (!row) continue;
    if (printed.is_cut(line)) {
      mark_truncated(observed);
      continue;
    }
    const bool is_copy = row->name.starts_with("[CUDA mem");
    rows.add(of_calls ? Work::call : is_copy ? Work::copy : Work::kernel, *row);
  }
  rows.finish();
}

}  // namespace weir::adapters::nvprof

const weir::adapters::Format weir::adapters::k_nvprof(
    "nvprof", "nvprof's table of kernels, copies and calls of CUDA", "", nvprof::read,
    {{86, {"Time(%) & Calls & Avg & Max  Name", "== Profiling result:"}}});
