// Evidence that one program is slower than another, from pairs of runs whose order a coin decided.
//
// x = ln(time), lower is better. With `Scale::linear`, x may be negative, in units of its size, and
// `null` multiplies: candidate <= e^null * base.
//
// Evidence is the wealth of a gambler who starts with 1 and bets on the next pair again and again:
// a product of factors F(lo, hi). Each factor is chosen before the pair was run, with
//   F(x, y) + F(y, x) = 2,   F not rising in lo, not falling in hi.
// If in each slot of a pair the candidate is at most `null` slower than the base (side larger; at
// least, side smaller), the coin makes its expectation at most 1 at every stop. Then P(it ever
// reaches 1/a) <= a (Ville). Nothing else is assumed: not independence, not a distribution, not a
// quiet machine. After: Ramdas, Ruf, Larsson, Koolen, arXiv 2009.03167.
//
// Two families of bets, averaged half and half:
//   pair    is fixed: the Cauchy likelihood ratio of the difference, made symmetric and held at its
//          maximum. Strong under drift.
//   density learns from earlier pairs where runs lie (their floor, their modes), as a density on a
//          grid; the ratio of that density shifted and not is made monotone before it bets.
//
// Pure; one thread an object.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace weir::stats {

// Logarithms of one number of each side (or, on a line, the numbers), of two processes run next to
// each other. +infinity: the run timed out. Never NaN, never -infinity.
struct Pair {
  double base = 0, candidate = 0;
};

enum class Side { larger, smaller };
enum class Scale { logarithmic, linear };

// The factors of one kind of `pair` bets.
//   difference = hi - lo, may be infinite; shift, scale > 0. In (0, 2).
[[nodiscard]] double pair_factor(double difference, double shift, double scale);

// The density of runs as one shift of the density bets has learned it. All values in units of the
// logarithm.
class RunDensity {
 public:
  // `gap` > 0 is the distance between the limits of the rule; `shift_cells` the shift in fifths of
  // it, 1 to 64.
  RunDensity(double gap, int shift_cells);

  // The factor for the next pair; 1 while nothing has been learned. In (0, 2).
  [[nodiscard]] double bet_factor(double lo, double hi) const;
  // Learns `lo` and `hi` and forgets nothing. Call after factor(), never before.
  void learn_pair(double lo, double hi);

  // Cells of a fifth of the gap, and so many more below them to look the shift up in.
  static constexpr int k_cells = 300, k_below = 64;

 private:
  [[nodiscard]] int cell_of(double value) const;
  // The best beginning of the grid: below the lowest value, or, if it is too short for all values,
  // such that most of them lie on it.
  [[nodiscard]] double best_start() const;
  void add(double lo, double hi);
  void add_at(int cell);

  double width_;
  int shift_;
  bool anchored_ = false;
  double start_ = 0;
  double lowest_ = 0;
  std::size_t searched_after_ = 0;  // pairs at the last search for the best start
  bool too_short_ = false;          // the grid did not hold all values at that time
  struct RunPair {
    double lo, hi;
  };
  std::vector<RunPair> run_pairs_;
  std::array<double, k_cells + k_below> density_{};
};

class Evidence {
 public:
  // Against: the candidate is at most (larger; at least: smaller) `null` slower. `gap` > 0;
  // `shifts` in gaps, each a whole number of fifths.
  Evidence(Side side, double null, double gap, std::span<const double> shifts,
           Scale scale = Scale::logarithmic);

  void add(const Pair& pair);

  // Natural logarithms: now, and its maximum so far (at least 0).
  [[nodiscard]] double log_value() const;
  [[nodiscard]] double max_log_value() const { return max_log_value_; }
  // The two halves alone.
  [[nodiscard]] double log_pair_bets() const;
  [[nodiscard]] double log_density_bets() const;

 private:
  struct PairBet {
    double shift, scale;
    double log_wealth = 0;
  };
  struct DensityBet {
    RunDensity density;
    double log_wealth = 0;
  };

  Side side_;
  double null_change_;
  Scale scale_;
  std::vector<PairBet> pair_bets_;
  std::vector<DensityBet> density_bets_;
  double max_log_value_ = 0;
};

}  // namespace weir::stats
