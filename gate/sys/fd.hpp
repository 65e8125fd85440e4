// A file descriptor that closes itself; for use within sys.
#pragma once

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace weir::sys {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() { reset(); }
  void reset() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool open() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// The system's text for the call that just failed. Thread-safe, unlike strerror.
inline std::string errno_text() { return std::generic_category().message(errno); }

struct Pipe {
  Fd read, write;
};

// False with errno. Its ends are closed by exec.
[[nodiscard]] inline bool make_pipe(Pipe& result) {
  int fds[2];
#ifdef __linux__
  if (pipe2(fds, O_CLOEXEC) != 0) return false;
#else
  if (pipe(fds) != 0) return false;
  for (const int fd : fds) fcntl(fd, F_SETFD, FD_CLOEXEC);
#endif
  result.read = Fd(fds[0]);
  result.write = Fd(fds[1]);
  return true;
}

}  // namespace weir::sys
