// weir explain and weir compare: why cells changed, and how profiles differ.
#pragma once

#include <string>

#include "gate/config/settings.hpp"
#include "gate/explain/explain.hpp"
#include "gate/flow/reports.hpp"

namespace weir::flow {

// Returns the ops that the config lets this engine leave on the CPU in a cell on a device. Nothing
// if it has no such engine, such as for an alias of a private one.
[[nodiscard]] explain::AllowedOps allowed_cpu_ops(const config::Settings& settings,
                                                  const profile::CellKey& cell);

// Sets the findings of cells that failed, improved or were waived.
void explain_cells(std::vector<verdict::CellVerdict>& cells, const config::Settings& settings,
                   const std::string& config_file, const sys::Files& files);

struct ExplainOptions {
  std::vector<std::string> what;  // nothing, one run, verdict or profile, or two of them
  std::string model;
  bool checklist = false;
};
// Explains why cells changed, or what differs between two profiles. Judges nothing.
[[nodiscard]] Result<Answer> explain_changes(const Job& job, const ExplainOptions& options);

struct CompareOptions {
  ReportFiles files;
  std::string base, candidate;
  std::size_t top = 10;
  bool top_is_set = false;
};
// Judges one run against another, with the limits of the candidate's configuration. For two
// profiles it only shows the differences.
[[nodiscard]] Result<Answer> compare(const Job& job, const CompareOptions& options);

}  // namespace weir::flow
