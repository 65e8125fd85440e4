// What a pull request takes out of a gate that its base's rules judge (gate.on_removed): cells of
// the base's matrix that are gone, that are others by now under their old name, or whose counts are
// not taken any more. A cell under a new name is none of these: it is judged as the one it was.
// docs/explanation/rules.md. Pure.
#pragma once

#include "gate/verdict/verdict.hpp"

namespace weir::verdict {

// The metric of a cell itself: 1, and 0 where it is gone.
inline constexpr const char* k_cell_metric = "cell";
// What stands in place of the number of a metric that is not measured any more.
inline constexpr std::string_view k_not_measured = "not measured";

// A cell of the base's matrix, and what became of it.
struct HeldCell {
  std::string cell;       // its name there
  std::string shown{};    // the same, fit to be shown
  std::string now{};      // its name in the pull request's matrix; "": gone
  std::string changed{};  // what of it is another by now: "arguments"; "": nothing
  std::string lost{};     // what counted it and does so no more: "probe vulkan"; "": nothing
  std::vector<std::string> limits{};  // of the base, that hold no cell which is left: "weir.yaml:9"
  std::string why = "the pull request's matrix does not have it";  // of one that is gone
};
void fields(Fields& io, HeldCell& held);

// A cell that is gone: a fail that can be accepted.
[[nodiscard]] CellVerdict removed_cell(const HeldCell& held);

// Into the verdict `cell` of what is there of `held`, compared with `choice`: what its baseline or
// a limit of the base on a plain number holds and it has no more. Fails where `fails`, else
// warnings alone; what no edit explains (a pass that broke, no device here) stays as it was judged.
void hold_measured(const profile::Profile& candidate, const baseline::Choice& choice,
                   std::span<const LimitEntry> limits, const HeldCell& held, bool fails,
                   CellVerdict& cell);

}  // namespace weir::verdict
