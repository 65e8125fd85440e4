// What weir baseline accept stores: counted now, taken from a run, or from a downloaded one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gate/config/redactor.hpp"
#include "gate/flow/job.hpp"
#include "gate/flow/repository.hpp"
#include "gate/flow/stored_baselines.hpp"

namespace weir::flow {
struct AcceptOptions {
  std::string run;
  std::vector<std::string> metrics;
  std::string reason;  // stored with what changed; "": none
  std::optional<std::string> baselines_ref, artifact;
  std::optional<std::int64_t> allowances;  // of this pull request
  std::string allowances_ref = "perf-baselines";
};

// weir baseline accept: what was measured becomes the baseline.
[[nodiscard]] Result<Answer> accept(const Job& job, const AcceptOptions& options);

// With options.allowances: what a merged pull request was allowed becomes the baseline. Exit 3
// where something that was allowed could not be stored: a time, or a value that is stored as
// another by now. What is stored on the branch of the allowances takes their file away with it.
// In allowances.cpp.
[[nodiscard]] Result<Answer> accept_allowed(const Job& job, const AcceptOptions& options);

// What storing came to: in words, and as JSON, once it is on the disk or on the branch.
struct Acceptance {
  std::string said;
  Json cells = Json::array();
  std::size_t accepted = 0, left_out = 0;
  std::vector<std::string> names;  // of cells whose files changed
};
// Gives the commit its message, and may change more files with it or refuse it; `parent` is absent
// where the branch is new.
using FinishEdit =
    std::function<Result<void>(const std::string& branch, const std::optional<std::string>& parent,
                               const Acceptance&, BranchEdit&)>;
// Stores by `store`: in the folder --baselines, or onto `branch` (BRANCH[:PATH]), whose files are
// read again where somebody else was faster.
[[nodiscard]] Result<Acceptance> store_baselines(
    const Job& job, const std::optional<std::string>& branch,
    const std::function<Result<Acceptance>(StoredBaselines&)>& store, const FinishEdit& finish);
// weir.accepted/1; the exit code says whether all was stored.
[[nodiscard]] Answer answer_of(Acceptance acceptance, const std::string& summary);

}  // namespace weir::flow
