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
    const bool fine = text::is_alphanumeric(c) || c == '.' || c == '_' || c == '-';
    if (!fine) c = '-';
  }
  return (name.empty() ? "lock" : name.substr(0, 200)) + ".lock";
}

// Closing releases the locks.
struct HeldFiles final : Held {
  std::vector<Fd> files;
};

// The folder is everybody's: sticky, so that no user removes another's file.
Result<void> make_folder(const std::string& folder) {
  if (mkdir(folder.c_str(), 0777) == 0) {
    // Whatever the umask is; a folder that was there keeps what its owner gave it.
    if (chmod(folder.c_str(), 01777) != 0) {
      return fail(Code::io, "{}: cannot be shared with other users: {}", folder, errno_words());
    }
    return {};
  }
  const int error = errno;
  struct stat info {};
  if (lstat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return {};
  errno = error == EEXIST ? ENOTDIR : error;
  return fail(Code::io, "{}: no place for locks: {}; name another in WEIR_LOCK_DIR", folder,
              errno_words());
}

Result<Fd> open_file(const std::string& path) {
  // Reading is enough for a lock, and all that another user's file allows. It is opened before it
  // is made: in a sticky folder the system refuses to "make" what another user owns.
  for (int attempt = 0; attempt < 8; ++attempt) {
    Fd fd(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    if (!fd.open() && errno == ENOENT) {
      fd = Fd(open(path.c_str(), O_RDONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
      if (fd.open()) fchmod(fd.get(), 0644);
      if (!fd.open() && errno == EEXIST) continue;  // somebody was faster
    }
    if (!fd.open() && errno == EINTR) continue;
    if (!fd.open()) break;
    struct stat info {};
    if (fstat(fd.get(), &info) == 0 && S_ISREG(info.st_mode)) return fd;
    return fail(Code::io, "{}: not a file, so no lock; remove it", path);
  }
  return fail(Code::io, "{}: cannot be opened: {}; name another folder in WEIR_LOCK_DIR", path,
              errno_words());
}

// True: locked. False: somebody else has it.
Result<bool> try_lock(int fd, Share share, const std::string& path) {
  const int how = share == Share::exclusive ? LOCK_EX : LOCK_SH;
  while (flock(fd, how | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return false;
    if (errno != EINTR) return fail(Code::io, "{}: cannot be locked: {}", path, errno_words());
  }
  return true;
}

}  // namespace

std::string HostLocks::default_folder() {
  const auto given = environment_value("WEIR_LOCK_DIR");
  // Not TMPDIR: all users and jobs of the host have to mean the same place.
  return given && !given->empty() ? *given : "/tmp/weir-locks";
}

Result<std::unique_ptr<Held>> HostLocks::acquire(
    std::vector<LockWanted> wanted, const Stop& stop,
    const std::function<void(const std::string&)>& waiting) {
  std::ranges::sort(wanted, {}, [](const LockWanted& one) {
    return std::pair(one.name, one.share == Share::shared);
  });
  // Of one name the strongest wish counts: a second lock would wait for the first.
  const auto same_name = [](const auto& a, const auto& b) { return a.name == b.name; };
  wanted.erase(std::unique(wanted.begin(), wanted.end(), same_name), wanted.end());
  WEIR_CHECK(make_folder(folder_));
  auto held = std::make_unique<HeldFiles>();
  bool told = false;
  for (const LockWanted& lock : wanted) {
    const std::string path = join_path(folder_, file_name(lock.name));
    WEIR_TRY(Fd file, open_file(path));
    const int fd = held->files.emplace_back(std::move(file)).get();
    for (;;) {
      WEIR_TRY(const bool got, try_lock(fd, lock.share, path));
      if (got) break;
      if (stop.requested()) return fail(Code::interrupted, "stopped while waiting for {}", path);
      if (!told && waiting) {
        waiting(fmt::format("waiting for {}: another weir is using it ({})", lock.name, path));
      }
      told = true;
      (void)pause_.wait(k_retry_seconds, stop);
    }
  }
  return held;
}

}  // namespace weir::sys
