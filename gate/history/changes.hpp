// Where the series of a history changed: steps and drifts (stats/changes.hpp), and where what they
// were measured on became another machine or device. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gate/history/order.hpp"

namespace weir::history {

enum class SeriesChangeKind { step, drift, device_class };
// "step", "drift", "class"
[[nodiscard]] std::string_view to_string(SeriesChangeKind kind);

struct SeriesChange {
  std::size_t series = 0;  // of History::series
  SeriesChangeKind kind = SeriesChangeKind::step;
  std::size_t index = 0;         // 0-based place of the first changed point; never 0
  std::size_t end = 0;           // drift: one past the last point that still moved; else index
  double before = 0, after = 0;  // levels, in the metric's unit
  double size = 0;               // after / before - 1; after - before where it is not `relative`
  std::optional<double> low,
      high;  // of the size; absent where a class changed and no step is clear
  bool relative = true;
  double confidence = 0;  // as stats/changes.hpp has it; 0 where a class changed alone
  // What it was measured on became another one, there or within two points of it.
  std::optional<ClassChange> new_class;
  // Whether this is for the worse; nothing where the metric has no direction.
  std::optional<bool> worse;
  std::optional<Acknowledgement> known;  // somebody said so
};

// Its values are counts that agreed: another value is another count, at once.
[[nodiscard]] bool is_exact(const Series& series);

struct ChangesWanted {
  double false_alarm = 0.01;  // of each series that has not changed: stats::ChangePolicy
  bool any_series = false;    // of all series together
};

// `history` is in order (put_in_order). `first_looks`: by series, how many points there were at the
// first look; none given: this look is the only one. Counts that agreed are compared exactly; what
// is only nearly exact, and times, by statistics. By series, then index. Code::internal where
// first_looks has another length.
[[nodiscard]] Result<std::vector<SeriesChange>> changes_of(
    const History& history, std::span<const std::int64_t> first_looks,
    std::span<const Acknowledgement> acknowledged, const ChangesWanted& wanted);

// An acknowledgement of this change, without its words.
[[nodiscard]] Acknowledgement acknowledgement_of(const History& history,
                                                 const SeriesChange& change);

}  // namespace weir::history
