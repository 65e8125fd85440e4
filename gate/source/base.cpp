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

std::string value_of(const char* name) { return sys::environment_value(name).value_or(""); }

bool names_base_branch(const std::string& ref, const PullRequest& pull) {
  if (pull.base_branch.empty()) return false;
  for (const char* before : {"", "origin/", "heads/", "refs/heads/", "refs/remotes/origin/"}) {
    if (ref == before + pull.base_branch) return true;
  }
  return false;
}

// Nothing is known by that name.
tl::unexpected<Error> unknown(const Git& git, const std::string& ref) {
  std::string hint;
  const auto remote = git.commit("origin/" + ref);
  if (remote && *remote) {
    hint = fmt::format("did you mean origin/{}?", ref);
  } else {
    hint = git.shallow().value_or(false) ? k_fetch_all : "is it fetched? (`git fetch origin`)";
  }
  return fail(Code::config, "--against {}: neither a folder nor a commit that is known here; {}",
              text::printable(ref), text::printable(hint));
}

Result<void> describe_candidate(const Git& git, const std::string& folder, BaseTree& base) {
  base.candidate_root = top_as_named(git, folder);
  base.candidate_real_root = git.top();
  WEIR_TRY(base.candidate_commit, git.commit("HEAD"));
  if (base.candidate_commit) WEIR_SET(base.candidate_dirty, git.dirty());
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

// "build/x" for "/a/build/x" below "/a"; "" for "/a" itself.
std::optional<std::string> place_below(const std::string& path, const std::string& folder) {
  if (folder == "/") return path.substr(1);
  if (path == folder) return "";
  if (!path.starts_with(folder + "/")) return std::nullopt;
  return path.substr(folder.size() + 1);
}

tl::unexpected<Error> not_there(const BaseTree& base, const std::string& path) {
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

PullRequest read_pull_request(const sys::Files& files) {
  PullRequest pull;
  const std::string ref = value_of("GITHUB_REF");
  pull.merge = ref.starts_with("refs/pull/") && ref.ends_with("/merge");
  if (!pull.merge) return pull;
  pull.built = value_of("GITHUB_SHA");
  pull.base_branch = value_of("GITHUB_BASE_REF");
  const auto event = files.read(value_of("GITHUB_EVENT_PATH"), k_event_bytes);
  if (!event) return pull;
  const Json json = parse_json(*event).value_or(Json());
  const Json& commit = below(below(below(json, "pull_request"), "base"), "sha");
  if (commit.is_string()) pull.base_commit = commit.get<std::string>();
  return pull;
}

namespace {

// The first parent where HEAD is GitHub's merge commit and `ref` means the branch it was merged
// into; else the merge-base of HEAD and `ref`: the commit, words and notes of `base`. Fails with
// Code::config, saying what to fetch where history is missing.
Result<void> choose_base(const Git& git, const std::string& ref, const PullRequest& pull,
                         BaseTree& base) {
  const std::string& head = *base.candidate_commit;
  WEIR_TRY(const std::optional<std::string> meant, git.commit(ref));
  const bool means_base =
      names_base_branch(ref, pull) ||
      (!pull.base_commit.empty() && (ref == pull.base_commit || meant == pull.base_commit));
  // A job may have checked out something else than the merge commit, whose parents mean nothing.
  if (pull.merge && means_base && (pull.built.empty() || pull.built == head)) {
    WEIR_TRY(const std::vector<std::string> parents, git.parents(head));
    if (parents.size() == 2) {
      base.commit = parents[0];
      WEIR_TRY(const std::string words, git.words(parents[0]));
      base.words = "first parent of GitHub's merge commit, " + words;
      if (meant && meant != base.commit) {
        base.notes.push_back(fmt::format("{} is {} here; the merge commit was made onto {}",
                                         text::printable(ref), short_commit(*meant),
                                         short_commit(parents[0])));
      }
      return {};
    }
  }
  if (!meant) return unknown(git, ref);

  WEIR_TRY(const std::vector<std::string> bases, git.merge_bases(head, *meant));
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
  WEIR_TRY(const std::string words, git.words(bases.front()));
  base.words = (head == *meant ? "HEAD, "
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
        head == *meant
            ? std::string("nothing differs from HEAD: the program is compared with itself (A/A)")
            : fmt::format("HEAD is contained in {} and nothing differs from it: the program is "
                          "compared with itself (A/A)",
                          text::printable(ref)));
  }
  return {};
}

Result<BaseTree> from_ref(const BaseWanted& wanted, const std::string& config_folder,
                          const Effects& effects) {
  BaseTree base;
  WEIR_TRY(const Git git, Git::open(effects, config_folder)
                              .map_error(in_context(fmt::format(
                                  "--against {}: not a folder, and no commit can be looked up",
                                  text::printable(wanted.spec)))));
  WEIR_CHECK(describe_candidate(git, config_folder, base));
  if (!base.candidate_commit) {
    return fail(Code::config, "--against {}: {} has no commit yet", text::printable(wanted.spec),
                git.top());
  }
  WEIR_CHECK(choose_base(git, wanted.spec, read_pull_request(effects.files), base));
  TreeWanted tree_wanted{*base.commit, {}, wanted.cache_folder, wanted.build_timeout_seconds};
  for (const Build& build : wanted.builds) {
    const auto known = std::ranges::count(tree_wanted.builds, build.command, &Build::command);
    if (known == 0 && !build.command.empty()) tree_wanted.builds.push_back(build);
  }
  base.built = !tree_wanted.builds.empty();
  WEIR_TRY(Tree tree, prepare_tree(git, tree_wanted, effects));
  tree.notes.insert(tree.notes.begin(), base.notes.begin(), base.notes.end());
  static_cast<Tree&>(base) = std::move(tree);
  base.notes.push_back(base.from_cache ? "taken from the cache"
                       : base.built    ? fmt::format("built in {:.0f} s", base.build_seconds)
                                       : "checked out, nothing built");
  return base;
}

}  // namespace

std::string top_as_named(const Git& git, const std::string& folder) {
  if (git.place().empty()) return folder;
  const std::string end = "/" + git.place();
  const bool ends = folder.size() > end.size() && folder.ends_with(end);
  return ends ? folder.substr(0, folder.size() - end.size()) : git.top();
}

Result<std::string> default_cache_folder() {
  if (const std::string own = value_of("WEIR_CACHE"); !own.empty()) return sys::absolute(own);
  // What is not absolute there is to be ignored, says the specification of XDG_CACHE_HOME.
  for (const auto& [name, inner] : {std::pair{"XDG_CACHE_HOME", "weir"}, {"HOME", ".cache/weir"}}) {
    const std::string folder = value_of(name);
    if (folder.starts_with('/')) return sys::absolute(sys::join_path(folder, inner));
  }
  return fail(Code::config, "no place for a cache: set WEIR_CACHE to a folder");
}

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
  if (effects.files.kind(sys::join_path(folder, wanted.spec)) == sys::Kind::folder) {
    return from_folder(wanted, folder, effects);
  }
  return from_ref(wanted, folder, effects);
}

// Where the two sides' programs are, and the paths they are started by.

Result<std::string> program_in_base(const sys::Files& files, const BaseTree& base,
                                    const std::string& program) {
  const std::string clean = sys::absolute(program);
  auto place = place_below(clean, base.candidate_root);
  if (!place) place = place_below(clean, base.candidate_real_root);
  if (!place || place->empty()) {
    return fail(Code::config,
                "{}: outside {}, so the base ({}) has no program of its own in its place; give the "
                "base as a command: --against -- COMMAND…",
                text::printable(program), text::printable(base.candidate_root), base.words);
  }
  std::string path = sys::join_path(base.root, *place);
  if (files.kind(path) != sys::Kind::file || !files.executable(path)) return not_there(base, path);
  return path;
}

Result<std::string> through_equal_length_link(sys::Files& files, const std::string& out_folder,
                                              const std::string& root, const std::string& path,
                                              const std::string& name) {
  const auto place = place_below(path, root);
  if (!place) return fail(Code::internal, "{}: not below {}", path, root);
  const std::string folder = sys::join_path(sys::absolute(out_folder), "sides");
  WEIR_CHECK(files.make_dirs(folder));
  const std::string link =
      sys::join_path(folder, short_hash(name.empty() ? root : root + "\n" + name, 16));
  WEIR_CHECK(files.link(root, link));
  return place->empty() ? link : sys::join_path(link, *place);
}

}  // namespace weir::source
