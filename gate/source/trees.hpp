// Checkouts of single commits with what was built in them, kept for later gates.
//
// <cache>/trees/<repository>-<commit>-<build>/ is a git work tree; the file of that name and .json
// beside it says that it is whole, and is written last; .log is what its build printed. One that
// has no such file, because its build failed or was killed, is removed and made again when it is
// wanted. The five used last are kept for each repository.
//
// Nothing here can tell who wrote a tree: any program of this user could have. A caller that cannot
// trust them all asks for a tree of its own (TreeWanted::reuse).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gate/config/settings.hpp"
#include "gate/source/git.hpp"

namespace weir::source {

// Runs the build commands of a base in its checkout.

struct Build {
  std::string engine;         // the engine's name, for messages
  config::Arguments command;  // argv; argv[0] with a '/' is counted from the folder it runs in
  std::vector<std::string> passed_variables{};  // as ProcessSpec::passed_variables
};

// A command as it can be pasted into a shell; hostile characters are shown as they would be typed.
[[nodiscard]] std::string shell_line(const std::vector<std::string>& argv);

// Runs them one after another in `folder`, without a shell and without git's variables. What they
// print goes to the file `log` (its beginning and end where it is long). A command that fails is
// Code::unavailable with the end of what it printed and how to run it again; one whose program is
// not there too. Code::interrupted on a stop.
[[nodiscard]] Result<void> run_builds(const std::vector<Build>& builds, const std::string& folder,
                                      const std::string& log, double timeout_seconds,
                                      const Effects& effects);

struct TreeWanted {
  std::string commit;
  std::vector<Build> builds;  // run in git.place() of the checkout
  std::string cache_folder;
  double build_timeout_seconds = 3600;  // all builds together
  std::size_t keep = 5;                 // trees of this repository, this one included
  // False: a tree of its own under a name that nobody had, never used again. It stays until another
  // tree of this repository is made.
  bool reuse = true;
};
struct Tree {
  std::string root;  // absolute
  bool from_cache = false;
  double build_seconds = 0;  // when it was made
  std::vector<std::string> notes;
  // While it lives no other weir removes the tree.
  std::shared_ptr<sys::Held> held;
};

// The tree, made where it is not there. Two weirs that want the same one make it once: the second
// waits for the first. Fails as Git and run_builds() do; a tree whose build failed stays, so that
// it can be looked into.
[[nodiscard]] Result<Tree> prepare_tree(const Git& git, const TreeWanted& wanted,
                                        const Effects& effects);

// The same where it is there already; nothing where it would have to be made.
[[nodiscard]] Result<std::optional<Tree>> find_tree(const Git& git, const TreeWanted& wanted,
                                                    const Effects& effects);

}  // namespace weir::source
