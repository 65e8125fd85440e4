// Models' headers for explanations: which layers a run's models have.
#pragma once

#include <string>

#include "gate/config/settings.hpp"
#include "gate/explain/explain.hpp"
#include "gate/flow/reports.hpp"

namespace weir::flow {

// The ops that the config lets this engine leave on the CPU of a cell on a device. Nothing where it
// has no such engine: an alias of a private one is none.
[[nodiscard]] explain::AllowedOps allowed_ops_of(const config::Settings& settings,
                                                 const profile::CellKey& cell);

// Fills in the findings of cells that failed, improved or were accepted.
void explain_cells(std::vector<verdict::CellVerdict>& cells, const config::Settings& settings,
                   const std::string& config_file, const sys::Files& files);

struct ExplainOptions {
  std::vector<std::string> what;  // none, a run, verdict or profile, or two sides
  std::string model;
  bool checklist = false;
};
// Why a cell failed, or what differs between two profiles. Judges nothing.
[[nodiscard]] Result<Answer> explain_changes(const Job& job, const ExplainOptions& options);

struct CompareOptions {
  ReportFiles files;
  std::string base, candidate;
  std::size_t top = 10;
  bool top_given = false;
};
// Judges run B against run A, with the limits of B's configuration; of any other two profiles it
// tells what differs, and judges nothing.
[[nodiscard]] Result<Answer> compare(const Job& job, const CompareOptions& options);

}  // namespace weir::flow
