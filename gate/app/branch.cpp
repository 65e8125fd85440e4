#include "gate/app/branch.hpp"

#include <thread>

#include "gate/base/text.hpp"

namespace weir::app {

Result<BranchStart> start_of(const Repository& repository, const std::string& branch) {
  const source::Git& git = repository.git();
  BranchStart start;
  WEIR_TRY(start.old, git.branch_tip(branch));
  start.parent = start.old;
  if (!start.parent) {
    WEIR_TRY(start.parent, git.commit("refs/remotes/origin/" + branch));
    return start;
  }
  WEIR_TRY(const std::string place, git.checked_out_in(branch));
  if (!place.empty()) {
    return fail(Code::usage,
                "{} is checked out in {}: write the files there (without --baselines-ref), or "
                "check out another branch",
                branch, text::printable(place));
  }
  return start;
}

Result<std::string> edit_branch(
    const Repository& repository, const std::string& branch,
    const std::function<Result<BranchEdit>(const std::optional<std::string>& parent)>& edit) {
  constexpr int k_tries = 20;
  for (int i = 0; i < k_tries; ++i) {
    WEIR_TRY(const BranchStart start, start_of(repository, branch));
    WEIR_TRY(BranchEdit wanted, edit(start.parent));
    if (wanted.changes.empty()) return std::string();
    WEIR_TRY(const std::optional<std::string> made,
             repository.git().commit_to(
                 branch, {start.parent, start.old, std::move(wanted.changes), wanted.message}));
    if (made) return *made;
    std::this_thread::sleep_for(std::chrono::milliseconds(20 * (i + 1)));
  }
  return fail(Code::io, "{}: somebody else moved it {} times while it was written to", branch,
              k_tries);
}

std::string written_words(const std::string& branch, const std::string& commit) {
  if (commit.empty()) return fmt::format("nothing changed on {}\n", branch);
  return fmt::format("written to the branch {} as {}; publish it with:\n    git push origin {}\n",
                     branch, source::short_commit(commit), branch);
}

}  // namespace weir::app
