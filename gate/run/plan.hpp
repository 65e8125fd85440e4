// The steps of a run, in order: which cell, which pass, with which arguments. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gate/run/prepare.hpp"

namespace weir::run {

struct PlanOptions {
  bool counts = true;
  bool times = true;
  std::optional<std::int64_t> runs = std::nullopt;  // timed processes a cell; absent: gate.runs
  // Timed processes run in pairs beside a base program, as many as it takes: none are planned.
  bool pairs = false;
  // Processes for each point of the counted pass: 3 when a baseline is to be accepted. Absent: 1,
  // or as many as `varying_cells` says.
  std::optional<std::int64_t> counted_processes = std::nullopt;
  // By cell name: processes that a count needs that varies in the stored baseline.
  std::map<std::string, std::int64_t> varying_cells = {};
  // The same where a server's requests overlap, 10 when a baseline is to be accepted. The median
  // counts: a machine that stands still in one run must not fail a gate.
  std::int64_t overlapping_processes = 3;
  // The same for instructions, 10 when a baseline is to be accepted: how far they lie apart is the
  // repeatability that later counts are judged by. 0: they are left out.
  std::int64_t instruction_processes = 1;
  // Pairs of timed processes, with probes and without, that show what these cost.
  std::int64_t cost_pairs = 0;
  // By cell name: the lengths of the stored baseline's counted pass, where there is one.
  std::map<std::string, std::vector<std::int64_t>> lengths = {};
};

struct Step {
  std::size_t cell = 0;  // index into Plan::cells
  profile::Pass pass = profile::Pass::timed;
  profile::RunParameters parameters;
  profile::Counts counts = profile::Counts::device;  // as in RunRecord
  std::int64_t twin_fill = 0;                        // as RunRecord::twin_fill
  // RunRecord::order; equals the step's place in Plan::steps, and goes on from there in steps that
  // were added while the run went on.
  std::int64_t order = 0;
  profile::Side side = profile::Side::candidate;
  std::optional<std::int64_t> pair = std::nullopt;  // as RunRecord::pair
  std::optional<bool> with_probes = std::nullopt;   // as in RunRecord
  std::size_t result = 0;                           // index into the cell's result files

  // Counted apart: no device probe's counts are taken, and what the engine's own profiler takes is
  // off.
  [[nodiscard]] bool is_counted_apart() const { return counts != profile::Counts::device; }

  friend bool operator==(const Step&, const Step&) = default;
};

struct Plan {
  std::vector<PreparedCell> cells;
  // The same cells with the base program (`--against`); empty without one.
  std::vector<PreparedCell> base_cells{};
  // Counted steps first, cell by cell; then timed ones in rounds over the cells, so that a slow
  // minute of the machine meets all of them.
  std::vector<Step> steps;
  std::int64_t overlapping_processes = 1;  // as PlanOptions
  // Parts that must be unchanged for a run to be resumed: part -> short hash ("limits", "programs",
  // "cells", "metrics", "options").
  std::map<std::string, std::string> identity;

  [[nodiscard]] std::string id() const;  // hash of `identity`
  [[nodiscard]] const PreparedCell& cell_of(const Step& step) const {
    return (step.side == profile::Side::base ? base_cells : cells)[step.cell];
  }
};

// Cells without anything to run (unavailable ones) have no steps. counts_skip_reason leaves out the
// counted steps of a cell; where no timed ones follow one is left if the engine may say by it that
// its work did not run on the cell's device.
[[nodiscard]] Plan make_plan(std::vector<PreparedCell> cells, const config::Settings& settings,
                             const PlanOptions& options, std::vector<PreparedCell> base_cells = {});

// Fails with Code::usage naming what differs between a run that was begun and what is now wanted.
[[nodiscard]] Result<void> check_same_plan(const std::map<std::string, std::string>& begun,
                                           const std::map<std::string, std::string>& wanted);

}  // namespace weir::run
