// From measured profiles to a verdict, and from a verdict to every place that reads it.
#pragma once

#include <string>

#include "gate/flow/measure.hpp"
#include "gate/flow/stored_baselines.hpp"
#include "gate/source/bisection.hpp"

namespace weir::flow {
// `files` are those that models lie in, whose headers explain.
//
// Against stored baselines; what `pairs` (of some of its cells, beside a base program) say of times
// that fail there goes before.
[[nodiscard]] Result<verdict::GateVerdict> judge_stored(const Measured& measured,
                                                        const StoredBaselines& stored,
                                                        const verdict::Policy& policy,
                                                        const sys::Files& files,
                                                        const Measured* pairs = nullptr);
// Beside the base program of --against (measured.beside is there); what could not be counted of it
// is held to `stored`.
[[nodiscard]] Result<verdict::GateVerdict> judge_beside(const Measured& measured,
                                                        const StoredBaselines& stored,
                                                        const verdict::Policy& policy,
                                                        const sys::Files& files);
// Against another run: each cell with the cell of the same name.
[[nodiscard]] verdict::GateVerdict judge_against(const Measured& measured, const Measured& base,
                                                 const verdict::Policy& policy,
                                                 const sys::Files& files);
[[nodiscard]] verdict::Policy policy_of(const Measured& measured, bool require_baseline);

// The verdict's file that `place` names: of a run's folder, or the file itself. Code::usage where
// there is none, with the command that judges the run, or a run that lies in the folder.
[[nodiscard]] Result<std::string> find_verdict(const std::string& place, const sys::Files& files);
// What a verdict's file holds. Code::data where it is none, naming the file.
[[nodiscard]] Result<verdict::GateVerdict> read_verdict(const std::string& file,
                                                        const sys::Files& files);

// What a gate's verdict beside the good commit says of the commit that was tried. Pure.
struct Judged {
  source::Tried tried = source::Tried::skipped;
  std::string reason;    // why bad or skipped, one line
  bool nothing = false;  // skipped because no limit of these cells can be judged
};
// A failed cell: bad, whatever the others say. An error, or a time that is not decided: skipped.
[[nodiscard]] Judged judged_step(const verdict::GateVerdict& verdict);

}  // namespace weir::flow
