// Questions to one git repository, by the git program.
//
// What git answers is hostile (names and subjects are anybody's). No hooks, no monitors, no editor
// and no questions at a terminal: the caller's git configuration is used for the rest. Variables by
// which git tells its hooks where their repository is are kept away: inside a hook they would turn
// every question to another folder into one to that repository.
//
// Errors: Code::config where it is no repository that can be used, Code::interrupted on a stop,
// Code::unavailable without git, else Code::io with what git said. Safe to use from several
// threads.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/source/effects.hpp"

namespace weir::source {

// Names of git's variables that say where a repository is and how to read it.
[[nodiscard]] std::vector<std::string> git_variables();

class Git {
 public:
  // The repository whose work tree `folder` (absolute) lies in; a bare one is none.
  [[nodiscard]] static Result<Git> open(const Effects& effects, const std::string& folder);

  [[nodiscard]] const std::string& top() const { return top_; }  // of the work tree, links followed
  // From there to the folder it was opened with: "" or "perf/own".
  [[nodiscard]] const std::string& place() const { return place_; }
  // The folder of history, objects and branches: one for all work trees of a repository.
  [[nodiscard]] const std::string& store() const { return store_; }

  // The commit (40 or 64 hex digits) that `name` means; nothing where it means none. Never taken
  // for an option.
  [[nodiscard]] Result<std::optional<std::string>> commit(const std::string& name) const;
  [[nodiscard]] Result<std::vector<std::string>> parents(const std::string& commit) const;
  // The best common ancestors, git's choice first; empty where there are none.
  [[nodiscard]] Result<std::vector<std::string>> merge_bases(const std::string& one,
                                                             const std::string& other) const;
  // History has been cut off here, as `git clone --depth` does.
  [[nodiscard]] Result<bool> shallow() const;
  // A file that git knows differs from HEAD. New files do not count.
  [[nodiscard]] Result<bool> dirty() const;
  // `1a2b3c4 "Subject line"`, fit to show.
  [[nodiscard]] Result<std::string> words(const std::string& commit) const;

  // Checks `commit` out into the new folder `path` (absolute), with HEAD detached.
  [[nodiscard]] Result<void> add_worktree(const std::string& path, const std::string& commit) const;
  // The repository forgets a work tree whose folder has been removed; fine when it knew none.
  [[nodiscard]] Result<void> forget_worktree(const std::string& path) const;
  // Fetches and checks out what `.gitmodules` names, at any depth.
  [[nodiscard]] Result<void> update_submodules(const std::string& worktree) const;

 private:
  struct Answer {
    int exit_code = 0;
    std::string out, err;
    bool cut = false;  // it had more to say
  };
  Git(const Effects& effects, std::string program, std::string folder)
      : effects_(&effects), program_(std::move(program)), top_(std::move(folder)) {}
  [[nodiscard]] Result<Answer> call(std::vector<std::string> arguments, double timeout_seconds,
                                    const std::string& folder = "") const;
  // The first line of the answer of a question that has to work.
  [[nodiscard]] Result<std::string> ask(std::vector<std::string> arguments) const;

  const Effects* effects_;
  std::string program_, top_, place_, store_;
};

// "1a2b3c4"
[[nodiscard]] std::string short_commit(const std::string& commit);

}  // namespace weir::source
