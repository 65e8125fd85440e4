// Work that one side timed together ("ROPE, SET_ROWS x 2") and the other by itself: which rows of
// two sides are the same work then. For comparisons and explanations. Pure.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "gate/base/find.hpp"
#include "gate/profile/kernel_name.hpp"

namespace weir::explain {

// A row of one side.
struct WorkName {
  std::string kind;         // rows of two kinds are never the same work
  profile::Role role;       // "ROPE+SET_ROWS" of work timed together
  std::string name, shape;  // as the document has them
  std::optional<double> calls;
};

// Rows that are the same work, by their indices.
struct TimedTogether {
  std::string kind;
  std::string role;  // role of all parts: "ROPE+SET_ROWS"
  std::vector<std::size_t> a, b;
};

// Each work that one side alone timed together and of which the other side has every part, with the
// rows of these parts on both sides: of a part, those whose shapes the group names, where it names
// any; of several of one role ("mul_mat_vec_f16 x 2, mul_mat_vec_q8_0") those of shapes that the
// sides do not run as often. Groups that share a part are one, so no row is in two.
[[nodiscard]] std::vector<TimedTogether> timed_together(std::span<const WorkName> a,
                                                        std::span<const WorkName> b);

// Equal but for rounding: numbers of calls per unit.
[[nodiscard]] inline bool as_often(double a, double b) {
  return std::fabs(a - b) <= 1e-9 * std::max(a, b);
}

// Shapes that both sides run as often: these are the same work, whatever rows without a shape hold.
// A row has `shape` and `calls`, as WorkName has.
template <class Row>
[[nodiscard]] std::set<std::string> find_common_shapes(const std::vector<const Row*>& a,
                                                       const std::vector<const Row*>& b) {
  const auto calls = [](const std::vector<const Row*>& side) {
    std::map<std::string, double> sums;
    for (const Row* row : side) sums[row->shape] += row->calls.value_or(std::nan(""));
    sums.erase("");
    return sums;
  };
  std::set<std::string> alike;
  const auto other = calls(b);
  for (const auto& [shape, sum] : calls(a)) {
    const double* match = look_up(other, shape);
    if (match != nullptr && as_often(sum, *match)) alike.insert(shape);
  }
  return alike;
}

}  // namespace weir::explain
