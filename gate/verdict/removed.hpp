// Finds parts that a pull request takes out of a gate that its base's rules judge: cells of the
// base's matrix that are gone or lost a number (gate.on_removed), and cells that it measures in
// another way, which are not judged. A cell under a new name is none of these: it is judged as the
// cell it was. docs/explanation/rules.md. Pure.
#pragma once

#include "gate/verdict/verdict.hpp"

namespace weir::verdict {

// The metric of a cell itself: 1, and 0 where it is gone.
inline constexpr const char* k_cell_metric = "cell";
// The text in place of the number of a cell that the pull request edits: "edited 1a2b3c4d5e6f7081".
inline constexpr std::string_view k_edited = "edited ";
// The text in place of the number of a metric that is not measured any more.
inline constexpr std::string_view k_not_measured = "not measured";

// A cell of the base's matrix, and how the pull request changed it.
struct BaseCell {
  std::string cell;                   // its name there
  std::string shown{};                // the same, fit to be shown
  std::string current_name{};         // its name in the pull request's matrix; "": gone
  std::string edited{};               // keys that differ: "engines.mine.ok_exit_codes"; "": none
  std::string edit{};                 // hash of the edit
  std::vector<std::string> limits{};  // limits of the base with no cell left: "weir.yaml:9"
  std::string why = "the pull request's matrix does not have it";  // why it is gone
};
void fields(Fields& io, BaseCell& base_cell);

// A cell that is gone: a fail that can be waived.
[[nodiscard]] CellVerdict removed_cell(const BaseCell& base_cell);

// Adds to `cell` what the candidate no longer measures of the baseline in `choice`. It fails if
// `fails`, else it is a warning. A number that is missing for another reason (a pass that broke, no
// device here) stays as it was judged.
void check_removed(const profile::Profile& candidate, const baseline::BaselineChoice& choice,
                   const LimitTable& limits, bool fails, CellVerdict& cell);

// An edit of a cell: the keys or files that differ, and a hash of what they are now.
struct CellEdit {
  std::string what, hash;
};
// The edit of `base_cell`; else that of the files that its keys name (model, prompt, twin), where
// `stored`, the base's choice of a baseline, is of other files. Nothing if the cell is as it was.
[[nodiscard]] std::optional<CellEdit> find_edit(const profile::Profile& candidate,
                                                const baseline::BaselineChoice& stored,
                                                const BaseCell& base_cell);
// Makes an edited cell an error, unless it fails: it is not judged. Whoever may merge can waive
// the edit.
void mark_edited(const CellEdit& edit, CellVerdict& cell);

// Says how counts of `counted`, an older commit of a branch, break a limit beside those that the
// branch has stored since for the cell; "" if none does.
[[nodiscard]] std::string describe_gain(const profile::Profile& candidate,
                                        const baseline::BaselineChoice& stored,
                                        const baseline::Baseline& counted, const LimitTable& limits,
                                        const Policy& policy, const std::string& branch);
// Makes the cell an error: its branch is behind one that gained since (describe_gain).
void mark_behind(const std::string& gain, CellVerdict& cell);

}  // namespace weir::verdict
