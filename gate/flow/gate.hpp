// weir run and weir gate.
//
// --confirm: a drop that stored samples suggest is looked at in pairs beside a base program before
// it fails. These pairs are a run of their own, inside the folder of the run that raised them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gate/flow/measure.hpp"
#include "gate/flow/reports.hpp"
#include "gate/verdict/verdict.hpp"

namespace weir::flow {
struct ConfirmOptions {
  std::optional<std::string> ref;  // --confirm REF
  bool off = false;                // --no-confirm
  bool read_only = false;          // --from: pairs that were run then, and no others
};

// What pairs of the suspected cells gave, or why there are none (one line; empty where nothing is
// to be said).
struct Pairs {
  std::optional<Measured> measured;
  std::string why_not;
};

// `first` is the run whose stored verdict is `verdict`. Takes gate.budget at most. Fails with
// Code::interrupted alone: whatever else goes wrong leaves the stored verdict as it is, and says
// so.
[[nodiscard]] Result<Pairs> pairs_of_suspected(const Job& job, const ConfirmOptions& confirm,
                                               const Measured& first,
                                               const verdict::GateVerdict& verdict);

struct GateOptions {
  ReportFiles files;
  bool require_baseline = false;
  std::optional<std::string> from, against;
  std::vector<std::string> words;                 // after "--"
  std::optional<config::Environment> base_env{};  // BaseRequest::env
  RulesWanted rules;
  AllowedWanted allowed;
  ConfirmOptions confirm;
  MeasureOptions wanted;  // of shards, --runs and --resume
};
// Run, compare, report; the exit code is the verdict.
[[nodiscard]] Result<Answer> gate(const Job& job, const GateOptions& options);

struct RunOptions {
  bool dry_run = false;
  std::optional<std::string> against;
  MeasureOptions wanted;  // of shards, --runs and --resume
};
// Measures the matrix and writes a run; judges nothing.
[[nodiscard]] Result<Answer> run_matrix(const Job& job, const RunOptions& options);

}  // namespace weir::flow
