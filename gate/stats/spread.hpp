// Compares how runs of the two sides of pairs spread.
//
// "Slower" has one answer only if the candidate's runs are the base's, moved. If they spread more
// (or less), its fast runs, its typical ones and its slow ones may each say something else. Then a
// verdict stands only if they agree. Pure.
#pragma once

#include <optional>

#include "gate/stats/evidence.hpp"

namespace weir::stats {

// Quantiles and mean of the logarithms of one side, timed-out runs (+infinity) included; `mean` may
// be infinite.
struct Spread {
  double p10 = 0, median = 0, mean = 0, p90 = 0;
};
[[nodiscard]] std::optional<Spread> spread_of(std::span<const double> values);  // absent when empty

// candidate - base for the pairs in which both runs ended.
[[nodiscard]] std::vector<double> finite_differences(std::span<const Pair> pairs);
// The median of candidate - base over the pairs in which both runs ended; 0 without such pairs.
[[nodiscard]] double median_difference(std::span<const Pair> pairs);

// How the spreads of the two sides differ.
struct SpreadDifference {
  Spread by;  // candidate - base of each number
  // Two-sided probability that the distances from the middle differ so much if both sides spread
  // alike. By Klotz's scores (Annals of Mathematical Statistics 33, 1962): the candidate's less the
  // base's, pair by pair, with a normal approximation of their swaps. The candidate is first moved
  // by the median difference of the pairs; the middle is then the median of both sides. Absent if
  // 1 to 7 pairs differ, which are too few to test; 1 if none does. The coin makes the swaps fair
  // under any drift that meets both runs of a pair.
  std::optional<double> p = 1;
  double ratio = 1;  // median distance of the candidate over that of the base; 0, or infinite
};
[[nodiscard]] std::optional<SpreadDifference> compare_spreads(std::span<const Pair> pairs);

}  // namespace weir::stats
