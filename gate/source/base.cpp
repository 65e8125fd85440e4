// Finds the base that --against names: a folder, or a commit that is checked out and built.
#include "gate/source/base.hpp"

#include "gate/base/hash.hpp"
#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/sys/paths.hpp"

namespace weir::source {

namespace {

constexpr std::uint64_t k_event_bytes = std::uint64_t{32} << 20;
constexpr std::string_view k_fetch_all =
    "history is cut off here: fetch all of it (`fetch-depth: 0` of actions/checkout, "
    "`git fetch --unshallow` elsewhere)";

std::string environment_text(const char* name) { return sys::environment_value(name).value_or(""); }

// Returns true if `ref` is the branch that the pull request is to be merged into.
bool names_base_branch(const std::string& ref, const PullRequest& pull) {
  if (pull.base_branch.empty()) return false;
  for (const char* prefix : {"", "origin/", "heads/", "refs/heads/", "refs/remotes/origin/"}) {
    if (ref == prefix + pull.base_branch) return true;
  }
  return false;
}

// Error for a name that is neither a folder nor a commit, with a hint.
tl::unexpected<Error> unknown_ref(const Git& git, const std::string& ref) {
  std::string hint;
  const auto remote = git.resolve_commit("refs/remotes/origin/" + ref);
  if (remote && *remote) {
    hint = fmt::format("did you mean origin/{}?", ref);
  } else {
    hint = git.shallow().value_or(false) ? k_fetch_all : "is it fetched? (`git fetch --all`)";
  }
  return fail(Code::config, "--against {}: neither a folder nor a commit that is known here; {}",
              text::printable(ref), text::printable(hint));
}

// Fills in where the candidate is, its commit, and whether it has changes.
Result<void> describe_candidate(const Git& git, const std::string& folder, BaseTree& base) {
  base.candidate_root = top_as_named(git, folder);
  base.candidate_real_root = git.top();
  WEIR_TRY(base.candidate_commit, git.resolve_commit("HEAD"));
  if (base.candidate_commit) WEIR_TRY_SET(base.candidate_dirty, git.dirty());
  return {};
}

// Returns true if git could take `spec` for a commit, here or in a checkout with more branches.
Result<bool> may_name_commit(const Git& git, const std::string& spec) {
  const std::size_t slash = spec.find('/');
  if (slash != std::string::npos && git.has_remote(spec.substr(0, slash))) return true;
  const auto commit = git.resolve_commit(spec);
  if (!commit && commit.error().code == Code::config) return true;  // ambiguous
  return commit.map([](const auto& name) { return name.has_value(); });
}

// Uses the folder `wanted.spec` as the base, as it is: nothing is checked out or built. Fails if
// the name may also mean a commit.
Result<BaseTree> base_from_folder(const BaseWanted& wanted, const std::string& config_folder,
                                  const Effects& effects) {
  BaseTree base;
  base.kind = BaseTree::Kind::folder;
  base.root = sys::absolute(sys::join_path(config_folder, wanted.spec));
  base.candidate_root = config_folder;
  base.candidate_real_root = config_folder;
  base.words = std::string(k_folder_words) + text::printable(wanted.spec);
  // A folder needs no git, so its errors are ignored, except an interruption.
  const auto interrupted = [](const Error& error) { return error.code == Code::interrupted; };
  const auto candidate = Git::open(effects, config_folder);
  if (!candidate && interrupted(candidate.error())) return tl::unexpected(candidate.error());
  if (candidate) {
    WEIR_CHECK(describe_candidate(*candidate, config_folder, base));
    WEIR_TRY(const bool may_be_ref, may_name_commit(*candidate, wanted.spec));
    if (may_be_ref) {
      return fail(Code::config,
                  "--against {}: there is a folder of this name, and it may mean a commit; write "
                  "./{} for the folder, or the commit's full name (refs/heads/…, refs/remotes/…)",
                  text::printable(wanted.spec), text::printable(wanted.spec));
    }
  }
  const auto base_git = Git::open(effects, base.root);
  if (!base_git && interrupted(base_git.error())) return tl::unexpected(base_git.error());
  if (base_git && base_git->place().empty()) {
    WEIR_TRY(base.commit, base_git->resolve_commit("HEAD"));
    if (base.commit) {
      WEIR_TRY(const std::string words, base_git->words(*base.commit));
      base.words += ", at " + words;
      WEIR_TRY(const bool dirty, base_git->dirty());
      if (dirty) base.words += " and changed";
    }
  }
  if (base.root == base.candidate_root || base.root == base.candidate_real_root) {
    base.notes.emplace_back(
        "the folder is the candidate's own: the program is compared with itself");
  }
  return base;
}

// Returns the error for a program that the base lacks, with what to do.
tl::unexpected<Error> missing_program(const BaseTree& base, const std::string& path) {
  std::string what_to_do;
  if (base.kind == BaseTree::Kind::folder) {
    what_to_do = "the folder has to hold the program at the place where the candidate has it";
  } else if (!base.built) {
    what_to_do =
        "a base is a fresh checkout, so its engine in weir.yaml needs the command that makes it "
        "there (build: [./build.sh]), or compare with stored baselines alone";
  } else {
    what_to_do =
        "the build command has to make it at the place where the candidate has it; does `build:` "
        "in "
        "weir.yaml belong to this program?";
  }
  return fail(Code::config, "{}: no such program in the base ({}); {}", text::printable(path),
              base.words, what_to_do);
}

}  // namespace

// Reads the pull request of a GitHub Actions job from its environment and event. `merge` is false
// outside of one.
PullRequest read_pull_request(const sys::Files& files) {
  PullRequest pull;
  const std::string ref = environment_text("GITHUB_REF");
  pull.merge = ref.starts_with("refs/pull/") && ref.ends_with("/merge");
  if (!pull.merge) return pull;
  pull.built = environment_text("GITHUB_SHA");
  pull.base_branch = environment_text("GITHUB_BASE_REF");
  const auto event = files.read(environment_text("GITHUB_EVENT_PATH"), k_event_bytes);
  if (!event) return pull;
  const Json json = parse_json(*event).value_or(Json());
  const Json& commit =
      member_or_null(member_or_null(member_or_null(json, "pull_request"), "base"), "sha");
  if (commit.is_string()) pull.base_commit = commit.get<std::string>();
  return pull;
}

namespace {

// Returns true if `commit`, the first parent of HEAD, may lie on the branch that GitHub merges
// into. False: the pull request's author made that merge. A shallow history, or a branch that is
// not here, gives true.
Result<bool> may_be_merged_into(const Git& git, const std::string& commit,
                                const std::optional<std::string>& ref_commit,
                                const PullRequest& pull) {
  if (commit == pull.base_commit) return true;
  WEIR_TRY(const bool is_shallow, git.shallow());
  if (is_shallow) return true;
  for (const char* folder : {"refs/remotes/origin/", "refs/heads/"}) {
    WEIR_TRY(const auto tip, git.resolve_commit(folder + pull.base_branch));
    if (tip) return git.contains(*tip, commit);
  }
  if (!ref_commit) return true;
  return git.contains(*ref_commit, commit);
}

// Chooses the base commit and fills in its text and notes. It is HEAD's first parent if HEAD is
// GitHub's merge commit, made onto a commit of the branch that `ref` means. Otherwise it is the
// merge-base of HEAD and `ref`. Fails with Code::config, saying what to fetch if history is
// missing.
Result<void> choose_base(const Git& git, const std::string& ref, const PullRequest& pull,
                         BaseTree& base) {
  const std::string& head = *base.candidate_commit;
  WEIR_TRY(const std::optional<std::string> ref_commit,
           git.resolve_commit(ref).map_error(with_prefix("--against " + text::printable(ref))));
  const bool means_base =
      names_base_branch(ref, pull) ||
      (!pull.base_commit.empty() && (ref == pull.base_commit || ref_commit == pull.base_commit));
  // A job may have checked out another commit; then its parents mean nothing.
  if (pull.merge && means_base && (pull.built.empty() || pull.built == head)) {
    WEIR_TRY(const std::vector<std::string> parents, git.parents(head));
    bool is_of_branch = parents.size() == 2;
    if (is_of_branch)
      WEIR_TRY_SET(is_of_branch, may_be_merged_into(git, parents[0], ref_commit, pull));
    if (is_of_branch) {
      base.commit = parents[0];
      WEIR_TRY(const std::string words, git.words(parents[0]));
      base.words = "first parent of GitHub's merge commit, " + words;
      if (ref_commit && ref_commit != base.commit) {
        base.notes.push_back(fmt::format("{} is {} here; the merge commit was made onto {}",
                                         text::printable(ref), text::short_commit(*ref_commit),
                                         text::short_commit(parents[0])));
      }
      return {};
    }
  }
  if (!ref_commit) return unknown_ref(git, ref);

  WEIR_TRY(const std::vector<std::string> bases, git.merge_bases(head, *ref_commit));
  WEIR_TRY(const bool shallow, git.shallow());
  if (bases.empty() && shallow) {
    return fail(Code::config, "--against {}: no common ancestor of it and HEAD is known; {}",
                text::printable(ref), k_fetch_all);
  }
  if (bases.empty()) {
    return fail(Code::config,
                "--against {}: HEAD and it have no common ancestor; to compare with it all the "
                "same, check it out and build it in a folder of its own and give that folder",
                text::printable(ref));
  }
  base.commit = bases.front();
  base.merge_bases = bases.size();
  WEIR_TRY(const std::string words, git.words(bases.front()));
  base.words =
      (head == *ref_commit ? "HEAD, "
                           : fmt::format("merge-base of HEAD and {}, ", text::printable(ref))) +
      words;
  if (bases.size() > 1) {
    base.notes.push_back(fmt::format(
        "there are {} merge-bases; this is the one that git names first", bases.size()));
  }
  if (shallow) {
    base.notes.emplace_back(
        "history is cut off here: with all of it the merge-base may be a newer commit");
  }
  if (base.commit == head && !base.candidate_dirty) {
    base.notes.push_back(
        head == *ref_commit
            ? std::string("nothing differs from HEAD: the program is compared with itself (A/A)")
            : fmt::format("HEAD is contained in {} and nothing differs from it: the program is "
                          "compared with itself (A/A)",
                          text::printable(ref)));
  }
  return {};
}

// Checks out and builds the commit that `wanted.spec` (a git ref) leads to, or takes the build from
// the cache.
Result<BaseTree> base_from_ref(const BaseWanted& wanted, const std::string& config_folder,
                               const Effects& effects) {
  BaseTree base;
  WEIR_TRY(const Git git, Git::open(effects, config_folder)
                              .map_error(with_prefix(fmt::format(
                                  "--against {}: not a folder, and no commit can be looked up",
                                  text::printable(wanted.spec)))));
  WEIR_CHECK(describe_candidate(git, config_folder, base));
  if (!base.candidate_commit) {
    return fail(Code::config, "--against {}: {} has no commit yet", text::printable(wanted.spec),
                git.top());
  }
  WEIR_CHECK(choose_base(git, wanted.spec, read_pull_request(effects.files), base));
  TreeWanted tree_wanted{*base.commit, {}, wanted.cache_folder, wanted.build_timeout_seconds};
  tree_wanted.reuse = wanted.reuse;
  for (const Build& build : wanted.builds) {
    const auto same_command =
        std::ranges::count(tree_wanted.builds, build.command, &Build::command);
    if (same_command == 0 && !build.command.empty()) tree_wanted.builds.push_back(build);
  }
  base.built = !tree_wanted.builds.empty();
  WEIR_TRY(Tree tree, prepare_tree(git, tree_wanted, effects));
  tree.notes.insert(tree.notes.begin(), base.notes.begin(), base.notes.end());
  static_cast<Tree&>(base) = std::move(tree);
  if (base.from_cache) {
    base.notes.emplace_back("the base's build is taken from the cache");
  } else if (base.built) {
    base.notes.push_back(fmt::format("the base was built in {:.0f} s", base.build_seconds));
  } else {
    base.notes.emplace_back("the base was checked out, nothing was built");
  }
  return base;
}

}  // namespace

std::string top_as_named(const Git& git, const std::string& folder) {
  if (git.place().empty()) return folder;
  const std::string end = "/" + git.place();
  const bool is_below = folder.size() > end.size() && folder.ends_with(end);
  return is_below ? folder.substr(0, folder.size() - end.size()) : git.top();
}

Result<std::string> default_cache_folder() {
  if (const std::string own = environment_text("WEIR_CACHE"); !own.empty())
    return sys::absolute(own);
  // The specification of XDG_CACHE_HOME says to ignore paths that are not absolute.
  for (const auto& [name, inner] : {std::pair{"XDG_CACHE_HOME", "weir"}, {"HOME", ".cache/weir"}}) {
    const std::string folder = environment_text(name);
    if (folder.starts_with('/')) return sys::absolute(sys::join_path(folder, inner));
  }
  return fail(Code::config, "no place for a cache: set WEIR_CACHE to a folder");
}

// Finds or makes the base that `wanted.spec` names: a folder if there is one, else a git ref.
Result<BaseTree> prepare_base(const BaseWanted& wanted, const Effects& effects) {
  if (wanted.spec.empty()) return fail(Code::usage, "--against: empty; give a REF or a folder");
  if (wanted.spec.starts_with('-')) {
    return fail(Code::usage, "--against {}: a REF cannot begin with '-' (a folder: ./{})",
                text::printable(wanted.spec), text::printable(wanted.spec));
  }
  if (wanted.spec.find('\0') != std::string::npos) {
    return fail(Code::usage, "--against: holds a zero byte");
  }
  const std::string folder = sys::absolute(wanted.config_folder);
  // A pull request can hold a folder of any name, and knows the ids of commits.
  const bool is_commit = wanted.spec.starts_with("refs/") || is_full_id(wanted.spec);
  if (!is_commit && effects.files.kind(sys::join_path(folder, wanted.spec)) == sys::Kind::folder) {
    return base_from_folder(wanted, folder, effects);
  }
  return base_from_ref(wanted, folder, effects);
}

// The programs of base and candidate, and the paths they are started by.

// Returns the path of the base's counterpart of a candidate's program. Fails if the program lies
// outside the candidate's tree, or the base lacks it.
Result<std::string> program_in_base(const sys::Files& files, const BaseTree& base,
                                    const std::string& program) {
  const std::string program_path = sys::absolute(program);
  auto inner_path = sys::relative_path(program_path, base.candidate_root);
  if (!inner_path) inner_path = sys::relative_path(program_path, base.candidate_real_root);
  if (!inner_path || inner_path->empty()) {
    return fail(Code::config,
                "{}: outside {}, so the base ({}) has no program of its own in its place; give the "
                "base as a command: --against -- COMMAND…",
                text::printable(program), text::printable(base.candidate_root), base.words);
  }
  std::string path = sys::join_path(base.root, *inner_path);
  if (files.kind(path) != sys::Kind::file || !files.executable(path))
    return missing_program(base, path);
  return path;
}

// Returns `path`, below `root`, as a path through a link in `out_folder`. So its length, which
// programs can notice, is the same for base and candidate.
Result<std::string> through_equal_length_link(sys::Files& files, const std::string& out_folder,
                                              const std::string& root, const std::string& path,
                                              const std::string& name) {
  const auto inner_path = sys::relative_path(path, root);
  if (!inner_path) return fail(Code::internal, "{}: not below {}", path, root);
  const std::string folder = sys::join_path(sys::absolute(out_folder), "sides");
  WEIR_CHECK(files.make_dirs(folder));
  const std::string link =
      sys::join_path(folder, short_hash(name.empty() ? root : root + "\n" + name, 16));
  WEIR_CHECK(files.link(root, link));
  return inner_path->empty() ? link : sys::join_path(link, *inner_path);
}

}  // namespace weir::source
