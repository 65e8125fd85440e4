// A plan of shards for people, for GitHub's matrix and for Slurm. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace weir::report {

struct ShardsText {
  struct Shard {
    std::vector<std::string> runner;  // labels; empty: any
    std::vector<std::string> cells;   // as they are shown
    double seconds = 0;
  };
  std::vector<Shard> shards;
  std::string plan_file, config, out;
  std::vector<std::string> cells;  // --cell, which the shards need as well
  bool counts_only = false;
  std::size_t cells_in_all = 0;
  std::size_t cells_with_known_time = 0;  // their time is known from runs
};

// Number, runner, cells and minutes of each shard, and how even they are.
[[nodiscard]] std::string shards_text(const ShardsText& plan, std::size_t width);

// {"include": [{"shard": "1/16", "runner": ["ubuntu-latest"], "cells": 12, "minutes": 3}, …]}: one
// line, for fromJSON() in a job's strategy.matrix. Shards that any machine can measure get
// "ubuntu-latest".
[[nodiscard]] std::string shards_for_github(const ShardsText& plan);

// A script for sbatch: an array job of one task a shard, which goes on with what it had when it is
// requeued. Runners become --constraint; an array has one for all, so where shards differ the text
// says how to plan them apart.
[[nodiscard]] std::string shards_for_slurm(const ShardsText& plan);

}  // namespace weir::report
