// Shards of one plan, joined into the run that one machine would have written: the same cells, in
// the plan's order. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "gate/run/journal.hpp"

namespace weir::run {

// The part of a plan that a run has measured.
struct ShardFacts {
  std::size_t index = 0;                         // 1 … shards.size()
  std::string plan;                              // a hash, the same for all shards
  std::vector<std::string> cells;                // all cells of the plan, in order
  std::vector<std::vector<std::size_t>> shards;  // places in `cells`, each in exactly one, rising

  [[nodiscard]] std::string name() const;                                    // "3/16"
  [[nodiscard]] std::vector<std::string> cells_of(std::size_t shard) const;  // 1 … shards.size()
};
[[nodiscard]] Json to_json(const ShardFacts& facts);
// Nothing where `extra`, of a run's header, says nothing; Code::data where it makes no sense.
[[nodiscard]] Result<std::optional<ShardFacts>> parse_shard_facts(const Json& extra);

// A shard that was read, and what it is called in errors.
struct ShardRun {
  std::string name;
  RunFile run;
};
// A header with whose extra parse_parse_shard_facts() answers the shards it was joined from has
// index 0.
//
// Whole journal text (header and records): byte for byte the same in whatever order the shards
// come. Code::usage, naming runs and cells, where one is missing, comes twice, belongs to another
// plan or was measured with another weir, configuration or program. `partial`: cells of missing
// shards are there as cells that could not be measured.
[[nodiscard]] Result<std::string> merge(std::vector<ShardRun> shards, bool partial = false);

}  // namespace weir::run
