// What an engine or a profiler wrote, as text: what it is of, its times and counts, and a table of
// its ops. Judges nothing. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "gate/observed/observed.hpp"
#include "gate/observed/totals.hpp"

namespace weir::report {

// What the table of it is of.
enum class ObservedList {
  ops,      // grouped
  tokens,   // work of one token
  steps,    // tokens or graphs, in order
  buffers,  // command buffers, in order
  splits,
};

struct ObservedStyle {
  std::size_t width = 80;
  std::size_t most_rows = 20;  // of each table
  observed::Grouping by = observed::GroupBy::kernel;
  ObservedList list = ObservedList::ops;
};

// The words of --by, in the order of a help text.
[[nodiscard]] const std::vector<std::string>& observed_groupings();
// Sets `by` and `list` as one of the words asks, or several of them with commas: "layer,op" is by
// op within each layer, "token,layer,op" that of one token. False where they make no sense.
[[nodiscard]] bool set_grouping(ObservedStyle& style, std::string_view words);

[[nodiscard]] std::string observed_text(const observed::Observed& observed,
                                        const ObservedStyle& style);
// Its one table alone.
[[nodiscard]] std::string observed_rows(const observed::Observed& observed,
                                        const ObservedStyle& style);

}  // namespace weir::report
