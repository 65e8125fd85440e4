#include "gate/source/base.hpp"

#include <algorithm>

#include "gate/base/text.hpp"
#include "gate/source/choose.hpp"
#include "gate/source/git.hpp"
#include "gate/source/trees.hpp"
#include "gate/sys/paths.hpp"

namespace weir::source {
namespace {}  // namespace

std::string top_as_named(const Git& git, const std::string& folder) {
  if (git.place().empty()) return folder;
  const std::string end = "/" + git.place();
  if (folder.size() > end.size() && folder.ends_with(end)) {
    return folder.substr(0, folder.size() - end.size());
  }
  return git.top();
}

namespace {

Result<void> describe_candidate(const Git& git, const std::string& folder, BaseTree& base) {
  base.candidate_root = top_as_named(git, folder);
  base.candidate_real_root = git.top();
  WEIR_TRY(base.candidate_commit, git.commit("HEAD"));
  if (base.candidate_commit) {
    WEIR_TRY(base.candidate_dirty, git.dirty());
  }
  return {};
}

Result<BaseTree> from_folder(const BaseWanted& wanted, const std::string& config_folder,
                             const Effects& effects) {
  BaseTree base;
  base.kind = BaseTree::Kind::folder;
  base.root = sys::absolute(sys::join_path(config_folder, wanted.spec));
  base.candidate_root = base.candidate_real_root = config_folder;
  base.words = "folder " + text::printable(wanted.spec);
  // A folder needs no git: whatever it says, the folder is there.
  const auto interrupted = [](const Error& error) { return error.code == Code::interrupted; };
  const auto candidate = Git::open(effects, config_folder);
  if (!candidate && interrupted(candidate.error())) return tl::unexpected(candidate.error());
  if (candidate) {
    WEIR_CHECK(describe_candidate(*candidate, config_folder, base));
    WEIR_TRY(const auto also, candidate->commit(wanted.spec));
    if (also) {
      base.notes.push_back(fmt::format(
          "{} is a folder and also names a commit: the folder is taken (refs/heads/… or "
          "refs/tags/… names the commit)",
          text::printable(wanted.spec)));
    }
  }
  const auto other = Git::open(effects, base.root);
  if (!other && interrupted(other.error())) return tl::unexpected(other.error());
  if (other && other->place().empty()) {
    WEIR_TRY(base.commit, other->commit("HEAD"));
    if (base.commit) {
      WEIR_TRY(const std::string words, other->words(*base.commit));
      base.words += ", at " + words;
      WEIR_TRY(const bool dirty, other->dirty());
      if (dirty) base.words += " and changed";
    }
  }
  if (base.root == base.candidate_root || base.root == base.candidate_real_root) {
    base.notes.emplace_back(
        "the folder is the candidate's own: the program is compared with itself");
  }
  return base;
}

Result<BaseTree> from_ref(const BaseWanted& wanted, const std::string& config_folder,
                          const Effects& effects) {
  BaseTree base;
  auto git = Git::open(effects, config_folder);
  if (!git) {
    return tl::unexpected(
        with_context(fmt::format("--against {}: not a folder, and no commit can be looked up",
                                 text::printable(wanted.spec)),
                     git.error()));
  }
  WEIR_CHECK(describe_candidate(*git, config_folder, base));
  if (!base.candidate_commit) {
    return fail(Code::config, "--against {}: {} has no commit yet", text::printable(wanted.spec),
                git->top());
  }
  WEIR_TRY(Chosen chosen, choose_base(*git, wanted.spec, *base.candidate_commit,
                                      base.candidate_dirty, read_pull_request(effects.files)));
  base.commit = chosen.commit;
  base.words = std::move(chosen.words);
  base.notes = std::move(chosen.notes);

  TreeWanted tree_wanted{chosen.commit, {}, wanted.cache_folder, wanted.build_timeout_seconds};
  for (const Build& build : wanted.builds) {
    const bool known =
        std::any_of(tree_wanted.builds.begin(), tree_wanted.builds.end(),
                    [&](const Build& other) { return other.command == build.command; });
    if (!known && !build.command.empty()) tree_wanted.builds.push_back(build);
  }
  base.built = !tree_wanted.builds.empty();
  WEIR_TRY(Tree tree, prepare_tree(*git, tree_wanted, effects));
  base.root = std::move(tree.root);
  base.from_cache = tree.from_cache;
  base.held = std::move(tree.held);
  base.notes.insert(base.notes.end(), tree.notes.begin(), tree.notes.end());
  if (tree.from_cache) {
    base.notes.emplace_back("taken from the cache");
  } else if (base.built) {
    base.notes.push_back(fmt::format("built in {:.0f} s", tree.build_seconds));
  } else {
    base.notes.emplace_back("checked out, nothing built");
  }
  return base;
}

}  // namespace

Result<std::string> default_cache_folder() {
  const auto value = [](const char* name) { return sys::environment_value(name).value_or(""); };
  if (const std::string own = value("WEIR_CACHE"); !own.empty()) return sys::absolute(own);
  // What is not absolute there is to be ignored, says the specification of XDG_CACHE_HOME.
  if (const std::string xdg = value("XDG_CACHE_HOME"); xdg.starts_with('/')) {
    return sys::absolute(sys::join_path(xdg, "weir"));
  }
  if (const std::string home = value("HOME"); home.starts_with('/')) {
    return sys::absolute(sys::join_path(home, ".cache/weir"));
  }
  return fail(Code::config, "no place for a cache: set WEIR_CACHE to a folder");
}

Result<BaseTree> prepare_base(const BaseWanted& wanted, const Effects& effects) {
  if (wanted.spec.empty()) return fail(Code::usage, "--against: empty; give a REF or a folder");
  if (wanted.spec.starts_with('-')) {
    return fail(Code::usage, "--against {}: a REF can not begin with '-' (a folder: ./{})",
                text::printable(wanted.spec), text::printable(wanted.spec));
  }
  if (wanted.spec.find('\0') != std::string::npos) {
    return fail(Code::usage, "--against: holds a zero byte");
  }
  const std::string folder = sys::absolute(wanted.config_folder);
  if (effects.files.kind(sys::join_path(folder, wanted.spec)) == sys::Kind::folder) {
    return from_folder(wanted, folder, effects);
  }
  return from_ref(wanted, folder, effects);
}

}  // namespace weir::source
