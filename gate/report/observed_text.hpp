// The report of an engine or a profiler as text: its context, times and counts, and a table of its
// ops. Judges nothing. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "gate/observed/observed.hpp"
#include "gate/observed/totals.hpp"

namespace weir::report {

// The rows of the table.
enum class ObservedList {
  ops,      // grouped
  tokens,   // work of one token
  steps,    // tokens or graphs, in order
  buffers,  // command buffers, in order
  splits,
};

struct ObservedStyle {
  std::size_t width = 80;
  std::size_t max_rows = 20;  // in each table
  observed::Grouping by = observed::GroupBy::kernel;
  ObservedList list = ObservedList::ops;
};

// The words of --by, in the order of a help text.
[[nodiscard]] const std::vector<std::string>& observed_groupings();
// Sets `by` and `list` from one of the words, or from several with commas: "layer,op" groups by op
// within each layer, "token,layer,op" does that for one token. Returns false if they make no sense.
[[nodiscard]] bool set_grouping(ObservedStyle& style, std::string_view words);

[[nodiscard]] std::string observed_text(const observed::Observed& observed,
                                        const ObservedStyle& style);
// Returns only the table.
[[nodiscard]] std::string observed_rows(const observed::Observed& observed,
                                        const ObservedStyle& style);

}  // namespace weir::report
