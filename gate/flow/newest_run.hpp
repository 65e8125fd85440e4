// Finds the run that a verb takes when none is named, and tells what git tracks of runs and
// results.
#pragma once

#include <string>

#include "gate/flow/job.hpp"

namespace weir::flow {

// Returns the run below the job's --out that began last, by its journal. Leaves out, with a
// message, runs that git tracks and runs that begin in the future: whoever wrote them chose when
// they began. Code::usage if there is none; fails too if a journal, or git, cannot be read.
[[nodiscard]] Result<std::string> newest_run(const Job& job);
// Returns true if git tracks a file, where it lies or where links lead to it. Fails if git cannot
// tell.
[[nodiscard]] Result<bool> is_tracked(const Job& job, const std::string& file);
// Fails with Code::config if a link that git tracks leads to --out: whoever committed it would
// choose where runs are written.
[[nodiscard]] Result<void> check_runs_folder(const Job& job);

}  // namespace weir::flow
