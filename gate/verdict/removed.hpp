// Finds parts that a pull request takes out of a gate that its base's rules judge
// (gate.on_removed): cells of the base's matrix that are gone, that are others under their old
// name, or whose counts are not taken any more. A cell under a new name is none of these: it is
// judged as the cell it was. docs/explanation/rules.md. Pure.
#pragma once

#include "gate/verdict/verdict.hpp"

namespace weir::verdict {

// The metric of a cell itself: 1, and 0 where it is gone.
inline constexpr const char* k_cell_metric = "cell";
// The text in place of the number of a metric that is not measured any more.
inline constexpr std::string_view k_not_measured = "not measured";

// A cell of the base's matrix, and how the pull request changed it.
struct BaseCell {
  std::string cell;       // its name there
  std::string shown{};    // the same, fit to be shown
  std::string now{};      // its name in the pull request's matrix; "": gone
  std::string changed{};  // how its fingerprint differs: "arguments"; "": it does not
  std::string lost{};     // the probe that counted it and is gone: "probe vulkan"; "": none
  std::vector<std::string> limits{};  // limits of the base with no cell left: "weir.yaml:9"
  std::string why = "the pull request's matrix does not have it";  // why it is gone
};
void fields(Fields& io, BaseCell& base_cell);

// A cell that is gone: a fail that can be accepted.
[[nodiscard]] CellVerdict removed_cell(const BaseCell& base_cell);

// Adds to `cell` what the candidate no longer measures of `base_cell`: numbers of the baseline in
// `choice`, and numbers that a plain limit of the base names. They fail if `fails`, else they are
// warnings. A number that no edit explains (a pass that broke, no device here) stays as it was
// judged.
void check_removed(const profile::Profile& candidate, const baseline::Choice& choice,
                   const LimitTable& limits, const BaseCell& base_cell, bool fails,
                   CellVerdict& cell);

}  // namespace weir::verdict
