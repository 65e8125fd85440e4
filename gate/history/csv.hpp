// Reads foreign series from CSV (RFC 4180): columns `cell,metric,commit,time,value,machine`, in any
// order, named by the first row; `commit` and `machine` may be missing. Pure; the text is hostile.
//
// Rows of one commit, time and machine are one run, whose id is made from these three: a file that
// has grown brings in what is new. Rows that agree in cell and metric as well are samples of one
// point, in the order of the file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gate/history/history.hpp"

namespace weir::history {

class CsvTable {
 public:
  // Fails with Code::data naming the row's line: a quote out of place, another number of fields
  // than columns, a value that is no finite number, a time that parse_time() does not know, more
  // points or samples than a run may have. Limits: 256 columns, 64 KiB a field.
  // Metrics that weir knows as counts, and values like "133/2", keep the exact number. `machine` is
  // for rows that name none; it is a part of a run's identity.
  [[nodiscard]] static Result<CsvTable> parse(std::string_view text, const std::string& project,
                                              const std::string& machine = "");

  // By commit, time and machine as they first occur.
  [[nodiscard]] std::size_t runs() const { return groups_.size(); }
  [[nodiscard]] std::size_t rows() const { return rows_.size(); }
  [[nodiscard]] std::size_t rows_of(std::size_t run) const;
  [[nodiscard]] Run run(std::size_t index) const;
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  friend class CsvReader;
  struct Row {
    std::uint32_t group = 0, cell = 0, metric = 0, exact = 0;  // exact: 1 + index, 0 is none
    double value = 0;
  };
  std::vector<RunFacts> groups_;
  std::vector<std::size_t> begins_;  // start of each group in rows_, and the end
  std::vector<std::string> cells_;
  std::vector<Metric> metrics_;
  std::vector<Rational> exact_;
  std::vector<Row> rows_;  // by group, cell, metric, then as they stood
  std::vector<std::string> warnings_;
};

}  // namespace weir::history
