// Result files of other tools (weir gate --results): which there are, and which cells they measure.
#pragma once

#include <string>
#include <vector>

#include "gate/flow/configure.hpp"
#include "gate/run/plan.hpp"

namespace weir::flow {

// Replaces each folder by the results in it and in folders below it, in the order of their names.
[[nodiscard]] Result<std::vector<std::string>> list_results(const std::vector<std::string>& paths,
                                                            const Job& job);

// Fails with Code::usage if git tracks one of the files: whoever committed it measured it, and not
// this job.
[[nodiscard]] Result<void> check_own(const std::vector<std::string>& files, const Job& job);

// Returns a minimal weir.yaml for a result file, for use without a configuration.
[[nodiscard]] Result<std::string> make_results_config(const std::string& file, const Job& job);

// Leaves out cells that only result files can measure, with a note: a gate cannot start them.
void leave_out_results(LoadedConfig& loaded);

// Leaves only cells that take result files, and plans to read `files` in place of running them. An
// only cell takes all files; of several cells each takes those with a run of its load.
[[nodiscard]] Result<void> use_result_files(const std::vector<std::string>& files, const Job& job,
                                            LoadedConfig& loaded, run::PlanOptions& plan);

}  // namespace weir::flow
