// Judging a pull request by its base's weir.yaml: which keys the base decides, and what an edit of
// the others means.
//
// The base decides `limits`, `gate`, `explain` and each engine's `cpu_ops_allowed`: they are taken
// whole from where a pull request is to be merged, so a new engine or cell works at once, judged by
// the limits that are there. An engine that only the pull request has brings its own
// `cpu_ops_allowed`. Any other key says how cells are measured. A cell whose keys the pull request
// edits is not judged. edits.hpp lists the exceptions. docs/explanation/rules.md. Pure.
#pragma once

#include "gate/config/edits.hpp"
#include "gate/config/matrix.hpp"
#include "gate/verdict/removed.hpp"

namespace weir::config {

// `base`'s rules in place of `head`'s own, but for default limits of metrics that only `head`
// declares. Cells made from `head` before keep pointing into it.
void copy_rules(const Settings& base, Settings& head);

// Marks the engines, models and prompts of `head` as private that `base` calls private by name.
void copy_privacy(const Settings& base, Settings& head);

// Result of comparing two versions of weir.yaml: changes that `head`'s own rules (before
// copy_rules) would make, and what became of each cell of the base. A cell may be removed, or
// measured by other keys.
//
// A new cell that measures the same as a removed one (engine, model, device and prompt by their
// contents) is that one, renamed.
struct Edits {
  std::vector<verdict::Proposal> proposals;  // in order
  std::vector<verdict::BaseCell> cells;      // the base's, in order; none is `shown` yet
};
// Edits of the files that cells of the base name, by the cell's name.
using FileEdits = std::map<std::string, EntryEdit>;
// Both settings come from parse_settings().
[[nodiscard]] Edits compare_rules(const Settings& base, const Matrix& base_cells,
                                  const Settings& head, const Matrix& head_cells,
                                  const Digest& digest, const FileEdits& file_edits = {});

// Removes entries under `mode: report` or `off` whose `until` has passed; returns a note for each.
// They are no error, so that the pull request that removes them can pass.
[[nodiscard]] std::vector<std::string> remove_expired_limits(Settings& base,
                                                             const std::string& today);

}  // namespace weir::config
