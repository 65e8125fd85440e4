// The base that `--against REF|DIR` names: a folder that holds what the candidate is compared with.
//
// Nothing is measured here. A REF becomes a commit (choose_base), a checkout, and a build in it
// (trees.hpp); a DIR is taken as it is.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gate/source/git.hpp"
#include "gate/source/trees.hpp"

namespace weir::source {

// Which commit a candidate is held to, for a REF as typed.

// The pull request being built, as a CI system describes it. Believed only if git agrees.
struct PullRequest {
  bool merge = false;       // GITHUB_REF is "refs/pull/N/merge"
  std::string built;        // GITHUB_SHA
  std::string base_branch;  // GITHUB_BASE_REF: "main"
  std::string base_commit;  // the event's pull_request.base.sha: may be long out of date
};
// From the environment and the file of the event it names. What is missing stays empty.
[[nodiscard]] PullRequest read_pull_request(const sys::Files& files);

struct BaseWanted {
  std::string spec;           // REF or DIR as typed after --against
  std::string config_folder;  // absolute; DIR and the repository are looked for from here
  std::vector<Build>
      builds;  // commands of the selected engines, in order; a command that is repeated runs once
  std::string cache_folder;             // absolute; see default_cache_folder()
  double build_timeout_seconds = 3600;  // all builds together
  bool reuse = true;                    // TreeWanted::reuse
};

// Its root is the top of the worktree, or DIR. Keep `held` while programs of it run. Notes also say
// "the base was built in 41 s", "the base's build is taken from the cache", …
struct BaseTree : Tree {
  enum class Kind { worktree, folder };
  Kind kind = Kind::worktree;
  // Absolute: what stands in its place on the candidate's side: the top of the repository, by the
  // way the config's folder was named; that folder itself for a DIR and no git.
  std::string candidate_root;
  std::string candidate_real_root;  // the same with all links followed
  // 40 (or 64) hex digits. Of a DIR: absent where it is not the top of a work tree.
  std::optional<std::string> commit, candidate_commit;
  bool candidate_dirty = false;  // files that git knows differ from candidate_commit
  bool built = false;            // a build command was given (now or when it came into the cache)
  std::size_t merge_bases = 0;   // how many there are, where the base is the first of them
  std::string words;             // `merge-base of HEAD and origin/main, 1a2b3c4 "subject"`
};

// How `words` of a folder begin.
inline constexpr std::string_view k_folder_words = "folder ";

// $WEIR_CACHE, $XDG_CACHE_HOME/weir, ~/.cache/weir: the first that is set. Absolute. Code::config
// where none is.
[[nodiscard]] Result<std::string> default_cache_folder();

// The top of the repository, named the way `folder` (what `git` was opened with) is:
// "/link/project" for "/link/project/perf" also where /link leads elsewhere.
[[nodiscard]] std::string top_as_named(const Git& git, const std::string& folder);

// May take as long as a build; says what it does. Code::usage for a spec that is empty or looks
// like an option, Code::config where it names nothing or history is missing, Code::unavailable
// where the build fails, Code::interrupted on a stop.
[[nodiscard]] Result<BaseTree> prepare_base(const BaseWanted& wanted, const Effects& effects);

// The base's counterpart of `program` (absolute), the candidate's. Code::config when the program
// lies outside candidate_root, or is not an executable file in the base.
[[nodiscard]] Result<std::string> program_in_base(const sys::Files& files, const BaseTree& base,
                                                  const std::string& program);

// `path` (absolute, below `root` or `root` itself) through a link <out_folder>/sides/<16 hex
// digits> that leads to `root`, made where it is not there. The answer is absolute and, for one
// out_folder, as long for every root: the length of argv[0] moves a program's stack, and with that
// its times (Mytkowicz et al., "Producing wrong data without doing anything obviously wrong",
// 2009). Another `name` makes another link to the same root.
[[nodiscard]] Result<std::string> through_equal_length_link(sys::Files& files,
                                                            const std::string& out_folder,
                                                            const std::string& root,
                                                            const std::string& path,
                                                            const std::string& name = "");

}  // namespace weir::source
