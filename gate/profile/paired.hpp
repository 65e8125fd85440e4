// A cell's timed processes of two programs that ran next to each other, as pairs. Pure.
//
// No pair is dropped by how it ended: a process that timed out, or the one crash that is forgiven,
// is a number that is absent here and counts as infinitely slow. A pair whose second process never
// ran (the run was interrupted there) is not a pair yet.
#pragma once

#include "gate/profile/assemble.hpp"

namespace weir::profile {

struct NumberPair {
  std::optional<double> base, candidate;  // in the metric's base unit; absent: did not end well
  bool base_first = false;
};

struct PairedMetric {
  unit::Metric metric;
  std::string source;
  NumberPair warm_up;  // not measured; what was known before the first pair
  std::vector<NumberPair> pairs;
  // For numbers that may be negative (a slope): about their size, > 0, known before the first pair.
  std::optional<double> line_unit{};
  // Added to both numbers before they are compared, one for each token. Only for counts that may be
  // 0, where a few more or less mean nothing. Known before the first pair.
  double added = 0;
};

struct PairedRuns {
  bool warm = false;  // both warm-ups have ended, well or not
  // Sides whose last warm-up failed. It may be tried once more (as pair 0 again).
  std::vector<Side> warm_up_failed;
  std::vector<PairedMetric> metrics;  // metrics that both warm-ups reported, by name
  // Metrics that the base's warm-up reported and the candidate's, which ended well, did not; by
  // name, without pairs.
  std::vector<PairedMetric> missing;
  std::int64_t pairs = 0;  // complete ones
  double seconds = 0;      // wall time of all of it, warm-ups included
  // Why pairs of this cell cannot be compared: two crashes of one side (the warm-up's included),
  // three time-outs of one side and none of the other, six in all, a warm-up that failed twice.
  std::optional<std::string> error;
  std::string stderr_tail;  // output of the process with that error
  // Work that all runs of the base state alike, and what the candidate's state of it: the first
  // that differs from the base, if one does. An output is absent where the candidate's differ.
  WorkDone base_work, candidate_work;
  std::vector<std::string> warnings;
  // Events on the machine that explain why some processes took far longer than others of their
  // side.
  std::vector<std::string> notes;
};

// Wall time that records of one cell's pairs took: one after the other, or, where both of a pair
// were up at the same time, from the first one's start to the end of both.
[[nodiscard]] double total_wall_seconds(std::span<const RunRecord* const> records);

[[nodiscard]] PairedRuns paired_runs(const CellFacts& facts, std::span<const RunRecord> records);

}  // namespace weir::profile
