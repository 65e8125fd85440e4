// The repository around a path, edits of its branches, and the builds of its commits.
#include "gate/flow/repository.hpp"

#include "gate/base/text.hpp"
#include "gate/sys/paths.hpp"

namespace weir::flow {
source::Effects source_effects(sys::World& world, const sys::Stop& stop, source::Say say) {
  return {world.processes, world.files, world.clock, world.locks, std::move(say), stop};
}

Repository::Repository(sys::World& world, bool listens)
    : interrupts_(listens ? std::make_unique<sys::Interrupts>() : nullptr),
      effects_(source_effects(world, listens ? interrupts_->stop() : never_)) {}

Result<std::shared_ptr<Repository>> Repository::containing(sys::World& world,
                                                           const std::string& path) {
  std::shared_ptr<Repository> repository(new Repository(world, /*listens=*/false));
  std::string folder = path;
  while (world.files.kind(folder) != sys::Kind::folder && folder != "/" && folder != ".") {
    folder = sys::folder_of(folder);
  }
  WEIR_TRY(repository->git_, source::Git::open(repository->effects_, folder));
  return repository;
}

Result<std::shared_ptr<Repository>> Repository::open(sys::World& world, const std::string& folder) {
  std::shared_ptr<Repository> repository(new Repository(world, /*listens=*/true));
  WEIR_TRY(repository->git_, source::Git::open(repository->effects_, folder));
  return repository;
}

// Returns the commit that `ref` names; nullopt if there is none. Fails in a submodule, which a pull
// request may have put in the place of a folder.
Result<std::optional<std::string>> Repository::find_commit(const std::string& option,
                                                           const std::string& ref) const {
  const std::string place = fmt::format("{} {}", option, text::printable(ref));
  WEIR_TRY(const std::string superproject, git_->superproject());
  if (!superproject.empty()) {
    return fail(
        Code::config,
        "{}: {} is a submodule of {}, so a pull request chooses what is in it; put weir.yaml "
        "into that repository, or run weir in a clone of its own",
        place, text::printable(git_->top()), text::printable(superproject));
  }
  return git_->resolve_commit(ref).map_error(with_prefix(place));
}

// Returns the commit of a branch: local, or a remote's ("origin/main"); nullopt if there is none.
// Never that of a tag, which needs no review.
Result<std::optional<std::string>> Repository::find_branch(const std::string& option,
                                                           const std::string& ref) const {
  WEIR_TRY(std::optional<std::string> commit, find_commit(option, ref));
  if (ref.starts_with("refs/") || source::is_full_id(ref)) return commit;
  // Anybody who may push can name a branch "origin/NAME", so the name of a remote's branch is no
  // other's.
  const std::string remote = ref.substr(0, ref.find('/'));
  const bool is_of_remote =
      remote.size() < ref.size() && (remote == "origin" || git_->has_remote(remote));
  const auto folders = is_of_remote
                           ? std::vector<std::string>{"refs/remotes/"}
                           : std::vector<std::string>{"refs/heads/", "refs/remotes/origin/"};
  for (const std::string& folder : folders) {
    WEIR_TRY_SET(commit, git_->resolve_commit(folder + ref));
    if (commit) return commit;
  }
  return std::optional<std::string>();
}

Result<std::string> Repository::commit(const std::string& option, const std::string& ref) const {
  WEIR_TRY(const std::optional<std::string> commit, find_commit(option, ref));
  if (commit) return *commit;
  const auto remote = git_->resolve_commit("refs/remotes/origin/" + ref);
  return fail(Code::config, "{} {}: no commit that is known here; {}", option, text::printable(ref),
              remote && *remote ? fmt::format("did you mean origin/{}?", text::printable(ref))
                                : std::string("is it fetched? (`git fetch --all`)"));
}

// Returns where an edit of the branch starts: its local tip, else the fetched one. Fails with
// Code::usage if it is checked out.
Result<BranchStart> find_branch_start(const Repository& repository, const std::string& branch) {
  const source::Git& git = repository.git();
  BranchStart start;
  WEIR_TRY(start.local_tip, git.branch_tip(branch));
  start.parent = start.local_tip;
  if (!start.parent) {
    WEIR_TRY(start.parent, git.resolve_commit("refs/remotes/origin/" + branch));
    return start;
  }
  WEIR_TRY(const std::string work_tree, git.checked_out_in(branch));
  if (!work_tree.empty()) {
    return fail(Code::usage,
                "{} is checked out in {}: write the files there (without --baselines-ref), or "
                "check out another branch",
                branch, text::printable(work_tree));
  }
  return start;
}

// Commits what `edit` changes to the branch, and returns the commit; "" if nothing changed. Tries
// up to 20 times, a little later each time, as somebody else may move the branch meanwhile.
Result<std::string> edit_branch(
    const Repository& repository, const std::string& branch,
    const std::function<Result<BranchEdit>(const std::optional<std::string>& parent)>& edit) {
  constexpr int k_tries = 20;
  for (int i = 0; i < k_tries; ++i) {
    WEIR_TRY(const BranchStart start, find_branch_start(repository, branch));
    WEIR_TRY(BranchEdit branch_edit, edit(start.parent));
    if (branch_edit.changes.empty()) return std::string();
    WEIR_TRY(
        const std::optional<std::string> commit,
        repository.git().commit_to(branch, {start.parent, start.local_tip,
                                            std::move(branch_edit.changes), branch_edit.message}));
    if (commit) return *commit;
    std::this_thread::sleep_for(std::chrono::milliseconds(20 * (i + 1)));
  }
  return fail(Code::io, "{}: somebody else moved it {} times while it was written to", branch,
              k_tries);
}

std::string written_text(const std::string& branch, const std::string& commit) {
  if (commit.empty()) return fmt::format("nothing changed on {}\n", branch);
  return fmt::format("written to the branch {} as {}; publish it with:\n    git push origin {}\n",
                     branch, text::short_commit(commit), branch);
}

void add_build(std::vector<source::Build>& builds, const config::Cell& cell) {
  if (cell.engine == nullptr || cell.engine->build.empty()) return;
  auto build = std::ranges::find(builds, cell.engine->build, &source::Build::command);
  if (build == builds.end()) {
    build = builds.insert(builds.end(), {cell.engine->name, cell.engine->build});
  }
  const std::set<std::string>& passed = cell.engine->extra.passed_variables;
  build->passed_variables.insert(build->passed_variables.end(), passed.begin(), passed.end());
}

std::vector<source::Build> engine_builds(const std::vector<config::Cell>& cells) {
  std::vector<source::Build> builds;
  for (const config::Cell& cell : cells) add_build(builds, cell);
  return builds;
}

}  // namespace weir::flow
