// Presents a folder of a commit as files, and collects changes to it in memory.
#include "gate/source/tree_files.hpp"

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/sys/paths.hpp"

namespace weir::source {
namespace {

using Entry = Git::TreeEntry;

constexpr std::size_t k_max_files = 100'000;

tl::unexpected<Error> entry_error(const Entry& entry, const std::string& commit) {
  return fail(Code::config, "{} of {} is a {}: rules and baselines are read from plain files alone",
              text::printable(entry.path), text::short_commit(commit),
              entry.kind == Entry::Kind::link ? "symbolic link" : "submodule");
}

// Finds the entry of `path` in a commit; nullopt if it is absent. Fails if a link or submodule is
// on the way.
Result<std::optional<Entry>> find_entry(const Git& git, const std::string& commit,
                                        const std::string& path) {
  std::vector<std::string> leading_paths;
  for (std::size_t slash = path.find('/'); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    leading_paths.push_back(path.substr(0, slash));
  }
  leading_paths.push_back(path);
  WEIR_TRY(const std::vector<Entry> entries, git.entries(commit, leading_paths));
  std::optional<Entry> result;
  for (const Entry& entry : entries) {
    if (entry.kind == Entry::Kind::link || entry.kind == Entry::Kind::submodule) {
      return entry_error(entry, commit);
    }
    if (entry.path == path) result = entry;
  }
  return result;
}

tl::unexpected<Error> missing_file(const std::string& path) {
  return fail(Code::io, "{}: no such file in that commit", path);
}

}  // namespace

// Lists the files below `folder` of a commit, with `shown_prefix` in place of the folder. Empty if
// the commit lacks it; fails on links.
Result<std::unique_ptr<TreeFiles>> TreeFiles::open(const Git& git, const std::string& commit,
                                                   const std::string& folder,
                                                   const std::string& shown_prefix) {
  std::unique_ptr<TreeFiles> files(new TreeFiles(git, folder, shown_prefix));
  if (!folder.empty()) {
    WEIR_TRY(const std::optional<Entry> entry, find_entry(git, commit, folder));
    if (!entry) return files;
    if (entry->kind != Entry::Kind::folder) {
      return fail(Code::config, "{} of {} is no folder", folder, text::short_commit(commit));
    }
  }
  WEIR_TRY(const std::vector<Entry> entries, git.entries_below(commit, folder, k_max_files));
  for (const Entry& entry : entries) {
    if (entry.kind != Entry::Kind::file) return entry_error(entry, commit);
    const std::string inner = folder.empty() ? entry.path : entry.path.substr(folder.size() + 1);
    files->objects_.emplace(sys::join_path(shown_prefix, inner), entry.object);
  }
  return files;
}

std::vector<std::string> TreeFiles::differing(const TreeFiles& other) const {
  std::map<std::string, std::string> both = objects_;
  both.insert(other.objects_.begin(), other.objects_.end());
  std::vector<std::string> names;
  for (const auto& [name, object] : both) {
    const auto *here = look_up(objects_, name), *there = look_up(other.objects_, name);
    const bool is_same = here != nullptr && there != nullptr && *here == *there;
    if (!is_same) names.push_back(name);
  }
  return names;
}

// Returns the collected changes, by path from the top of the repository.
Git::Changes TreeFiles::changes() const {
  Git::Changes repository_changes;
  for (const auto& [name, text] : changes_) {
    const std::string inner = shown_prefix_.empty() ? name : name.substr(shown_prefix_.size() + 1);
    repository_changes[folder_.empty() ? inner : folder_ + "/" + inner] = text;
  }
  return repository_changes;
}

bool TreeFiles::contains(const std::string& path) const {
  const auto* changed = look_up(changes_, path);
  return changed != nullptr ? changed->has_value() : objects_.contains(path);
}

Result<std::string> TreeFiles::read(const std::string& path, std::uint64_t max_bytes) const {
  if (!contains(path)) return missing_file(path);
  if (const auto* changed = look_up(changes_, path)) return **changed;
  return git_.content(objects_.at(path), max_bytes).map_error(with_prefix(path));
}

Result<std::string> TreeFiles::read_prefix(const std::string& path, std::uint64_t bytes) const {
  WEIR_TRY(std::string text, read(path, std::uint64_t{64} << 20));
  if (text.size() > bytes) text.resize(bytes);
  return text;
}

Result<void> TreeFiles::write_atomic(const std::string& path, std::string_view text) {
  if (!shown_prefix_.empty() && !path.starts_with(shown_prefix_ + "/")) return unsupported(path);
  changes_[path] = std::string(text);
  return {};
}

// Returns the names of files and folders directly in `folder` ("" is the top).
std::set<std::string> TreeFiles::names_in(const std::string& folder) const {
  const std::string folder_prefix = folder.empty() || folder == "." ? "" : folder + "/";
  std::set<std::string> names;
  const auto add = [&](const auto& paths) {
    for (auto entry = paths.lower_bound(folder_prefix);
         entry != paths.end() && entry->first.starts_with(folder_prefix); ++entry) {
      const std::string& path = entry->first;
      if (!contains(path)) continue;
      const std::size_t slash = path.find('/', folder_prefix.size());
      names.insert(path.substr(folder_prefix.size(), slash - folder_prefix.size()));
    }
  };
  add(objects_);
  add(changes_);
  return names;
}

sys::Kind TreeFiles::kind(const std::string& path) const {
  if (contains(path)) return sys::Kind::file;
  const bool is_top = path.empty() || path == ".";
  return is_top || !names_in(path).empty() ? sys::Kind::folder : sys::Kind::absent;
}

Result<std::uint64_t> TreeFiles::size(const std::string& path) const {
  WEIR_TRY(const std::string text, read(path, std::uint64_t{64} << 20));
  return text.size();
}

Result<std::string> TreeFiles::stamp(const std::string& path) const {
  if (const std::string* object = look_up(objects_, path)) return *object;
  return missing_file(path);
}

Result<std::vector<std::string>> TreeFiles::list(const std::string& path) const {
  const std::set<std::string> names = names_in(path);
  if (names.empty() && !path.empty() && path != ".") return missing_file(path);
  return std::vector<std::string>(names.begin(), names.end());
}

Result<void> TreeFiles::remove(const std::string& path) {
  if (contains(path)) changes_[path] = std::nullopt;
  return {};
}

// Returns the content of one file of a commit; nullopt if the commit has none. Fails if it is a
// link, folder or too large.
Result<std::optional<std::string>> file_of(const Git& git, const std::string& commit,
                                           const std::string& path, std::uint64_t max_bytes) {
  WEIR_TRY(const std::optional<Entry> entry, find_entry(git, commit, path));
  if (!entry) return std::optional<std::string>();
  if (entry->kind != Entry::Kind::file) {
    return fail(Code::config, "{} of {} is no file", text::printable(path),
                text::short_commit(commit));
  }
  WEIR_TRY(std::string text,
           git.content(entry->object, max_bytes).map_error(with_prefix(text::printable(path))));
  return std::optional(std::move(text));
}

}  // namespace weir::source
