// Shards: a matrix planned for several machines (weir plan), one of its parts measured (--shard),
// and the parts' runs joined (weir merge).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "gate/config/matrix.hpp"
#include "gate/flow/configure.hpp"
#include "gate/run/merge.hpp"

namespace weir::flow {
// How long a cell's processes took on average, as a run has them; 0: it had none.
struct KnownTimes {
  double counted = 0, timed = 0;
};
[[nodiscard]] std::map<std::string, KnownTimes> known_times(const run::RunFile& run);

// Leaves `loaded` the cells of one shard. "3/16"; `plan_file` was written by weir plan, "" makes
// the plan again from the configuration alone, as weir plan --guess does. Code::usage where the two
// do not fit each other.
[[nodiscard]] Result<run::ShardFacts> choose_shard(Loaded& loaded, const std::string& shard,
                                                   const std::string& plan_file, bool times,
                                                   const sys::Files& files);

// What a shard may spend of the gate's false_alarm: its share of the cells. Together they promise
// what the whole gate does, whatever each of them sees.
[[nodiscard]] double false_alarm_of(const run::ShardFacts& facts, double false_alarm);

struct ShardPlanOptions {
  std::size_t shards = 1;
  std::string format = "text";
  std::string plan = "weir-plan.json";
  std::vector<std::string> runs;
  bool guess = false;
};
// weir plan: what is printed, and a file of the plan.
[[nodiscard]] Result<Answer> plan(const Job& job, const ShardPlanOptions& options);

struct MergeOptions {
  std::vector<std::string> runs;
  bool partial = false;
};
// weir merge: the runs of all shards joined into one.
[[nodiscard]] Result<Answer> merge(const Job& job, const MergeOptions& options);

}  // namespace weir::flow
