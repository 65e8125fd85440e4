// Ramps: a series that stays level, moves along a straight line, and stays level again. A step is
// a ramp of one point. Least squares over every begin and end. Inside stats. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace weir::stats {

struct Ramp {
  std::size_t begin = 0;  // first point that moved, at least 1
  std::size_t end = 0;    // one past the last point that moved; a step: begin + 1
  double before = 0, after = 0;
  double squares = 0;   // sum of the squared distances of all points
  double variance = 0;  // of the height after - before, over that of a point

  [[nodiscard]] double height() const { return after - before; }
  [[nodiscard]] bool is_step() const { return end == begin + 1; }
  [[nodiscard]] double at(std::size_t i) const {
    if (i < begin) return before;
    if (i >= end) return after;
    return before +
           height() * static_cast<double>(i - begin + 1) / static_cast<double>(end - begin);
  }
};

// The ramps of one series, all at once. A series of n points has n²/2 of them.
class Ramps {
 public:
  explicit Ramps(std::span<const double> values);

  // The ramp with this place that fits best. 1 <= begin < end <= number of values.
  [[nodiscard]] Ramp fit(std::size_t begin, std::size_t end) const;
  // The ramp that fits best of all. Needs two values.
  [[nodiscard]] Ramp best() const;
  // The heights of all ramps that explain the values nearly as well as the best one, `likeliest`:
  // their squared distances are at most `slack` more. Profile likelihood: Venzon, Moolgavkar,
  // Applied Statistics 37, 1988.
  [[nodiscard]] std::pair<double, double> heights(const Ramp& likeliest, double slack) const;

 private:
  std::size_t size_, stride_ = 1;
  double first_ = 0;                     // taken from each value
  std::vector<double> sums_, products_;  // of values, and of places times values
  double total_ = 0;                     // sum of squares around the mean
};

}  // namespace weir::stats
