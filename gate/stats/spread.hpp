// Where runs of one side lie, and whether the two sides of pairs spread alike.
//
// "Slower" has one answer only where the candidate's runs are the base's, moved. Where they spread
// more (or less), its fast runs, its typical ones and its slow ones may each say something else:
// then a verdict stands only if they agree. Pure.
#pragma once

#include <optional>

#include "gate/stats/evidence.hpp"

namespace weir::stats {

// Of logarithms of one side, timed-out runs (+infinity) included; `mean` may be infinite.
struct Spread {
  double p10 = 0, median = 0, mean = 0, p90 = 0;
};
[[nodiscard]] std::optional<Spread> spread_of(std::span<const double> values);  // absent when empty

// candidate - base of the pairs in which both runs ended.
[[nodiscard]] std::vector<double> finite_differences(std::span<const Pair> pairs);
// The median of candidate - base over the pairs in which both runs ended; 0 where there are none.
[[nodiscard]] double median_difference(std::span<const Pair> pairs);

// Differences candidate - base of each.
struct SpreadDifference {
  Spread by;
  // Two-sided probability of distances from the middle lying so unlike each other, if both sides
  // spread alike: Klotz's scores (Annals of Mathematical Statistics 33, 1962) of the candidate's
  // distances less those of the base's, pair by pair, by the normal approximation of their swaps.
  // The candidate is first moved by the median difference of the pairs; the middle is the median
  // of both sides then. 1 below 8 pairs that differ. The coin makes the swaps fair under
  // any drift that meets both runs of a pair.
  double p = 1;
  double ratio = 1;  // median distance of the candidate over that of the base; 0, or infinite
};
[[nodiscard]] std::optional<SpreadDifference> compare_spreads(std::span<const Pair> pairs);

}  // namespace weir::stats
