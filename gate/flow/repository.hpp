// The git repository around a path, edits of its branches, and the builds of its commits.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gate/config/matrix.hpp"
#include "gate/source/git.hpp"
#include "gate/source/trees.hpp"
#include "gate/sys/world.hpp"

namespace weir::flow {

// Returns the effects that git and builds need. `stop` has to outlive them.
[[nodiscard]] source::Effects source_effects(sys::World& world, const sys::Stop& stop,
                                             source::Say say = {});

class Repository {
 public:
  // Opens the repository of the nearest existing folder at or above `path` (absolute).
  [[nodiscard]] static Result<std::shared_ptr<Repository>> containing(sys::World& world,
                                                                      const std::string& path);
  // Opens the repository of `folder` for queries and builds that a signal ends. Measuring handles
  // signals itself, so keep this no longer than one query or build.
  [[nodiscard]] static Result<std::shared_ptr<Repository>> open(sys::World& world,
                                                                const std::string& folder);

  [[nodiscard]] const source::Git& git() const { return *git_; }
  [[nodiscard]] const source::Effects& effects() const { return effects_; }
  // Returns the commit that `ref` names for an option that decides what judges; nothing if it names
  // none. Code::config in a submodule: a pull request may put one in the place of a folder.
  [[nodiscard]] Result<std::optional<std::string>> find_commit(const std::string& option,
                                                               const std::string& ref) const;
  // The same of a branch: "REMOTE/NAME" is that remote's, another name a local one, else one of
  // origin. No tag, which takes no review to push.
  [[nodiscard]] Result<std::optional<std::string>> find_branch(const std::string& option,
                                                               const std::string& ref) const;
  // Returns the commit as find_commit() does; Code::config with a hint if `ref` names none.
  [[nodiscard]] Result<std::string> commit(const std::string& option, const std::string& ref) const;

 private:
  Repository(sys::World& world, bool listens);
  sys::Stop never_;
  std::unique_ptr<sys::Interrupts> interrupts_;
  source::Effects effects_;
  std::optional<source::Git> git_;
};

// The start of an edit of a branch: its local tip, else the fetched one.
struct BranchStart {
  std::optional<std::string> parent;     // absent: the branch is new and has no history
  std::optional<std::string> local_tip;  // the local branch's tip
};
// Returns the start of an edit. Code::usage for a bad name, or for a branch that is checked out:
// its files would then look as if they were changed back.
[[nodiscard]] Result<BranchStart> find_branch_start(const Repository& repository,
                                                    const std::string& branch);

struct BranchEdit {
  source::Git::Changes changes;  // paths from the top
  std::string message;
};
// Calls `edit` for the changes to `parent`'s files and commits them. Calls it again, a few times,
// if somebody else moves the branch meanwhile. Returns the commit; "" if nothing changed.
[[nodiscard]] Result<std::string> edit_branch(
    const Repository& repository, const std::string& branch,
    const std::function<Result<BranchEdit>(const std::optional<std::string>& parent)>& edit);
// Describes what was written, with the command that publishes it.
[[nodiscard]] std::string written_text(const std::string& branch, const std::string& commit);

// Returns the builds of the cells' engines, each command once. The commands are part of a cached
// tree's key, so every caller must ask for a commit's tree with the same ones.
[[nodiscard]] std::vector<source::Build> engine_builds(const std::vector<config::Cell>& cells);
void add_build(std::vector<source::Build>& builds, const config::Cell& cell);

}  // namespace weir::flow
