// Locks between programs of one host, as files in a shared folder.
#include "gate/sys/lock.hpp"

#include <algorithm>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "gate/base/text.hpp"
#include "gate/sys/clock.hpp"
#include "gate/sys/paths.hpp"
#include "gate/sys/process.hpp"

namespace weir::sys {
namespace {

constexpr double k_retry_seconds = 0.05;

std::string file_name(std::string name) {
  for (char& c : name) {
    const bool is_allowed = text::is_alphanumeric(c) || c == '.' || c == '_' || c == '-';
    if (!is_allowed) c = '-';
  }
  return (name.empty() ? "lock" : name.substr(0, 200)) + ".lock";
}

// Closing releases the locks.
struct HeldFiles final : Held {
  std::vector<Fd> files;
};

// Creates the folder of lock files, if needed, for all users. It is sticky, so that no user can
// remove another's file.
Result<void> make_folder(const std::string& folder) {
  if (mkdir(folder.c_str(), 0777) == 0) {
    // Set the mode despite the umask. An existing folder keeps the mode that its owner gave it.
    if (chmod(folder.c_str(), 01777) != 0) {
      return fail(Code::io, "{}: cannot be shared with other users: {}", folder, errno_text());
    }
    return {};
  }
  const int error = errno;
  struct stat info {};
  if (lstat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return {};
  errno = error == EEXIST ? ENOTDIR : error;
  return fail(Code::io, "{}: no place for locks: {}; name another in WEIR_LOCK_DIR", folder,
              errno_text());
}

// Opens the file of a lock, and creates it if needed. Fails if it is no regular file, or may not
// be read.
Result<Fd> open_file(const std::string& path) {
  // Read access is enough for a lock, and may be all that another user's file allows. Try to open
  // before creating: in a sticky folder, the system refuses O_CREAT on another user's file.
  for (int attempt = 0; attempt < 8; ++attempt) {
    Fd fd(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    if (!fd.open() && errno == ENOENT) {
      fd = Fd(open(path.c_str(), O_RDONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
      if (fd.open()) fchmod(fd.get(), 0644);
      if (!fd.open() && errno == EEXIST) continue;  // another program has just created it
    }
    if (!fd.open() && errno == EINTR) continue;
    if (!fd.open()) break;
    struct stat info {};
    if (fstat(fd.get(), &info) == 0 && S_ISREG(info.st_mode)) return fd;
    return fail(Code::io, "{}: not a file, so no lock; remove it", path);
  }
  return fail(Code::io, "{}: cannot be opened: {}; name another folder in WEIR_LOCK_DIR", path,
              errno_text());
}

// Returns true if the lock was taken, false if another program has it.
Result<bool> try_lock(int fd, Share share, const std::string& path) {
  const int operation = share == Share::exclusive ? LOCK_EX : LOCK_SH;
  while (flock(fd, operation | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return false;
    if (errno != EINTR) return fail(Code::io, "{}: cannot be locked: {}", path, errno_text());
  }
  return true;
}

}  // namespace

std::string HostLocks::default_folder() {
  const auto folder = environment_value("WEIR_LOCK_DIR");
  // Not TMPDIR, because all users and jobs of the host must agree on one folder.
  return folder && !folder->empty() ? *folder : "/tmp/weir-locks";
}

// Takes all locks of this machine, waiting for each, and returns an object that holds them. They
// are taken by name, so that two callers cannot block each other. `waiting` is called once with a
// message.
Result<std::unique_ptr<Held>> HostLocks::acquire(
    std::vector<LockWanted> wanted, const Stop& stop,
    const std::function<void(const std::string&)>& waiting) {
  std::ranges::sort(wanted, {}, [](const LockWanted& lock) {
    return std::pair(lock.name, lock.share == Share::shared);
  });
  // Keep only the stronger lock of a name: a second one would wait for the first.
  const auto same_name = [](const auto& a, const auto& b) { return a.name == b.name; };
  wanted.erase(std::unique(wanted.begin(), wanted.end(), same_name), wanted.end());
  WEIR_CHECK(make_folder(folder_));
  auto held_files = std::make_unique<HeldFiles>();
  bool has_reported = false;
  for (const LockWanted& lock : wanted) {
    const std::string path = join_path(folder_, file_name(lock.name));
    WEIR_TRY(Fd file, open_file(path));
    const int fd = held_files->files.emplace_back(std::move(file)).get();
    for (;;) {
      WEIR_TRY(const bool is_locked, try_lock(fd, lock.share, path));
      if (is_locked) break;
      if (stop.requested()) return fail(Code::interrupted, "stopped while waiting for {}", path);
      if (!has_reported && waiting) {
        waiting(fmt::format("waiting for {}: another weir is using it ({})", lock.name, path));
      }
      has_reported = true;
      (void)pause_.wait(k_retry_seconds, stop);
    }
  }
  return held_files;
}

}  // namespace weir::sys
