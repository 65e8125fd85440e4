// Change points: where in a series of nights a metric changed, by how much, and how sure that is.
//
// Each night is compared with the prediction of the nights before it (trend_rule.hpp). Error rates
// and delays on several kinds of noise: docs/evidence/change-points.md. Pure; no state: a series
// always gives the same changes. More points at its end add changes and take none back. For
// 16 nights after a change was found, its kind and place may still be corrected, or it may turn out
// to be the end of the one before.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "gate/base/result.hpp"

namespace weir::stats {

enum class ChangeKind {
  step,   // from one point to the next
  drift,  // little by little, over `end - index` points
};

struct Change {
  ChangeKind kind = ChangeKind::step;
  std::size_t index = 0;  // 0-based place of the first changed point; never 0
  std::size_t end = 0;    // step: index; drift: one past the last point that still moved
  // Step: the first changed point is one of [earliest, latest], as sure as low … high. Drift:
  // index.
  std::size_t earliest = 0, latest = 0;
  std::size_t found_at = 0;  // the night that found it
  bool settled = false;      // its kind and place change no more
  // Levels, in the unit of the values. Drift: at its two ends, as if no step were on it.
  double before = 0, after = 0;
  // Relative: after / before - 1; absolute, after - before, where `relative` is off (some value of
  // the series is 0 or below, or of a count `before` is 0).
  double size = 0;
  double low = 0, high = 0;  // an interval for the size; low <= size <= high
  bool relative = true;
  // 1 - the share of series without a change that show something as clear in a year of nights
  // (simulated: yearly_false_alarms). Counts: 1.
  double confidence = 0;
};

// A stretch between changes. A level that does not move has first == last.
struct Level {
  std::size_t begin = 0, end = 0;  // points [begin, end); the levels of a series cover it all
  double first = 0, last = 0;      // at the two ends, in the unit of the values
};

struct Changes {
  std::vector<Change> changes;  // by index
  std::vector<Level> levels;
};

struct ChangePolicy {
  // Added to every threshold, in standard deviations: below 0 finds changes sooner, and more that
  // are none. yearly_false_alarms() says how many. -2 … 4.
  double offset = 0;
  double interval_level = 0.05;  // low … high miss the size with this chance; 0 < … < 1
};

// The amount that each step of a sensitivity from 0 to 4 adds to ChangePolicy::offset.
inline constexpr double k_offset_of_sensitivity = -0.2;

// The share of series without a change that show one in 365 nights. Simulated on normal,
// independent noise between -0.8 and 0, and continued on a logarithmic scale beyond. Falls with
// `offset`.
[[nodiscard]] double yearly_false_alarms(double offset);
// The offset that has this share, 0 < … < 1.
[[nodiscard]] double offset_for(double yearly_false_alarms);

// A series as find_changes takes it: logarithms if all values are above 0, else divided by a scale.
// The first points fix the scale, so that later ones change nothing that was found.
struct Scaled {
  std::vector<double> values;
  bool relative = false;  // they are logarithms
  double scale = 1;       // the divisor of the values; above 0
};
[[nodiscard]] Scaled scaled(std::span<const double> values);

// Finds the changes of times, rates and the like, in the order of their commits, one value a night.
// Code::data if a number is not finite; Code::internal for a policy outside its ranges.
//
// A step is looked for from the 12th point on, a drift from the 20th. About 7 us a point.
[[nodiscard]] Result<Changes> find_changes(std::span<const double> values,
                                           const ChangePolicy& policy = {});

// Finds the changes of counts, which do not vary: every value that differs from the one before is a
// step, and one that flips back is another. Code::data if a number is not finite.
[[nodiscard]] Result<Changes> count_changes(std::span<const double> values);

}  // namespace weir::stats
