// How an accepted baseline differs from the one that it replaces, in words. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gate/baseline/baseline.hpp"

namespace weir::flow {

// Lists all counts that change from the old baseline to the new one.
[[nodiscard]] std::string describe_changes(const std::optional<baseline::Baseline>& before,
                                           const baseline::Baseline& after);

// The same as indented lines: what got worse first, the largest change first, five at most. Of a
// first baseline only how much it holds.
[[nodiscard]] std::string changes_text(const std::optional<baseline::Baseline>& before,
                                       const baseline::Baseline& after, int width);

// The change that stands first above, for the subject of a commit; its `share` compares cells.
struct LargestChange {
  double share = -1;
  std::string text;
};
[[nodiscard]] LargestChange find_largest_change(const std::optional<baseline::Baseline>& before,
                                                const baseline::Baseline& after);

// The counts that were not the same in all runs: "syncs at 16: 63 to 64, 1 of 3 runs".
[[nodiscard]] std::vector<std::string> varying_counts(const baseline::Baseline& accepted);

// Returns a warning if some counts vary too much for any limit to be useful; else "".
[[nodiscard]] std::string spread_warning(const baseline::Baseline& accepted);

}  // namespace weir::flow
