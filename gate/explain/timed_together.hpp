// Work that one side timed together ("ROPE, SET_ROWS x 2") and the other by itself: which rows of
// two sides are the same work then. For comparisons and explanations. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace weir::explain {

// A row of one side.
struct WorkName {
  std::string kind;         // rows of two kinds are never the same work
  std::string role;         // profile::Role::work; "ROPE+SET_ROWS" of work timed together
  std::string name, shape;  // as the document has them
};

// Rows that are the same work, by their indices.
struct TimedTogether {
  std::string kind;
  std::string role;  // of all parts: "ROPE+SET_ROWS"
  std::vector<std::size_t> a, b;
};

// Each work that one side alone timed together and of which the other side has every part, with the
// rows of these parts on both sides: of a part, those whose shapes the group names, where it names
// any. Groups that share a part are one, so no row is in two.
[[nodiscard]] std::vector<TimedTogether> timed_together(std::span<const WorkName> a,
                                                        std::span<const WorkName> b);

}  // namespace weir::explain
