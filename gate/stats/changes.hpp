// Change points: where in a series of nights a metric changed, by how much, and how sure that is.
//
// Times are noisy: they spike, remember yesterday, and are not normal. So levels are compared by
// ranks (normal scores), which makes the chance of a false change the same for every distribution;
// what a series remembers from night to night is estimated and widens what counts as noise. Every
// night is a look, and every look may be wrong: the threshold is that of a whole year of looks.
// How often it errs, on which noise, and how soon it finds what: docs/change-points.md. Pure; no
// state: a series gives the same changes whoever asks, and more points at its end change nothing
// that the looks before them found, except that its place, size and kind get clearer and that what
// later points refute is taken back.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
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
  std::size_t index = 0;         // 0-based place of the first changed point; never 0
  std::size_t end = 0;           // step: index; drift: one past the last point that still moved
  double before = 0, after = 0;  // levels, in the unit of the values; drift: at its two ends
  // Relative: after / before - 1; absolute, after - before, where `relative` is off (some value of
  // the series is 0 or below, or of a count `before` is 0).
  double size = 0;
  double low = 0, high = 0;  // of the size; low <= size <= high
  bool relative = true;
  // 1 - the chance that a year of looks at a series without change, or the first look at it, shows
  // something as clear as this. Counts: 1.
  double confidence = 0;
};

// Between changes. A level that holds has first == last.
struct Level {
  std::size_t begin = 0, end = 0;  // points [begin, end); the levels of a series cover it all
  double first = 0, last = 0;      // at the two ends, in the unit of the values
};

struct Changes {
  std::vector<Change> changes;  // by index
  std::vector<Level> levels;
  double memory = 0;  // correlation of a point with the one before that was reckoned with, 0…1
};

inline constexpr std::size_t k_one_look = std::numeric_limits<std::size_t>::max();

struct ChangePolicy {
  // Chance that something is seen in a series in which nothing changed: at the first look, and
  // again in every 365 later looks. 0 < false_alarm < 1.
  double false_alarm = 0.01;
  // That chance is shared by so many series: any of them, not each. At least 1.
  std::size_t series = 1;
  // So many points were there when the series was first looked at, all at once; every point behind
  // them is a look of its own. 0: it was looked at from its first night on. k_one_look: just once,
  // now, which needs less to be sure and finds changes sooner. A reader who looks every night and
  // calls each look the only one errs far more often than false_alarm says.
  std::size_t first_look = 0;
  // Correlation of a night with the one before, 0 … 0.95, where it is known, say from many series
  // of one machine. Absent: estimated, which takes some hundred nights to be sure that there is
  // none. The promise about false_alarm is only as good as this number.
  std::optional<double> memory = std::nullopt;
  double interval_level = 0.05;  // low … high miss the size with this chance; 0 < … < 1
};

// Of times, rates and the like, in the order of their commits. `days`: when each was taken, in
// days, not falling; empty where nights are equally far apart. Only a drift's shape depends on
// them. Code::data where a number is not finite or `days` has another length or falls;
// Code::internal for a policy outside its ranges.
//
// Nothing is seen before 8 points, nor until 5 have followed a change. About 150 ns a point and
// look; memory for a few numbers a point.
[[nodiscard]] Result<Changes> find_changes(std::span<const double> values,
                                           std::span<const double> days,
                                           const ChangePolicy& policy);

// Of counts, which do not vary: every value that differs from the one before is a step of its own,
// and one that flips back is another. Code::data where a number is not finite.
[[nodiscard]] Result<Changes> count_changes(std::span<const double> values);

}  // namespace weir::stats
