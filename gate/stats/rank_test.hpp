// Compares two small sets of counts, one number a process: did the second move, or is it chance?
//
// If both sets are of one program, every split of the pooled values into sets of these sizes is
// equally likely, whatever their distribution and however many are equal. The rank sum of the
// candidate (Wilcoxon 1945; equal values share their mean rank) is compared with that of all
// splits. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace weir::stats {

// The chance, over all splits of the pooled values, of a rank sum of `candidate` as high as this or
// higher. Exact up to 60 values in all; beyond, by the normal distribution. 1 if a set is empty.
[[nodiscard]] double chance_of_higher_ranks(std::span<const double> base,
                                            std::span<const double> candidate);

struct RankPolicy {
  double false_alarm = 0.004;  // in each direction; 5 against 5 values can reach it: 1 in 252
  double missed = 0.05;        // chance that a change by change_to_find() shows as `none`
  // A candidate whose every value lies so many widths of the base's range beyond it has moved,
  // however few values there are, and one with such a value is not the same. The width is at least
  // 1.
  double far_widths = 10;
};

enum class Shift { rose, fell, none, undecided };

struct SetComparison {
  Shift shift = Shift::undecided;
  double chance = 1;           // of a rise or fall as clear between two sets of one program
  std::size_t far_values = 0;  // of an undecided candidate: beyond far_widths, the watched way
};

// The change of all values that `none` excludes: a third of the base's range, at least 1.
[[nodiscard]] double change_to_find(std::span<const double> base);

// `watches_rise`: none says that no rise by change_to_find() took place; else no fall. A far set
// needs three values of the base, which may be all equal.
[[nodiscard]] SetComparison compare_sets(std::span<const double> base,
                                         std::span<const double> candidate, bool watches_rise,
                                         const RankPolicy& policy = {});

// The fewest values of a set that can be told from `others` values at this level.
[[nodiscard]] std::size_t fewest_values(std::size_t others, double level);

// About how many values a side would decide, if more of them are like those that are there: of both
// sides, or of the candidate alone. Absent above 100.
[[nodiscard]] std::optional<std::size_t> values_to_decide(std::span<const double> base,
                                                          std::span<const double> candidate,
                                                          bool watches_rise, bool repeats_base,
                                                          const RankPolicy& policy = {});

}  // namespace weir::stats
