// The work tree that a folder lies in, and the settings of its repository.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/sys/files.hpp"

namespace weir::source {

// Finds the top of the work tree that `folder` (absolute, links followed) lies in: the nearest
// folder with a `.git`. Code::config if there is none, or if a folder on the way looks like a
// repository itself: a commit can hold such files, with settings of its author's.
[[nodiscard]] Result<std::string> find_top(const sys::Files& files, const std::string& folder);

struct GitSettings {
  std::vector<std::string> no_filters;  // settings that switch off every configured filter
  // Settings that switch off every filter but Git LFS by its own program.
  std::vector<std::string> lfs_filter_only;
  std::set<std::string> remotes;  // names
  std::set<std::string> files;    // where settings come from; relative to the top, or absolute
};
// Parses the answer of `git config --list --show-origin --null`.
[[nodiscard]] GitSettings parse_git_settings(std::string_view text);

}  // namespace weir::source
