// Who may change the rules: which parts of weir.yaml judge, and what an edit to them would change.
//
// Rules are `limits`, `gate` and each engine's `cpu_ops_allowed`. They are taken whole from where
// a pull request is to be merged. Everything else says what is measured and how (engines, models,
// backends, variants, prompts, the matrix) and is the pull request's own. So a new engine or cell
// works at once, judged by the limits that are there. An engine that only the pull request has
// brings its own `cpu_ops_allowed`. docs/explanation/rules.md. Pure.
#pragma once

#include "gate/config/matrix.hpp"
#include "gate/verdict/removed.hpp"

namespace weir::config {

// `base`'s rules in place of `head`'s own. Cells made from `head` before keep pointing into it.
void copy_rules(const Settings& base, Settings& head);

// Result of comparing two versions of weir.yaml: changes that `head`'s own rules (before
// take_rules) would make, and what became of each cell of the base. A cell may be removed, measured
// differently, or have lost a probe.
//
// A new cell that measures the same as a removed one (engine, model, device and prompt by their
// contents) is that one, renamed.
struct Edits {
  std::vector<verdict::Proposal> proposals;  // in order
  std::vector<verdict::BaseCell> cells;      // the base's, in order; none is `shown` yet
};
// Probe -> the devices that it sees.
using ProbeDevices = std::map<std::string, std::vector<std::string>>;
[[nodiscard]] Edits compare_rules(const Settings& base, const Matrix& base_cells,
                                  const Settings& head, const Matrix& head_cells,
                                  const ProbeDevices& sees);

// Removes entries under `mode: report` or `off` whose `until` has passed; returns a note for each.
// They are no error, so that the pull request that removes them can pass.
[[nodiscard]] std::vector<std::string> remove_expired_limits(Settings& base,
                                                             const std::string& today);

}  // namespace weir::config
