#include "gate/source/tree_files.hpp"

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/sys/paths.hpp"

namespace weir::source {
namespace {

using Entry = Git::TreeEntry;

constexpr std::size_t k_most_files = 100'000;

tl::unexpected<Error> refused(const Entry& entry, const std::string& commit) {
  return fail(Code::config, "{} of {} is a {}: rules and baselines are read from plain files alone",
              text::printable(entry.path), short_commit(commit),
              entry.kind == Entry::Kind::link ? "symbolic link" : "submodule");
}

// The entry of `path`, whose every folder on the way is one; nothing where it is not there.
Result<std::optional<Entry>> find_entry(const Git& git, const std::string& commit,
                                        const std::string& path) {
  std::vector<std::string> steps;
  for (std::size_t at = path.find('/'); at != std::string::npos; at = path.find('/', at + 1)) {
    steps.push_back(path.substr(0, at));
  }
  steps.push_back(path);
  WEIR_TRY(const std::vector<Entry> entries, git.entries(commit, steps));
  std::optional<Entry> found;
  for (const Entry& entry : entries) {
    if (entry.kind == Entry::Kind::link || entry.kind == Entry::Kind::submodule) {
      return refused(entry, commit);
    }
    if (entry.path == path) found = entry;
  }
  return found;
}

tl::unexpected<Error> no_such(const std::string& path) {
  return fail(Code::io, "{}: no such file in that commit", path);
}

}  // namespace

Result<std::unique_ptr<TreeFiles>> TreeFiles::open(const Git& git, const std::string& commit,
                                                   const std::string& folder,
                                                   const std::string& shown) {
  std::unique_ptr<TreeFiles> files(new TreeFiles(git, folder, shown));
  if (!folder.empty()) {
    WEIR_TRY(const std::optional<Entry> entry, find_entry(git, commit, folder));
    if (!entry) return files;
    if (entry->kind != Entry::Kind::folder) {
      return fail(Code::config, "{} of {} is no folder", folder, short_commit(commit));
    }
  }
  WEIR_TRY(const std::vector<Entry> entries, git.entries_below(commit, folder, k_most_files));
  for (const Entry& entry : entries) {
    if (entry.kind != Entry::Kind::file) return refused(entry, commit);
    const std::string inner = folder.empty() ? entry.path : entry.path.substr(folder.size() + 1);
    files->objects_.emplace(sys::join_path(shown, inner), entry.object);
  }
  return files;
}

Git::Changes TreeFiles::changes() const {
  Git::Changes in_repository;
  for (const auto& [name, text] : changes_) {
    const std::string inner = shown_.empty() ? name : name.substr(shown_.size() + 1);
    in_repository[folder_.empty() ? inner : folder_ + "/" + inner] = text;
  }
  return in_repository;
}

bool TreeFiles::there(const std::string& path) const {
  const auto* changed = look_up(changes_, path);
  return changed != nullptr ? changed->has_value() : objects_.contains(path);
}

Result<std::string> TreeFiles::read(const std::string& path, std::uint64_t max_bytes) const {
  if (!there(path)) return no_such(path);
  if (const auto* changed = look_up(changes_, path)) return **changed;
  return git_.content(objects_.at(path), max_bytes).map_error(in_context(path));
}

Result<std::string> TreeFiles::read_prefix(const std::string& path, std::uint64_t bytes) const {
  WEIR_TRY(std::string text, read(path, std::uint64_t{64} << 20));
  if (text.size() > bytes) text.resize(bytes);
  return text;
}

Result<void> TreeFiles::write_atomic(const std::string& path, std::string_view text) {
  if (!shown_.empty() && !path.starts_with(shown_ + "/")) return not_here(path);
  changes_[path] = std::string(text);
  return {};
}

// Of all that is there below `folder` ("": all of it) the first step of the way.
std::set<std::string> TreeFiles::steps_below(const std::string& folder) const {
  const std::string below = folder.empty() || folder == "." ? "" : folder + "/";
  std::set<std::string> steps;
  const auto add = [&](const auto& names) {
    for (auto at = names.lower_bound(below); at != names.end() && at->first.starts_with(below);
         ++at) {
      if (!there(at->first)) continue;
      steps.insert(
          at->first.substr(below.size(), at->first.find('/', below.size()) - below.size()));
    }
  };
  add(objects_);
  add(changes_);
  return steps;
}

sys::Kind TreeFiles::kind(const std::string& path) const {
  if (there(path)) return sys::Kind::file;
  const bool top = path.empty() || path == ".";
  return top || !steps_below(path).empty() ? sys::Kind::folder : sys::Kind::absent;
}

Result<std::uint64_t> TreeFiles::size(const std::string& path) const {
  WEIR_TRY(const std::string text, read(path, std::uint64_t{64} << 20));
  return text.size();
}

Result<std::string> TreeFiles::stamp(const std::string& path) const {
  if (const std::string* found = look_up(objects_, path)) return *found;
  return no_such(path);
}

Result<std::vector<std::string>> TreeFiles::list(const std::string& path) const {
  const std::set<std::string> names = steps_below(path);
  if (names.empty() && !path.empty() && path != ".") return no_such(path);
  return std::vector<std::string>(names.begin(), names.end());
}

Result<void> TreeFiles::remove(const std::string& path) {
  if (there(path)) changes_[path] = std::nullopt;
  return {};
}

Result<std::optional<std::string>> file_of(const Git& git, const std::string& commit,
                                           const std::string& path, std::uint64_t most) {
  WEIR_TRY(const std::optional<Entry> entry, find_entry(git, commit, path));
  if (!entry) return std::optional<std::string>();
  if (entry->kind != Entry::Kind::file) {
    return fail(Code::config, "{} of {} is no file", text::printable(path), short_commit(commit));
  }
  return git.content(entry->object, most)
      .map([](std::string text) { return std::optional<std::string>(std::move(text)); })
      .map_error(in_context(text::printable(path)));
}

}  // namespace weir::source
