// Finds the work tree that a folder lies in, and reads the settings of its repository.
#include "gate/source/work_tree.hpp"

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/sys/paths.hpp"

namespace weir::source {
namespace {

// Returns true if git would take a folder with these entries for a repository.
bool looks_like_repository(const std::vector<std::string>& names) {
  if (!holds(names, "HEAD")) return false;
  return holds(names, "commondir") || (holds(names, "objects") && holds(names, "refs"));
}

// Returns the middle part of "SECTION.name.with.dots.KEY"; "" for another key.
std::string subsection(const std::string& key, std::string_view section) {
  if (!key.starts_with(fmt::format("{}.", section))) return "";
  const std::size_t begin = section.size() + 1, end = key.rfind('.');
  return end > begin ? key.substr(begin, end - begin) : "";
}

}  // namespace

// Returns the top of the work tree around a folder. Searches itself: git before 2.38 may enter a
// folder that only looks like a repository.
Result<std::string> find_top(const sys::Files& files, const std::string& folder) {
  for (std::string current = folder;; current = sys::folder_of(current)) {
    const std::vector<std::string> names = files.list(current).value_or(std::vector<std::string>());
    if (holds(names, ".git")) return current;
    if (looks_like_repository(names)) {
      return fail(Code::config,
                  "{}: no git repository that can be used: {} looks like a repository, but has no "
                  "work tree. Remove its HEAD, or give a folder of the repository around it.",
                  text::printable(folder), text::printable(current));
    }
    if (current == "/" || current == ".") break;
  }
  return fail(Code::config, "{}: no git repository that can be used: there is none at or above it",
              text::printable(folder));
}

// Parses the answer of `git config --list --show-origin --null`: files of settings, remotes, and
// how to switch filters off.
GitSettings parse_git_settings(std::string_view text) {
  constexpr std::string_view k_lfs[] = {"git-lfs clean -- %f", "git-lfs smudge -- %f",
                                        "git-lfs smudge --skip -- %f", "git-lfs filter-process",
                                        "git-lfs filter-process --skip"};
  GitSettings settings;
  std::set<std::string> filters;
  bool is_lfs_own = true;
  // Origin and setting in turn, each before a zero byte: "file:.git/config", "core.bare\nfalse".
  const std::vector<std::string> parts = text::split(text, '\0');
  for (std::size_t i = 0; i + 1 < parts.size(); i += 2) {
    constexpr std::string_view k_file = "file:";
    if (parts[i].starts_with(k_file)) settings.files.insert(parts[i].substr(k_file.size()));
    const std::string key = parts[i + 1].substr(0, parts[i + 1].find('\n'));
    const std::string filter = subsection(key, "filter");
    const bool is_command = !key.ends_with(".required");
    const std::string value = parts[i + 1].substr(std::min(key.size() + 1, parts[i + 1].size()));
    if (filter == "lfs" && is_command && !holds(k_lfs, value)) is_lfs_own = false;
    filters.insert(filter);
    settings.remotes.insert(subsection(key, "remote"));
  }
  filters.erase("");
  settings.remotes.erase("");
  for (const std::string& name : filters) {
    for (const char* setting : {"clean=", "smudge=", "process=", "required=false"}) {
      settings.no_filters.push_back(fmt::format("filter.{}.{}", name, setting));
      if (name != "lfs" || !is_lfs_own)
        settings.lfs_filter_only.push_back(settings.no_filters.back());
    }
  }
  return settings;
}

}  // namespace weir::source
