// What find_changes is made of: scores of ranks, how much two sides of a split differ, what a
// series remembers, and how much is enough. Inside stats. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weir::stats {

// A value's place among all values of its series, equal ones alike: what is left of the unit.
using Order = std::int32_t;
[[nodiscard]] std::vector<Order> orders_of(std::span<const double> values);

inline constexpr std::size_t k_points_before = 8;  // on the near side of a split, at least
inline constexpr std::size_t k_points_after = 5;
inline constexpr std::size_t k_lags = 10;

// What points remember of those before, summed over segments whose level was taken out.
struct Memory {
  double squares = 0;  // of scores
  double next = 0;     // products of neighbours
  double slow = 0;     // products of points 1 … k_lags apart
  double points = 0;
  double told = -1;  // the correlation of neighbours as somebody knows it; below 0: nobody does

  void add(const Memory& other);
  // Autocorrelation to reckon with, 0 … 0.95: the estimate, raised by what it may be wrong by, if
  // it is clearly above 0; with few points it is raised more and need not be clear.
  [[nodiscard]] double of_next() const;
  // The mean of autocorrelations 1 … k_lags, likewise, where it is clearly above 0: a machine that
  // is slow for weeks on end.
  [[nodiscard]] double of_many() const;
};

// How much wider the difference of two neighbouring means of `before` and `after` points varies
// than if points knew nothing of each other; at least 1.
[[nodiscard]] double inflation_next(double correlation, double before, double after);
[[nodiscard]] double inflation_many(double correlation, double before, double after);
[[nodiscard]] double inflation(const Memory& memory, double before, double after);

// Normal scores of these points among themselves; equal points have equal scores.
[[nodiscard]] std::vector<float> scores_of(std::span<const Order> orders);
// The same, from twice each point's rank: the points below it and half of those equal to it.
void scores_of_ranks(std::span<const std::int32_t> twice_ranks, std::vector<float>& scores);
// ... of some of n points.
void scores_of_ranks(std::span<const std::int32_t> twice_ranks, std::size_t n,
                     std::vector<float>& scores);
// Sum of squares of the scores of n points of which none are equal.
[[nodiscard]] double squares_of_scores(std::size_t n);

// Scores split in front of the last `after`.
struct Split {
  std::size_t after = 0;
  double between = 0;  // sum of squares between the two sides
};
// The one with the largest sum of squares of all that leave `least_before` and `least_after`
// points; after is 0 where there is none. `last` are the scores of the last points of n (later
// splits than they hold are not looked at), `mean` is that of all n.
[[nodiscard]] Split best_split(std::span<const float> last, std::size_t n, double mean,
                               std::size_t least_before, std::size_t least_after);
[[nodiscard]] Split best_split(std::span<const float> scores, std::size_t least_before,
                               std::size_t least_after);
[[nodiscard]] Split split_at(std::span<const float> scores, std::size_t after);
// What is left of the scores when each side's mean is taken out.
[[nodiscard]] Memory memory_of_split(std::span<const float> scores, std::size_t after);
// Student's t of the two sides, over the root of the inflation: how far they are apart. `memory` is
// that of the split or of more points, `own` that of the split alone.
[[nodiscard]] double distance(const Split& split, const Memory& own, const Memory& memory);

// The distance that n points without change exceed with chance `p` at some split, looked at once.
[[nodiscard]] double threshold_once(double p, double n);
// Half of the chance for splits in front of the last k_news points, which is where people look, and
// which are few, so that the threshold is lower there. Not for short series: one threshold then.
inline constexpr std::size_t k_news = 16;
struct OnceThresholds {
  double news = 0, any = 0;
};
[[nodiscard]] OnceThresholds thresholds_once(double p, double n);
// ... and with chance `p` at each of many looks, one a point, for the first time.
class NightlyThreshold {
 public:
  explicit NightlyThreshold(double p);
  [[nodiscard]] double at(double n) const;

 private:
  double long_run_;
};
// What is left of a chance where the memory is told: an estimate, which is raised by its error,
// uses up less than it is given, and the thresholds count on that.
[[nodiscard]] double chance_left(double p, const Memory& told);
// The chances back, from a distance; at most 1.
[[nodiscard]] double chance_once(double distance, double n);
[[nodiscard]] double chance_nightly(double distance, double n);

}  // namespace weir::stats
