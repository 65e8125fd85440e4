// Reads the states of a folder's files.
#include "gate/sys/file_state.hpp"

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <sys/stat.h>

namespace weir::sys {
namespace {

FileState state_of(const struct stat& info) {
#ifdef __APPLE__
  const timespec changed = info.st_ctimespec;
#else
  const timespec changed = info.st_ctim;
#endif
  constexpr auto k_any_execute = S_IXUSR | S_IXGRP | S_IXOTH;
  return {info.st_ino, static_cast<std::uint64_t>(info.st_size), changed.tv_sec, changed.tv_nsec,
          (info.st_mode & k_any_execute) != 0};
}

}  // namespace

std::optional<FileState> file_state(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return std::nullopt;
  // A folder changes with what is made in it.
  if (S_ISDIR(info.st_mode)) return FileState{.inode = info.st_ino};
  return S_ISREG(info.st_mode) ? std::optional(state_of(info)) : std::nullopt;
}

// Returns the state (size, times, inode) of all files and links below a folder, by path from it,
// except those in ".git".
Result<FileStates> file_states(const std::string& folder) {
  namespace fs = std::filesystem;
  FileStates states;
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    const fs::path& path = entry->path();
    if (path.filename() == ".git") {
      entry.disable_recursion_pending();
      continue;
    }
    struct stat info {};
    if (lstat(path.c_str(), &info) != 0) {
      if (errno == ENOENT) continue;  // removed meanwhile
      error = std::error_code(errno, std::generic_category());
      break;
    }
    if (S_ISREG(info.st_mode) || S_ISLNK(info.st_mode))
      states.emplace(path.lexically_relative(folder).string(), state_of(info));
  }
  if (error) return fail(Code::io, "{}: its files cannot be listed: {}", folder, error.message());
  return states;
}

}  // namespace weir::sys
