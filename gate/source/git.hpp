// Questions to one git repository, by the git program.
//
// What git answers is hostile (names and subjects are anybody's). Git::call makes every command
// line and environment: no hooks, monitors, filters, replaced objects, editor or questions at a
// terminal. The rest is the caller's configuration, which no file of the work tree may be part of.
// Git's variables are kept away, but for the author and the way to other hosts: inside a hook they
// would turn every question to another folder into one to that repository.
//
// Errors: Code::config where it is no repository that can be used, Code::interrupted on a stop,
// Code::unavailable without git, else Code::io with what git said. Safe to use from several
// threads.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gate/profile/reach_diff.hpp"
#include "gate/source/work_tree.hpp"
#include "gate/sys/clock.hpp"
#include "gate/sys/files.hpp"
#include "gate/sys/interrupts.hpp"
#include "gate/sys/lock.hpp"
#include "gate/sys/process.hpp"

namespace weir::source {

// The effects that this module needs. References: the caller keeps them alive.

// One line for the person who waits: something that takes long begins. May be empty.
using Say = std::function<void(const std::string&)>;

struct Effects {
  sys::Processes& processes;
  sys::Files& files;
  const sys::Clock& clock;
  sys::Locks& locks;
  Say say;
  const sys::Stop& stop;

  void tell(const std::string& line) const {
    if (say) say(line);
  }
};

// Names of git's variables that say where a repository is and how to read it.
[[nodiscard]] std::vector<std::string> git_variables();

struct HistoryCommit {
  std::string name;
  std::vector<std::string> parents;  // names
};

struct CommitFacts {
  std::string name;
  std::optional<std::string> branch;
  double time = 0;  // committer's time; seconds since the epoch
};

class Git {
 public:
  // The repository whose work tree `folder` (absolute) lies in; a bare one is none. Code::config
  // for one that files of a commit could be, or whose settings a file of the work tree makes.
  [[nodiscard]] static Result<Git> open(const Effects& effects, const std::string& folder);
  // How two texts differ, line by line, from the first "@@" on; "" where they do not. No repository
  // is asked.
  [[nodiscard]] static Result<std::string> diff(const Effects& effects, std::string_view before,
                                                std::string_view now);

  [[nodiscard]] const std::string& top() const { return top_; }  // of the work tree, links followed
  // From there to the folder it was opened with: "" or "perf/own".
  [[nodiscard]] const std::string& place() const { return place_; }
  // The folder of history, objects and branches: one for all work trees of a repository.
  [[nodiscard]] const std::string& store() const { return common_folder_; }

  // The commit (40 or 64 hex digits) that `text` means: an id, HEAD, or the name of exactly one
  // ref, with ~N and ^N after it. Nothing where it means none. Code::config, with the full names,
  // where it may mean several refs; a full name ("refs/…") never does.
  [[nodiscard]] Result<std::optional<std::string>> resolve_commit(const std::string& text) const;
  [[nodiscard]] bool has_remote(const std::string& name) const {
    return settings_.remotes.contains(name);
  }
  // The top of the repository that has this one as a submodule; "" where none has.
  [[nodiscard]] Result<std::string> superproject() const;
  // `commit` is `tip` or lies before it. Both are commits that are here.
  [[nodiscard]] Result<bool> contains(const std::string& tip, const std::string& commit) const;
  [[nodiscard]] Result<std::vector<std::string>> parents(const std::string& commit) const;
  // The best common ancestors, git's choice first; empty where there are none.
  [[nodiscard]] Result<std::vector<std::string>> merge_bases(const std::string& one,
                                                             const std::string& other) const;
  // History has been cut off here, as `git clone --depth` does.
  [[nodiscard]] Result<bool> shallow() const;
  // A file that git knows differs from HEAD, whatever flags the index has. New files do not count,
  // nor do those that a sparse checkout left out.
  [[nodiscard]] Result<bool> dirty() const;
  // All commits that `bad` contains and `good` does not, children before parents, `bad` the first;
  // their parents may lie outside. Code::config where they are more than weir reads (16 MiB).
  [[nodiscard]] Result<std::vector<HistoryCommit>> history(const std::string& good,
                                                           const std::string& bad) const;
  // HEAD, with the branch that it stands on (none when detached); nothing where there is no commit.
  [[nodiscard]] Result<std::optional<CommitFacts>> head() const;
  // When a commit was made; nothing where it is not here.
  [[nodiscard]] Result<std::optional<double>> time_of(const std::string& commit) const;
  // Every commit of every branch and tag here, parents before children, lines of history not
  // mixed. Code::config where they are more than weir reads (128 MiB: some three million).
  [[nodiscard]] Result<std::vector<std::string>> all_commits() const;
  // The first line of each commit's message, by its name, of every branch and tag here, as text
  // that can be shown. Code::config where they are more than weir reads.
  [[nodiscard]] Result<std::map<std::string, std::string>> subjects() const;
  // Commits on the first-parent line of HEAD that changed something in `folder` (from the top; ""
  // is all), the oldest first.
  [[nodiscard]] Result<std::vector<CommitFacts>> commits_that_changed(
      const std::string& folder) const;
  // The last commit up to `commit` that changed something in `folder`, or, for "", anywhere but in
  // the folder `waivers`; nothing where none did. A shallow history ends with one that seems to.
  [[nodiscard]] Result<std::optional<std::string>> last_change(const std::string& commit,
                                                               const std::string& folder) const;
  // The caller's user.name; "" where git has none.
  [[nodiscard]] Result<std::string> user_name() const;
  // True if git ignores `path` (from the top), a file that need not exist.
  [[nodiscard]] Result<bool> ignores(const std::string& path) const;
  // The folder of its hooks (absolute): core.hooksPath of the caller's configuration, or `hooks` in
  // the folder that all work trees share. It need not exist.
  [[nodiscard]] Result<std::string> hooks_folder() const;
  // All files of the checkout that git knows, counted from top().
  [[nodiscard]] Result<std::vector<std::string>> tracked_files() const;
  // True if the index has `path` (from the top, not empty), a file below it, or a link or submodule
  // on the way to it.
  [[nodiscard]] Result<bool> tracks(const std::string& path) const;
  // The first line of its message, fit to show.
  [[nodiscard]] Result<std::string> subject(const std::string& commit) const;
  // Files that differ between two commits; renames with both names.
  [[nodiscard]] Result<std::vector<profile::ChangedFile>> changed(const std::string& from,
                                                                  const std::string& to) const;
  // Every file of a commit, from the top; submodules are one entry each.
  [[nodiscard]] Result<std::vector<std::string>> files_of(const std::string& commit) const;
  // `1a2b3c4 "Subject line"`, fit to show.
  [[nodiscard]] Result<std::string> words(const std::string& commit) const;

  // Checks `commit` out into the new folder `path` (absolute), with HEAD detached.
  [[nodiscard]] Result<void> add_worktree(const std::string& path, const std::string& commit) const;
  // The repository forgets a work tree whose folder has been removed; fine when it knew none.
  [[nodiscard]] Result<void> remove_worktree(const std::string& path) const;
  // Lists a commit's entries at `paths` (from the top; absent paths are left out), or all files,
  // links and submodules below a folder. Code::data if there are more than `most`.
  struct TreeEntry {
    enum class Kind { file, folder, link, submodule };
    Kind kind = Kind::file;
    std::string path, object;
    bool is_executable = false;
  };
  [[nodiscard]] Result<std::vector<TreeEntry>> entries(const std::string& commit,
                                                       const std::vector<std::string>& paths) const;
  [[nodiscard]] Result<std::vector<TreeEntry>> entries_below(const std::string& commit,
                                                             const std::string& folder,
                                                             std::size_t max_entries) const;
  // The content of a file by its object's name. More than `most` bytes is Code::data.
  [[nodiscard]] Result<std::string> content(const std::string& object,
                                            std::uint64_t max_bytes) const;
  // A file, link or submodule that differs between two states, by the names of its objects; ""
  // where it is not there.
  struct FileChange {
    std::string path, before, after;
    bool is_submodule = false;
  };
  // All of them between `commit` and `head`, or the files that git knows in the work tree (and the
  // index's submodules), if that is absent. Renames are two changes. Files that the index hides
  // (`skip-worktree`, `assume-unchanged`) are compared, too.
  [[nodiscard]] Result<std::vector<FileChange>> changes_since(
      const std::string& commit, const std::optional<std::string>& head) const;
  // All of them, by their paths from this top, between `commit` of the submodule at `path` and its
  // work tree. Fails if that is not checked out, or lacks the commit.
  [[nodiscard]] Result<std::vector<FileChange>> changes_in_submodule(
      const std::string& path, const std::string& commit) const;
  // Paths (from the top) of files below `folder` that in the work tree differ from `commit`, are
  // gone, or are not known to git.
  [[nodiscard]] Result<std::vector<std::string>> changed_files(const std::string& commit,
                                                               const std::string& folder) const;

  // The local branch `name`: its tip; nothing where there is none. Code::usage where that is no
  // branch's name.
  [[nodiscard]] Result<std::optional<std::string>> branch_tip(const std::string& name) const;
  // The work tree that has the branch checked out; "" where none has.
  [[nodiscard]] Result<std::string> checked_out_in(const std::string& branch) const;
  // A commit on top of `parent` (none: the first) with these files changed or removed, paths from
  // the top, and the branch moved there from `old` (none: it was not there). Nothing in any work
  // tree or index is touched. Answers the commit; nothing where the branch was not at `old` any
  // more: somebody was faster, and the caller looks again.
  using Changes = std::map<std::string, std::optional<std::string>>;
  struct Commit {
    std::optional<std::string> parent, old;
    Changes changes;
    std::string message;
  };
  [[nodiscard]] Result<std::optional<std::string>> commit_to(const std::string& branch,
                                                             const Commit& wanted) const;

  // Fetches and checks out what `.gitmodules` names, at any depth.
  [[nodiscard]] Result<void> update_submodules(const std::string& worktree) const;

 private:
  // Files with a flag of the index that hides them from git's own comparisons. `before`: as in the
  // index.
  struct HiddenChanges {
    std::vector<FileChange> changes;
    std::set<std::string> left_out;  // paths of those that a sparse checkout may have left out
  };
  [[nodiscard]] Result<HiddenChanges> hidden_changes() const;
  // Replaces an `after` of zeros, which stands for a file of the work tree, by its content's id; by
  // `before` where that points to the content (Git LFS).
  [[nodiscard]] Result<void> hash_work_tree_files(std::vector<FileChange>& changes) const;
  [[nodiscard]] Result<std::set<std::string>> filtered_files(
      const std::vector<std::string>& paths) const;
  [[nodiscard]] bool is_smudged(const FileChange& change) const;
  struct Answer {
    int exit_code = 0;
    std::string out, err;
    bool cut = false;  // it had more to say
  };
  struct CallOptions {
    double timeout_seconds = 120;
    std::string folder{};  // top() when empty
    std::uint64_t output_limit = std::uint64_t{16} << 20;
    sys::EnvironmentList env{};
    // Programs on the content of files, which attributes name.
    enum class Filters { none, lfs, all } filters = Filters::none;
    std::string
        too_much_message{};  // call_checked(): the Error, Code::config, where it has more to say
  };
  Git(const Effects& effects, std::string program, std::string folder)
      : effects_(&effects), program_(std::move(program)), top_(std::move(folder)) {}
  [[nodiscard]] CallOptions history_options() const;
  static const CallOptions k_default_options;
  struct Ref {
    std::string name, object;
  };
  [[nodiscard]] Result<void> read_settings();
  [[nodiscard]] Result<std::vector<Ref>> refs_named(const std::string& name) const;
  [[nodiscard]] Result<bool> abbreviates_commit(const std::string& name) const;
  [[nodiscard]] Result<std::optional<std::string>> follow_upstream(const std::string& name) const;
  [[nodiscard]] Result<std::optional<std::string>> resolve_name(const std::string& name) const;
  [[nodiscard]] Result<Answer> call(std::vector<std::string> arguments,
                                    const CallOptions& options = k_default_options) const;
  // The whole answer to a question that has to work; `what` was asked: the verb, where it is empty.
  [[nodiscard]] Result<std::string> call_checked(std::vector<std::string> arguments,
                                                 const CallOptions& options = k_default_options,
                                                 std::string_view what = "") const;
  // The same, without the newline at its end.
  [[nodiscard]] Result<std::string> ask(const std::vector<std::string>& arguments) const;
  [[nodiscard]] tl::unexpected<Error> git_error(std::string_view what, const Answer& answer) const;

  const Effects* effects_;
  std::string program_, top_, place_, common_folder_;
  GitSettings settings_;
};

// Returns true for 40 or 64 hex digits, which git takes for an id, whatever refs there are.
[[nodiscard]] bool is_full_id(std::string_view text);
// Returns true for the id that git writes of no object, or of one that is not stored: all zeros.
[[nodiscard]] inline bool is_zero_id(std::string_view id) {
  return id.find_first_not_of('0') == std::string_view::npos;
}

// The input of a pre-push hook: a line for each reference that is pushed. Pure.

struct Pushed {
  std::string local_ref;      // "refs/heads/topic"; "(delete)"; or as typed: "HEAD~1"
  std::string commit;         // pushed object: for an annotated tag the tag; zeros for a deletion
  std::string remote_ref;     // "refs/heads/topic"
  std::string remote_commit;  // current one there, maybe unknown here; zeros for a new reference

  [[nodiscard]] bool deletes() const { return is_zero_id(commit); }
  [[nodiscard]] bool is_new() const { return is_zero_id(remote_commit); }
};

// "LOCAL_REF LOCAL_ID REMOTE_REF REMOTE_ID" a line. Code::data for a line that is none.
[[nodiscard]] Result<std::vector<Pushed>> parse_pushed(std::string_view text);

}  // namespace weir::source
