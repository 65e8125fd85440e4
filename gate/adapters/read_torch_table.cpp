// The table of torch.profiler: key_averages().table().
//
// A row's own time ("Self") is without the rows that it calls. On a device the time of a kernel is
// in its own row and in that of the op which launched it. So with rows of kernels, ops have none.
#include "gate/adapters/work_table.hpp"

namespace weir::adapters::torch_table {
namespace {

struct Columns {
  std::vector<std::string> titles;
  std::optional<std::size_t> cpu_own, cpu_total, device_own, device_total, calls;
  std::string device;  // "CUDA"; "" if the table has no device's times
  bool has_overload = false;
};

// Returns the line without what vLLM's logger puts in front, "INFO 11-05 13:22:49 [worker.py:210]
// ".
std::string_view without_log_prefix(std::string_view line) {
  const std::size_t place = line.substr(0, 200).find(".py:");
  if (place == line.npos) return line;
  const std::size_t end = line.find("] ", place);
  const bool is_prefix =
      end != line.npos && end - place < 20 && line.rfind(" [", place) != line.npos;
  return is_prefix ? line.substr(end + 2) : line;
}

// Returns the columns if the line is a heading.
std::optional<Columns> parse_heading(std::string_view line) {
  Columns columns;
  if (line.find("CPU total") == line.npos || line.size() > 4000) return std::nullopt;
  columns.titles = split_at_gaps(line);
  if (columns.titles.size() < 3 || columns.titles[0] != "Name") return std::nullopt;
  columns.has_overload = columns.titles[1] == "Overload Name";
  for (std::size_t i = 1; i < columns.titles.size(); ++i) {
    std::string_view title = columns.titles[i];
    if (title == "# of Calls" || title == "Number of Calls") columns.calls = i;
    if (title.ends_with('%') || title.ends_with(" Mem") || title.ends_with(" avg")) continue;
    const bool is_own = title.starts_with("Self ");
    if (is_own) title.remove_prefix(5);
    if (title.ends_with(" total")) title.remove_suffix(6);
    if (title == columns.titles[i]) continue;  // neither a time of its own nor a total
    if (title == "CPU") {
      (is_own ? columns.cpu_own : columns.cpu_total) = i;
    } else if (columns.device.empty() || columns.device == title) {
      columns.device = display_text(title, 40);
      (is_own ? columns.device_own : columns.device_total) = i;
    }
  }
  if (!columns.cpu_own || !columns.calls) return std::nullopt;
  return columns;
}

struct Row {
  std::string name;
  std::optional<std::int64_t> calls;
  std::optional<double> cpu_own, cpu_total, device_own, device_total;

  [[nodiscard]] bool is_of_device() const {
    return cpu_own.value_or(0) == 0 && cpu_total.value_or(0) == 0 && device_own.value_or(0) > 0;
  }
};

// Parses a row of a profiler's table by its columns. Nothing if the line has other columns.
std::optional<Row> parse_row(const Columns& columns, std::string_view line) {
  std::vector<std::string> cells = split_at_gaps(line);
  const std::size_t wanted = columns.titles.size();
  while (cells.size() > wanted) {  // a name with gaps
    cells[0] += "  " + cells[1];
    cells.erase(cells.begin() + 1);
  }
  if (columns.has_overload && cells.size() + 1 == wanted) cells.insert(cells.begin() + 1, "");
  const std::string& last = columns.titles.back();
  if (cells.size() + 1 == wanted && last.starts_with("Source Loc")) cells.emplace_back();
  if (cells.size() != wanted) return std::nullopt;
  const auto time = [&](const std::optional<std::size_t>& column) {
    return column ? time_cell(cells[*column]) : std::nullopt;
  };
  Row row;
  row.name = display_text(cells[0], 2000);
  if (const auto calls = number_cell(cells[*columns.calls]); calls && *calls >= 0 && *calls < 1e15)
    row.calls = static_cast<std::int64_t>(*calls);
  row.cpu_own = time(columns.cpu_own);
  row.cpu_total = time(columns.cpu_total);
  row.device_own = time(columns.device_own);
  row.device_total = time(columns.device_total);
  if (!row.calls || !row.cpu_own || (columns.device_own && !row.device_own)) return std::nullopt;
  return row;
}

ObservedOp make_op(const Row& row, std::string backend, std::optional<double> total,
                   std::optional<double> own) {
  ObservedOp op;
  op.op = row.name;
  op.backend = std::move(backend);
  op.calls = row.calls;
  op.seconds = total ? total : own;
  if (total && own && *own < *total) op.seconds_without_nested = own;
  return op;
}

// Adds the rows of a table to the observed.
void add_table(const std::vector<Row>& rows, const std::string& device, Observed& observed) {
  const bool has_device =
      std::ranges::any_of(rows, [](const Row& row) { return row.device_own.value_or(0) > 0; });
  const bool has_kernels = std::ranges::any_of(rows, &Row::is_of_device);
  std::map<std::string, bool> names_of_cpu;
  for (const Row& row : rows) {
    if (!row.is_of_device()) names_of_cpu[row.name] = true;
  }
  if (!device.empty() && !rows.front().device_own) {
    add_unread_part(
        observed, "columns",
        device + " total has the time of other rows too, and there is no Self " + device);
  }
  for (const Row& row : rows) {
    add_read_parts(observed, "rows");
    if (!has_device) {
      append_valid_op(make_op(row, "CPU", row.cpu_total, row.cpu_own), observed);
    } else if (row.is_of_device()) {
      ObservedOp op = make_op(row, device, row.device_own, std::nullopt);
      const bool is_copy = row.name.starts_with("Memcpy") || row.name.starts_with("Memset");
      op.category = is_copy ? "copy" : "kernel";
      if (!is_copy) op.kernel = row.name;
      // A range of record_function spans the kernels within it.
      op.includes_other_rows = names_of_cpu.contains(row.name);
      append_valid_op(std::move(op), observed);
    } else {
      if (!has_kernels && row.device_own.value_or(0) > 0) {
        ObservedOp op = make_op(row, device, row.device_total, row.device_own);
        op.category = "device";
        append_valid_op(std::move(op), observed);
      }
      ObservedOp call = make_op(row, "", row.cpu_total, row.cpu_own);
      call.category = call_category(row.name, "cpu_op");
      append_row_within_limit(observed.cpu_calls, std::move(call), observed);
    }
  }
  std::ranges::stable_sort(observed.cpu_calls, std::greater{}, observed::exclusive_time);
}

// Warns if the rows are only a part of the total under the table.
void check_total(double total, const std::string& device, Observed& observed) {
  double listed = 0;
  for (const ObservedOp& op : observed.ops) {
    if (!op.includes_other_rows && op.backend == device)
      listed += observed::exclusive_time(op).value_or(0);
  }
  if (listed <= 0 || listed >= 0.98 * total) return;
  add_warning(observed,
              "its rows are {:.0f} % of the time on {}: the table leaves others out (row_limit)",
              100 * listed / total, device);
}

}  // namespace

void read(const Printed& printed, Observed& observed) {
  std::optional<Columns> columns;
  std::vector<Row> rows;
  bool is_read = false, has_end = false;
  const auto finish = [&] {
    if (columns && !rows.empty()) {
      add_table(rows, columns->device, observed);
      is_read = true;
    }
    rows.clear();
  };
  for (const std::string_view printed_line : printed.lines()) {
    const std::string_view line = without_log_prefix(printed_line);
    if (auto heading = parse_heading(line)) {
      finish();
      columns = std::move(heading);
      has_end = false;
      continue;
    }
    if (!columns || is_ruler(line)) continue;
    LineScanner scan(line);
    if (scan.done()) continue;
    if (scan.skip_prefix("Self ")) {  // "Self CUDA time total: 10.000ms"
      const auto device = scan.word();
      if (!device || !scan.skip_prefix("time total:")) continue;
      finish();
      has_end = true;
      const auto total = time_cell(scan.rest());
      if (!total) continue;
      observed.context.facts[fmt::format("self {} time total", display_text(*device, 40))] =
          display_text(scan.rest(), 40);
      if (!printed.may_be_cut(printed_line))
        check_total(*total, display_text(*device, 40), observed);
      continue;
    }
    if (has_end) continue;
    if (printed.may_be_cut(printed_line)) {
      mark_truncated(observed);
      continue;
    }
    if (is_read) {
      add_unread_part(observed, "rows", "a second table, of another run or of the same");
      continue;
    }
    if (auto row = parse_row(*columns, line)) {
      if (rows.size() < k_max_rows) {
        rows.push_back(std::move(*row));
      } else {
        add_unread_part(observed, "rows", "it has more than 200000");
      }
    } else if (split_at_gaps(line).size() >= columns->titles.size() / 2) {
      add_unread_part(observed, "rows", "a row has other columns than its heading");
    }
  }
  finish();
}

}  // namespace weir::adapters::torch_table

const weir::adapters::Format weir::adapters::k_torch_table(
    "torch-table", "torch.profiler: key_averages().table()", "", torch_table::read,
    {{88, {"CPU total & Self CPU & # of Calls", "CPU total & Self CPU & Number of Calls"}}});
