// How well a machine can hold timed limits (weir.calibration/1): pairs of one program with itself
// over the configured cells, and replays of these pairs as gates to come. Pure.
#pragma once

#include "gate/stats/paired.hpp"
#include "gate/verdict/verdict.hpp"

namespace weir::verdict {

// Over replays, each of as many pairs as it takes, up to CalibratedCell::max_pairs.
struct PairsNeeded {
  double mean = 0, p95 = 0;
  double decided = 1;  // share of replays that passed or failed
};
// Below this a series says too little to be replayed.
inline constexpr std::int64_t k_min_replays = 16;

struct CalibratedMetric {
  unit::Metric metric;
  std::string limit;               // "may drop 5 %"
  std::string amount, tolerated;   // "5 %", "2.5 %"
  double tolerate = 0, worst = 0;  // the rule's, as effects; `worst` is its limit
  // The noise of the log ratio of a pair (stats::pair_noise). 0.05: about 5 %; may be
  // infinite.
  double noise = 0;
  std::optional<RunSpread> base, candidate;  // in the metric's unit
  // The verdict of the calibration's own pairs, and its evidence (log maxima, natural).
  stats::Decision decision = stats::Decision::undecided;
  std::int64_t decided_after = 0;
  double log_slower = 0, log_beyond = 0, log_within = 0;
};

struct CalibratedCell {
  profile::CellKey cell;
  std::string fingerprint, machine_class, machine_name;
  std::string date;  // "2026-11-20", UTC
  std::int64_t pairs = 0;
  double pair_seconds = 0;                // both processes
  std::vector<CalibratedMetric> metrics;  // metrics with a timed limit that gates
  PairsNeeded unchanged, at_limit;        // until all of them are decided
  std::int64_t max_pairs = 0;        // pairs of a replay: twice what the budget pays, within reason
  std::optional<std::string> error;  // then nothing but the names is there
  // True if this cell alone ends within the budget, in 95 of 100 replays of either kind.
  bool keeps_budget = false;

  // The larger of both means: what a verdict takes, typically.
  [[nodiscard]] double typical_pairs() const;
};

struct GateSeconds {
  double mean = 0, p95 = 0;
};

struct CalibrationFacts {
  std::string weir_version, date, config;
  std::string base;             // the program that the candidate was compared with, in words
  bool two_builds = false;      // false: one program was compared with itself
  double budget_seconds = 0;    // gate.budget, which the answer is about
  std::int64_t replays = 1000;  // replayed gates, all cells together; at least 1
  std::uint64_t seed = 1;
};

// `replays` are those that were made: few where some cell is hopelessly loud.
struct Calibration : CalibrationFacts {
  std::int64_t timed_metrics = 0;
  double false_alarm = 0;
  std::vector<CalibratedCell> cells;  // cells with timed limits, in plan order
  std::int64_t failed = 0;            // with nothing changed
  double max_failed_share = 0;        // share, at 95 % confidence
  std::int64_t measured_failed = 0;   // with the two builds as different as they were seen
  GateSeconds unchanged, at_limit;    // per gate; at_limit: every cell as slow as its limit
  bool keeps_budget = false;          // within budget_seconds in 95 of 100 replays of either kind
  std::string answer;                 // the plain sentence
  std::vector<std::string> notes;
};

// cells[i] are the facts of runs[i]. The line over a prompt's depths (over_depth.hpp) is not
// replayed, and noted. Cells without a timed limit that gates are left out. Takes a
// second or so for each loud cell.
[[nodiscard]] Calibration calibrate(const CalibrationFacts& facts,
                                    std::span<const profile::CellFacts> cells,
                                    std::span<const profile::PairedRuns> runs,
                                    const LimitTable& limits, Policy policy);

[[nodiscard]] Json to_json(const Calibration& calibration);
// One cell, as it stands in "cells" and is stored for later gates (weir.calibrated_cell/1).
void fields(Fields& io, CalibratedCell& cell);
[[nodiscard]] Result<CalibratedCell> calibrated_cell_from_json(const Json& json);

// Returns true if the limits that it was made for are still those of its cell, and all gate.
[[nodiscard]] bool still_holds(const CalibratedCell& cell, const LimitTable& limits);
// "calibrated 2026-11-20 on this machine: 5 % takes about 34 pairs, 2 m 6 s".
[[nodiscard]] std::string words(const CalibratedCell& cell);

}  // namespace weir::verdict
