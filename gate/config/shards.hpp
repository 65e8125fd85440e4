// A matrix split for several machines, so that all are done at about the same time. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "gate/config/matrix.hpp"

namespace weir::config {

struct Shard {
  std::vector<std::string>
      runner;  // what a machine must offer ("runner" of the backend); may be empty
  std::vector<std::size_t> cells;  // places in the matrix, rising; never empty
  double seconds = 0;              // what they take, by the weights
};

// At most `count` shards (>= 1), fewer where there are not as many things to split: the depths of
// one list stay together, for the line over them. `seconds` (> 0) are of each cell. Longest first,
// each to the shard that has least: none takes longer than its runners' mean by more than one cell.
// The same for the same input. Code::usage where there are more kinds of runners than shards.
[[nodiscard]] Result<std::vector<Shard>> make_shards(std::span<const Cell> cells,
                                                     std::span<const double> seconds,
                                                     std::size_t count);

// A guess of what one process of a cell takes where nothing is known, in seconds of an ordinary
// machine and a small model: good enough to balance cells of one kind, and told as a guess.
[[nodiscard]] double guessed_seconds(const Cell& cell, const profile::Asked& asked);

}  // namespace weir::config
