// Finds files that the base's cells name and that a pull request edits: models, prompts,
// descriptions of simulated GPUs, and what a command names besides its program.
//
// The first code of the repository that a command names is its program: it is what is measured, and
// a pull request may change it. Every other file that a word may mean is an input. A cell with
// another input measures another thing than the base does. docs/explanation/rules.md.
#pragma once

#include <optional>
#include <string>

#include "gate/config/rules.hpp"
#include "gate/flow/job.hpp"
#include "gate/source/git.hpp"

namespace weir::flow {

// The commit that is judged.
struct JudgedCommit {
  std::optional<std::string> commit;  // absent: the work tree
  std::string problem{};              // why it cannot be looked into; "": it can
};
// Returns what is judged. The head that an event names is taken before a run's word for its commit.
[[nodiscard]] Result<JudgedCommit> find_judged_commit(const Job& job, const source::Git& git);

// Lists files of a checkout that its commit does not show: tracked ones that were edited, and
// descriptions of simulated GPUs that git does not track. Paths from the top.
[[nodiscard]] Result<std::vector<std::string>> find_uncommitted(const Job& job,
                                                                const source::Git& git);

// Returns the edits of each cell of the base, by its name, against the rules' commit: in the work
// tree, or in the commit that a run of others was measured at.
[[nodiscard]] Result<config::FileEdits> find_input_edits(const Job& job,
                                                         const config::Matrix& base_cells,
                                                         const config::Digest& digest);

}  // namespace weir::flow
