// The git repository that a path lies in, with all that asking it needs; files written onto one of
// its branches; the builds of its commits.
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

// `stop` has to outlive them.
[[nodiscard]] source::Effects effects_of(sys::World& world, const sys::Stop& stop,
                                         source::Say say = {});

class Repository {
 public:
  // Of the nearest folder above `path` (absolute, need not be there) that is.
  [[nodiscard]] static Result<std::shared_ptr<Repository>> around(sys::World& world,
                                                                  const std::string& path);
  // Of `folder`, for questions and builds that a signal ends. Measuring listens to signals by
  // itself: this should live no longer than one question or build.
  [[nodiscard]] static Result<std::shared_ptr<Repository>> open(sys::World& world,
                                                                const std::string& folder);

  [[nodiscard]] const source::Git& git() const { return *git_; }
  [[nodiscard]] const source::Effects& effects() const { return effects_; }
  // The commit that `ref` means; Code::config with a hint where it means none.
  [[nodiscard]] Result<std::string> commit(const std::string& option, const std::string& ref) const;

 private:
  Repository(sys::World& world, bool listens);
  sys::Stop never_;
  std::unique_ptr<sys::Interrupts> interrupts_;
  source::Effects effects_;
  std::optional<source::Git> git_;
};

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

// Builds of cells' engines, each command once: trees in the cache are known by these commands, so
// that whoever asks for a commit's tree must ask for the same ones.
[[nodiscard]] std::vector<source::Build> builds_of_cells(const std::vector<config::Cell>& cells);
void add_build(std::vector<source::Build>& builds, const config::Cell& cell);

}  // namespace weir::flow
