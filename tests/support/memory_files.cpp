// A file system in memory.
#include "tests/support/memory_files.hpp"

#include <algorithm>

#include "gate/sys/paths.hpp"

namespace weir::sys {
namespace {

tl::unexpected<Error> absent(const std::string& path) {
  return fail(Code::io, "{}: cannot be read: No such file or directory", path);
}

tl::unexpected<Error> full(const std::string& path) {
  return fail(Code::io, "{}: cannot be written: No space left on device", path);
}

bool below(const std::string& path, const std::string& folder) {
  return path == folder || path.starts_with(folder == "/" ? folder : folder + "/");
}

}  // namespace

class MemoryFiles::Log final : public AppendLog {
 public:
  Log(MemoryFiles& files, std::string path) : files_(files), path_(std::move(path)) {}
  Result<void> append(std::string_view line) override {
    const std::lock_guard hold(files_.mutex_);
    if (files_.refused(path_)) return full(path_);
    const auto room = files_.tears_.find(path_);
    if (room != files_.tears_.end() && line.size() >= room->second) {
      files_.files_[path_].append(line.substr(0, room->second));
      files_.tears_.erase(room);
      return full(path_);
    }
    if (room != files_.tears_.end()) room->second -= line.size() + 1;
    files_.files_[path_].append(line).push_back('\n');
    return {};
  }

 private:
  MemoryFiles& files_;
  std::string path_;
};

MemoryFiles::MemoryFiles() { folders_ = {"/", "."}; }

void MemoryFiles::put(const std::string& path, std::string text) {
  const std::lock_guard hold(mutex_);
  for (std::string folder = folder_of(path); folders_.insert(folder).second;) {
    folder = folder_of(folder);
  }
  files_[path] = std::move(text);
  ++writes_[path];
}

void MemoryFiles::set_executable(const std::string& path) {
  const std::lock_guard hold(mutex_);
  executables_.insert(path);
}

void MemoryFiles::refuse_writes(const std::string& path) {
  const std::lock_guard hold(mutex_);
  refused_.insert(path);
}

bool MemoryFiles::refused(const std::string& path) const {
  return std::any_of(refused_.begin(), refused_.end(),
                     [&](const std::string& folder) { return below(path, folder); });
}

std::string MemoryFiles::follow(std::string path, bool last) const {
  for (int rounds = 0; rounds < 40; ++rounds) {
    const auto link = std::find_if(links_.begin(), links_.end(), [&](const auto& entry) {
      return below(path, entry.first) && (last || path != entry.first);
    });
    if (link == links_.end()) return path;
    path =
        absolute(join_path(folder_of(link->first), link->second) + path.substr(link->first.size()));
  }
  return "";  // in a circle: no name of anything
}

Kind MemoryFiles::kind_locked(const std::string& name) const {
  const std::string path = follow(name);
  if (files_.contains(path)) return Kind::file;
  return folders_.contains(path) ? Kind::folder : Kind::absent;
}

Result<std::string> MemoryFiles::read(const std::string& name, std::uint64_t max_bytes) const {
  const std::lock_guard hold(mutex_);
  const std::string path = follow(name);
  const auto file = files_.find(path);
  if (file == files_.end()) return absent(path);
  if (file->second.size() > max_bytes) {
    return fail(Code::data, "{}: more than {} bytes", path, max_bytes);
  }
  return file->second;
}

Result<std::string> MemoryFiles::read_prefix(const std::string& name, std::uint64_t bytes) const {
  const std::lock_guard hold(mutex_);
  const std::string path = follow(name);
  const auto file = files_.find(path);
  if (file == files_.end()) return absent(path);
  return file->second.substr(0, bytes);
}

Result<void> MemoryFiles::write_atomic(const std::string& name, std::string_view text) {
  const std::lock_guard hold(mutex_);
  const std::string path = follow(name, false);
  if (!folders_.contains(folder_of(path))) return absent(path);
  if (refused(path)) return full(path);
  links_.erase(path);
  files_[path] = std::string(text);
  ++writes_[path];
  return {};
}

void MemoryFiles::tear_after(const std::string& path, std::size_t bytes) {
  const std::lock_guard hold(mutex_);
  tears_[path] = bytes;
}

Result<std::unique_ptr<AppendLog>> MemoryFiles::append_log(const std::string& name,
                                                           std::uint64_t keep_bytes) {
  const std::lock_guard hold(mutex_);
  const std::string path = follow(name);
  if (!folders_.contains(folder_of(path))) return absent(path);
  if (refused(path)) return full(path);
  std::string& text = files_[path];
  if (text.size() > keep_bytes) text.resize(keep_bytes);
  return std::make_unique<Log>(*this, path);
}

Kind MemoryFiles::kind(const std::string& path) const {
  const std::lock_guard hold(mutex_);
  return kind_locked(path);
}

bool MemoryFiles::readable(const std::string& path) const { return exists(path); }
bool MemoryFiles::executable(const std::string& name) const {
  const std::lock_guard hold(mutex_);
  const std::string path = follow(name);
  return executables_.contains(path);
}
bool MemoryFiles::writable(const std::string& path) const {
  const std::lock_guard hold(mutex_);
  return kind_locked(path) != Kind::absent && !refused(path);
}

Result<std::uint64_t> MemoryFiles::size(const std::string& name) const {
  const std::lock_guard hold(mutex_);
  const std::string path = follow(name);
  const auto file = files_.find(path);
  if (file == files_.end()) return absent(path);
  return file->second.size();
}

Result<std::string> MemoryFiles::stamp(const std::string& name) const {
  const std::lock_guard hold(mutex_);
  const std::string path = follow(name);
  const auto file = files_.find(path);
  if (file == files_.end()) return absent(path);
  const auto writes = writes_.find(path);
  return fmt::format("{} bytes, write {}", file->second.size(),
                     writes == writes_.end() ? 0 : writes->second);
}

Result<std::vector<std::string>> MemoryFiles::list(const std::string& name) const {
  const std::lock_guard hold(mutex_);
  const std::string path = follow(name);
  if (!folders_.contains(path)) return absent(path);
  std::set<std::string> names;
  const auto add = [&](const std::string& entry) {
    if (entry != path && folder_of(entry) == path) names.insert(file_name_of(entry));
  };
  for (const auto& [file, text] : files_) add(file);
  for (const auto& folder : folders_) add(folder);
  for (const auto& [link, target] : links_) add(link);
  return std::vector<std::string>(names.begin(), names.end());
}

Result<void> MemoryFiles::make_dirs(const std::string& name) {
  const std::lock_guard hold(mutex_);
  const std::string path = follow(name);
  if (refused(path)) return full(path);
  std::vector<std::string> missing;
  for (std::string folder = path; !folders_.contains(folder); folder = folder_of(folder)) {
    if (files_.contains(folder)) return fail(Code::io, "{}: is there, but not a folder", folder);
    missing.push_back(folder);
  }
  folders_.insert(missing.begin(), missing.end());
  return {};
}

Result<void> MemoryFiles::link(const std::string& target, const std::string& name) {
  const std::lock_guard hold(mutex_);
  const std::string path = follow(name, false);
  if (!folders_.contains(folder_of(path))) return absent(path);
  if (refused(path)) return full(path);
  if (folders_.contains(path)) {
    return fail(Code::io, "{}: cannot be replaced: Is a directory", path);
  }
  files_.erase(path);
  links_[path] = target;
  return {};
}

Result<void> MemoryFiles::remove(const std::string& name) {
  const std::lock_guard hold(mutex_);
  const std::string path = follow(name, false);
  const auto inside = [&](const std::string& entry_path) {
    return entry_path != path && below(entry_path, path);
  };
  if (std::any_of(files_.begin(), files_.end(),
                  [&](const auto& entry) { return inside(entry.first); }) ||
      std::any_of(links_.begin(), links_.end(),
                  [&](const auto& entry) { return inside(entry.first); }) ||
      std::any_of(folders_.begin(), folders_.end(), inside)) {
    return fail(Code::io, "{}: cannot be removed: Directory not empty", path);
  }
  files_.erase(path);
  folders_.erase(path);
  links_.erase(path);
  return {};
}

Result<void> MemoryFiles::remove_tree(const std::string& name) {
  const std::lock_guard hold(mutex_);
  const std::string path = follow(name, false);
  std::erase_if(files_, [&](const auto& entry) { return below(entry.first, path); });
  std::erase_if(folders_, [&](const auto& folder) { return below(folder, path); });
  std::erase_if(links_, [&](const auto& entry) { return below(entry.first, path); });
  return {};
}

}  // namespace weir::sys
