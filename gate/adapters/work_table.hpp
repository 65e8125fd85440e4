// Tables in which profilers of devices list work by name: kernels, copies, the CPU's calls. Titles
// say which column is what, and in which unit. For the readers of nsys, rocprof and nvprof. Pure.
#pragma once

#include "gate/adapters/readers.hpp"

namespace weir::adapters {

enum class Work { kernel, copy, call };

// All calls of a name together, or one of them. Base units.
struct WorkRow {
  std::string name, category;  // `category`: as the table has it, "MEMORY_OPER"
  std::optional<std::int64_t> calls;
  std::optional<double> seconds, min_seconds, max_seconds;
  std::optional<double> bytes;  // of all calls
};

// Reads a number with or without separators of thousands: "3,200" is 3200. Nothing for "nan", "--".
std::optional<double> number_cell(std::string_view cell);
// Reads a time with its unit, "729.72us"; `scale` is that of a number without one (0: none).
std::optional<double> time_cell(std::string_view cell, double scale = 0);
// Returns the cells of a row whose columns have two blanks or more between them.
std::vector<std::string> split_at_gaps(std::string_view line);
// Returns the cells of a row between bars; empty if bars do not enclose it.
std::vector<std::string> split_at_bars(std::string_view line);
// True for a line of dashes, bars and the like under a heading.
bool is_ruler(std::string_view line);

// Returns "wait", "graph", "transfer" or "submit" for such a call of CUDA or HIP, else `other`.
std::string call_category(std::string_view name, std::string_view other = "call");

// Gathers rows. A second table of the same work is of another run, or says the same again, so it
// is counted as not read.
class WorkRows {
 public:
  explicit WorkRows(Observed& observed) : observed_(observed) {}
  void begin_table() { ++table_; }
  void add(Work work, const WorkRow& row);
  // Gives copies their bytes, sorts the CPU's calls.
  void finish();

 private:
  enum class Part { kernels, copies, bytes, calls };
  bool is_repeated(Part part);
  void add_row(Work work, const WorkRow& row);

  Observed& observed_;
  int table_ = 0;
  std::map<Part, int> tables_;  // the one that has this part
  std::map<std::pair<Work, std::string>, std::size_t> rows_;
  std::map<std::string, WorkRow> sizes_;  // rows with bytes alone
};

// The kind of work of a row; nothing if it is none that weir reads.
using KindOfWork = std::optional<Work> (*)(std::string_view section, const WorkRow& row);

// Reads each table of a text: CSV, columns with bars or gaps. A section is a line that ends in ":".
void read_work_tables(const Printed& printed, KindOfWork kind_of, Observed& observed);

}  // namespace weir::adapters
