// weir run and weir gate.
// --confirm: a slowdown that stored samples suggest is re-tested in pairs with a base program
// before it fails. These pairs are a run of their own, in the folder of the suspecting run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gate/flow/measure.hpp"
#include "gate/flow/reports.hpp"

namespace weir::flow {
struct ConfirmOptions {
  std::optional<std::string> ref;  // --confirm REF
  bool off = false;                // --no-confirm
  bool read_only = false;          // --from: use pairs that exist, run none
};

struct GateOptions {
  ReportFiles files;
  bool require_baseline = false;
  std::optional<std::string> from, against;
  std::vector<std::string> results;               // files, judged as runs of cells
  std::vector<std::string> trailing_arguments;    // after "--"
  std::optional<config::Environment> base_env{};  // BaseRequest::env
  RulesOptions rules;
  WaiverOptions waived;
  ConfirmOptions confirm;
  MeasureOptions wanted;  // for shards, --runs and --resume
};
// Run, compare, report; the exit code is the verdict.
[[nodiscard]] Result<Answer> gate(const Job& job, const GateOptions& options);

struct RunOptions {
  bool dry_run = false;
  std::optional<std::string> against;
  MeasureOptions wanted;  // for shards, --runs and --resume
};
// Measures the matrix and writes a run; judges nothing.
[[nodiscard]] Result<Answer> run_matrix(const Job& job, const RunOptions& options);

}  // namespace weir::flow
