// Judges measured profiles, and reads verdicts.
#pragma once

#include <string>

#include "gate/flow/measure.hpp"
#include "gate/flow/stored_baselines.hpp"
#include "gate/source/bisection.hpp"

namespace weir::flow {
// `files` holds the models, whose headers help to explain.
// Judges by stored baselines. `pairs` are paired runs of some of the cells with a base program;
// they decide times that fail by stored baselines.
[[nodiscard]] Result<verdict::GateVerdict> judge_stored(const MeasuredRun& measured,
                                                        const StoredBaselines& stored,
                                                        const verdict::Policy& policy,
                                                        const sys::Files& files,
                                                        const MeasuredRun* pairs = nullptr);
// Judges against the base program of --against; measured.base_runs is set. Counts that the base
// lacks are judged by `stored`.
[[nodiscard]] Result<verdict::GateVerdict> judge_against_base(const MeasuredRun& measured,
                                                              const StoredBaselines& stored,
                                                              const verdict::Policy& policy,
                                                              const sys::Files& files);
// Judges against another run: each cell with the cell of the same name.
[[nodiscard]] Result<verdict::GateVerdict> judge_against(const MeasuredRun& measured,
                                                         const MeasuredRun& base,
                                                         const verdict::Policy& policy,
                                                         const sys::Files& files);
[[nodiscard]] verdict::Policy gate_policy(const MeasuredRun& measured, bool require_baseline);

// Returns the verdict's file that `place` names: the file itself, or that of a run's folder.
// Code::usage if there is none, with the command that judges the run or a run in the folder.
[[nodiscard]] Result<std::string> find_verdict(const std::string& place, const sys::Files& files);
// Reads a verdict's file; Code::data names the file.
[[nodiscard]] Result<verdict::GateVerdict> read_verdict(const std::string& file,
                                                        const sys::Files& files);

// The verdict on one commit of a bisection, compared with the good one.
struct StepVerdict {
  source::TrialOutcome outcome = source::TrialOutcome::skipped;
  std::string reason;    // the reason if bad or skipped, one line
  bool nothing = false;  // skipped because no limit of these cells can be judged
};
// Returns bad if any cell failed; skipped if a cell has an error or an undecided time. Pure.
[[nodiscard]] StepVerdict judge_step(const verdict::GateVerdict& verdict);

}  // namespace weir::flow
