// Files written onto a local branch as one commit, without touching any work tree.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "gate/app/repository.hpp"

namespace weir::app {

// Where a branch stands, or would begin: at what was fetched of it, where there is no local one.
struct BranchStart {
  std::optional<std::string> parent;  // none: a history of its own begins
  std::optional<std::string> old;     // the local branch's tip
};
// Code::usage where it is no branch's name, or a work tree has it checked out: its files would
// seem to be changed back.
[[nodiscard]] Result<BranchStart> start_of(const Repository& repository, const std::string& branch);

struct BranchEdit {
  source::Git::Changes changes;  // paths from the top
  std::string message;
};
// Asks `edit` what to change in `parent`'s files, and commits that; asks again where somebody else
// moved the branch meanwhile, a few times. Answers the commit; "" where nothing changed.
[[nodiscard]] Result<std::string> edit_branch(
    const Repository& repository, const std::string& branch,
    const std::function<Result<BranchEdit>(const std::optional<std::string>& parent)>& edit);

// What was written where, and the command that publishes it.
[[nodiscard]] std::string written_words(const std::string& branch, const std::string& commit);

}  // namespace weir::app
