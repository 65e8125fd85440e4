// What a change looks like: step or drift, its levels, its size. Inside stats. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace weir::stats {

// Of points of one scale (logarithms, where all values are above 0), finite.
struct Centre {
  double level = 0;    // mean of the middle three fifths
  double squares = 0;  // of the values, the outer two fifths pulled in, around their mean
  double kept = 0;     // how many the middle has
};
// Requires at least one value.
[[nodiscard]] Centre centre_of(std::span<const double> values);

struct Difference {
  double size = 0, low = 0, high = 0;  // after less before
};
// Yuen's interval (Biometrika 61, 1974), wider by the root of `inflation`; without end where the
// two sides have too few points to say.
[[nodiscard]] Difference difference_of(const Centre& before, const Centre& after, double inflation,
                                       double level);

// Level up to point `from`, then a straight line over days to point `to`, then level again.
struct Ramp {
  std::size_t from = 0, to = 0;
  double level = 0;  // up to `from`
  Difference rise;   // of the last level over the first
  double rest = 0;   // sum of squares around it
};
// The one that lies nearest to the points, by least squares, with at least k_shortest_drift points
// between its ends; absent where there are too few. `inflation` and `level` are for its interval.
inline constexpr std::size_t k_shortest_drift = 25;
[[nodiscard]] std::optional<Ramp> nearest_ramp(std::span<const double> values,
                                               std::span<const double> days, double inflation,
                                               double level);

// Whether a ramp explains `points` points better than `steps` steps that leave `rest`, for the
// numbers each may choose (Schwarz's criterion). `inflation`: how many points count as one.
[[nodiscard]] bool rather_ramp(const Ramp& ramp, double rest, std::size_t steps, double points,
                               double inflation);

}  // namespace weir::stats
