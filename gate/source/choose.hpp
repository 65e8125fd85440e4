// Which commit a candidate is held to, for a REF as typed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/source/git.hpp"

namespace weir::source {

// What a CI system says about the pull request being built. Believed only where git agrees.
struct PullRequest {
  bool merge = false;       // GITHUB_REF is "refs/pull/N/merge"
  std::string built;        // GITHUB_SHA
  std::string base_branch;  // GITHUB_BASE_REF: "main"
  std::string base_commit;  // the event's pull_request.base.sha: may be long out of date
};
// From the environment and the file of the event it names. What is missing stays empty.
[[nodiscard]] PullRequest read_pull_request(const sys::Files& files);

struct Chosen {
  std::string commit;
  std::string words;
  std::vector<std::string> notes;
};
// The first parent where HEAD is GitHub's merge commit and `ref` means the branch it was merged
// into; else the merge-base of HEAD and `ref`. `head`: HEAD's commit. `dirty`: the candidate
// differs from it. Fails with Code::config, saying what to fetch where history is missing.
[[nodiscard]] Result<Chosen> choose_base(const Git& git, const std::string& ref,
                                         const std::string& head, bool dirty,
                                         const PullRequest& pull);

}  // namespace weir::source
