// Who may change the rules: which parts of weir.yaml judge, and what an edit to them would change.
//
// Rules are `limits`, `gate` and each engine's `cpu_ops_allowed`. They are taken whole from where
// a pull request is to be merged; everything else says what is measured and how (engines, models,
// backends, variants, prompts, the matrix) and is the pull request's own, so that a new engine or
// cell works at once, judged by the limits that are there. What an engine of the pull request
// alone may run on the CPU is its own too: nothing else speaks of it. docs/explanation/rules.md.
// Pure.
#pragma once

#include "gate/config/matrix.hpp"
#include "gate/verdict/removed.hpp"

namespace weir::config {

// `base`'s rules in place of `head`'s own. Cells made from `head` before keep pointing into it.
void take_rules(const Settings& base, Settings& head);

// What `head`'s own rules (before take_rules) would change, and what its edits to how things are
// measured take out of the gate already: cells that are no longer there, that are other cells now,
// that lost a probe.
//
// A cell under a new name that is measured as one that is gone was (engine, model, device and
// prompt by their contents) is that one, renamed.
struct Edits {
  std::vector<verdict::Proposal> proposals;  // in order
  std::vector<verdict::HeldCell> cells;      // of base, in order; none is `shown` yet
};
// `sees`: probe -> the devices that it sees.
using ProbeDevices = std::map<std::string, std::vector<std::string>>;
[[nodiscard]] Edits compare_rules(const Settings& base, const Matrix& base_cells,
                                  const Settings& head, const Matrix& head_cells,
                                  const ProbeDevices& sees);

// Entries under `mode: report` or `off` whose time is over hold no more, without being an error:
// the pull request that takes them out must be able to pass. Answers what was left out, in words.
[[nodiscard]] std::vector<std::string> drop_expired(Settings& base, const std::string& today);

}  // namespace weir::config
