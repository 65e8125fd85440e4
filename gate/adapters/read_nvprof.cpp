// nvprof's table of a profile: times with their units, "729.72us". In CSV (--csv) the units are in
// a row below the titles.
#include "gate/adapters/work_table.hpp"

namespace weir::adapters::nvprof {
namespace {

// Reads "89.16%  24.7485s  33915  729.72us  411.84us  2.2789ms  name". Nothing for other lines.
std::optional<WorkRow> parse_row(LineScanner scan) {
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

// The columns of a table in CSV, by their titles.
class CsvTable {
 public:
  explicit CsvTable(std::vector<std::string> titles) : titles_(std::move(titles)) {}

  // Returns the row of a line; nothing for the units, which are kept.
  std::optional<WorkRow> parse_row(std::string_view line) {
    const std::vector<std::string> cells = csv_fields(text::trim(line));
    if (units_.empty()) {
      units_ = cells;
      return std::nullopt;
    }
    WorkRow row;
    row.name = cell(cells, "Name");
    row.category = cell(cells, "Type");
    row.calls = text::to_int(cell(cells, "Calls"));
    row.seconds = time(cells, "Time");
    row.min_seconds = time(cells, "Min");
    row.max_seconds = time(cells, "Max");
    if (!row.calls || cells.size() != titles_.size()) row.seconds.reset();
    return row;
  }

 private:
  [[nodiscard]] std::string cell(const std::vector<std::string>& cells, const char* title) const {
    const auto at = static_cast<std::size_t>(std::ranges::find(titles_, title) - titles_.begin());
    return at < cells.size() ? cells[at] : "";
  }
  [[nodiscard]] std::optional<double> time(const std::vector<std::string>& cells,
                                           const char* title) const {
    return time_cell(cell(cells, title) + cell(units_, title));
  }

  std::vector<std::string> titles_, units_;
};

// Adds a row of a table. Rows of a newer version say which table they are of.
void add_row(const WorkRow& row, bool of_calls, WorkRows& rows) {
  Work work = row.name.starts_with("[CUDA mem") ? Work::copy : Work::kernel;
  const bool is_call = row.category.empty() ? of_calls : row.category == "API calls";
  if (is_call) work = Work::call;
  rows.add(work, row);
}

}  // namespace

// Reads the tables of GPU activities and of API calls, printed or as CSV:
//
//   ==4711== Profiling result:
//               Type  Time(%)      Time     Calls       Avg       Min       Max  Name
//    GPU activities:   89.16%  24.7485s     33915  729.72us  411.84us  2.2789ms  mul_mat_q
//         API calls:   52.05%  12.1022s      1024  11.818ms  5.1120us  40.118ms  cudaMemcpy
void read(const Printed& printed, Observed& observed) {
  WorkRows rows(observed);
  std::optional<CsvTable> csv;  // the table, if it is CSV
  bool in_table = false, has_calls = false;
  for (const std::string_view line : printed.lines()) {
    LineScanner scan(line);
    if (line.find("Time(%)") != line.npos && line.find("Calls") != line.npos) {
      in_table = true;
      rows.begin_table();
      csv.reset();
      if (line.find(',') != line.npos) csv.emplace(csv_fields(text::trim(line)));
      continue;
    }
    if (scan.done() || scan.skip_prefix("==")) {  // "==4711== API calls:"
      in_table = false;
      if (line.ends_with("Profiling result:")) has_calls = false;
      if (line.ends_with("API calls:")) has_calls = true;
    }
    if (!in_table) continue;
    if (scan.skip_prefix("GPU activities:")) has_calls = false;
    if (scan.skip_prefix("API calls:")) has_calls = true;
    const auto row = csv ? csv->parse_row(line) : parse_row(scan);
    if (!row) continue;
    if (printed.may_be_cut(line)) {
      mark_truncated(observed);
      continue;
    }
    add_row(*row, has_calls, rows);
  }
  rows.finish();
}

}  // namespace weir::adapters::nvprof

const weir::adapters::Format weir::adapters::k_nvprof(
    "nvprof", "nvprof's table of kernels, copies and calls of CUDA", "", nvprof::read,
    {{86,
      {"Time(%) & Calls & Avg & Max  Name",
       "== Profiling result:", "Time(%)\",\"Time\",\"Calls\""}}});
