// Shards: plans a matrix for several machines (weir plan), selects one part (--shard), and joins
// the runs of all parts (weir merge).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gate/config/matrix.hpp"
#include "gate/flow/configure.hpp"
#include "gate/run/merge.hpp"

namespace weir::flow {
// Mean seconds of a cell's processes in a run; 0 if it had none.
struct ProcessTimes {
  double counted = 0, timed = 0;
};
[[nodiscard]] std::map<std::string, ProcessTimes> process_times(const run::RunFile& run);

// Leaves the cells of one shard ("3/16") in `loaded`. `plan_file` was written by weir plan; ""
// makes the plan again from the configuration, like weir plan --guess. Code::usage if plan and
// configuration do not fit.
[[nodiscard]] Result<run::ShardFacts> choose_shard(LoadedConfig& loaded, const std::string& shard,
                                                   const std::string& plan_file, bool times,
                                                   const sys::Files& files);

// Returns a shard's part of the gate's false_alarm, by its share of the cells. Together the shards
// keep the promise of the whole gate.
[[nodiscard]] double shard_false_alarm(const run::ShardFacts& facts, double false_alarm);

struct ShardPlanOptions {
  std::size_t shards = 1;
  std::string format = "text";
  std::string plan = "weir-plan.json";
  std::vector<std::string> runs;
  bool guess = false;
  std::optional<std::string> rules_from;  // its commit names the runners
};
// weir plan: prints the plan and writes its file.
[[nodiscard]] Result<Answer> plan(const Job& job, const ShardPlanOptions& options);

struct MergeOptions {
  std::vector<std::string> runs;
  bool partial = false;
  std::optional<std::string> into;  // the joined run's folder, which has no run yet
};
// weir merge: joins the runs of all shards into one.
[[nodiscard]] Result<Answer> merge(const Job& job, const MergeOptions& options);

}  // namespace weir::flow
