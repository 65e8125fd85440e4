// weir baseline accept: stores baselines from a new count, from a run, or from a downloaded run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gate/config/redactor.hpp"
#include "gate/flow/accepted_changes.hpp"
#include "gate/flow/job.hpp"
#include "gate/flow/repository.hpp"
#include "gate/flow/stored_baselines.hpp"

namespace weir::flow {
struct AcceptOptions {
  std::string run;
  std::vector<std::string> metrics;
  std::string reason;                     // stored with each change; "": none
  std::optional<std::int64_t> processes;  // that count each cell; absent: 3
  std::optional<std::string> baselines_ref, artifact;
  std::optional<std::int64_t> waivers;  // accept those of this pull request
  std::string waivers_ref = "perf-baselines";
};

// Makes the measured values of the selected cells their baselines.
[[nodiscard]] Result<Answer> accept(const Job& job, const AcceptOptions& options);

// Makes the changes that were waived for a merged pull request (options.waivers) the baseline.
// Exit 3 if a waived change cannot be stored: a time, or a count whose stored value differs by
// now. When it stores on the branch of the waivers, it removes their file. In waivers.cpp.
[[nodiscard]] Result<Answer> accept_waived(const Job& job, const AcceptOptions& options);

// The result of storing, as text and as JSON, once it is on the disk or on the branch.
struct Acceptance {
  std::string text;
  Json cells = Json::array();
  std::size_t accepted = 0, left_out = 0;
  std::vector<std::string> names;  // cells whose files changed
  LargestChange largest;           // of all of them
};
// Gives the commit its message, and may change more files with it or refuse it; `parent` is absent
// where the branch is new.
using FinishEdit =
    std::function<Result<void>(const std::string& branch, const std::optional<std::string>& parent,
                               const Acceptance&, BranchEdit&)>;
// Stores by `store`: in the folder --baselines, or on `branch` (BRANCH[:PATH]). If somebody else
// moves the branch meanwhile, `store` is called again with the new files.
[[nodiscard]] Result<Acceptance> store_baselines(
    const Job& job, const std::optional<std::string>& branch,
    const std::function<Result<Acceptance>(StoredBaselines&)>& store, const FinishEdit& finish);
// Returns weir.accepted/1; the exit code is `unmeasured` if something was left out.
[[nodiscard]] Answer acceptance_answer(Acceptance acceptance, const std::string& summary);

}  // namespace weir::flow
