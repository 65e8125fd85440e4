// What find_changes is made of: scores of ranks, how much two sides of a split differ, what a
// series remembers and how much is enough; the search for changes, one look at all points and one
// look a night; and what a change looks like: step or drift, its levels, its size. Inside stats.
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
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
  [[nodiscard]] Memory with(const Memory& other) const;
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
// The same of some of n points, from twice each one's rank: the points below it and half of those
// equal to it.
void scores_of_ranks(std::span<const std::int32_t> twice_ranks, std::size_t n,
                     std::vector<float>& scores);
[[nodiscard]] double mean_of(std::span<const float> scores);  // 0 of none
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

// --- the search ----------------------------------------------------------------------------------

// Places of first changed points, ascending.
using Places = std::vector<std::size_t>;

// Looks after each of the points [begin, end), each with chance `p` of a first false change. A
// segment starts behind the last of `known` (all of them before `begin`), or at 0; what is found
// starts one of its own and is put behind `known`. `told` is what is known of the series' memory
// from elsewhere.
void look_nightly(std::span<const Order> orders, std::size_t begin, std::size_t end, double p,
                  Places& known, const Memory& told = {});

// Looks once at the points in front of `end`, with chance `p` of a false change in each segment
// between `known` changes (all before `end`): those that are found, with the known ones.
[[nodiscard]] Places look_once(std::span<const Order> orders, std::size_t end, double p,
                               const Places& known, const Memory& told = {});

struct Found {
  std::size_t place = 0;
  double distance = 0;     // of the two sides, up to the changes before and behind
  std::size_t points = 0;  // how many these are
  bool up = false;         // the later side is the higher one
};
// Moves each place to where its two sides differ most, and takes back what the points behind it
// have refuted: what is hardly more than noise by now, looked at alone. `memory` is what is told of
// it, and becomes what is left when all levels are taken out.
[[nodiscard]] std::vector<Found> settled(std::span<const Order> orders, Places places,
                                         Memory& memory);

// --- the shape -----------------------------------------------------------------------------------

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
