// System calls that differ between Linux and macOS, for the writing side of the probe file.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace weir_probe {

// Restores the program's errno at the end of its block.
class KeepErrno {
 public:
  KeepErrno() = default;
  KeepErrno(const KeepErrno&) = delete;
  KeepErrno& operator=(const KeepErrno&) = delete;
  ~KeepErrno() { errno = error_; }

 private:
  int error_ = errno;
};

// Writes to a descriptor that may have no reader left, without ending the program by SIGPIPE:
// blocks the signal, and takes it back if this write raised it.
inline void write_quietly(int descriptor, const char* text, size_t size) {
  sigset_t pipes, before, pending;
  sigemptyset(&pipes);
  sigaddset(&pipes, SIGPIPE);
  sigemptyset(&pending);
  sigpending(&pending);
  const bool was_pending = sigismember(&pending, SIGPIPE) == 1;
#ifdef __APPLE__
  const auto mask = pthread_sigmask;
#else
  const auto mask = sigprocmask;  // blocks in this thread; pthread_sigmask is too new a symbol
#endif
  mask(SIG_BLOCK, &pipes, &before);
  if (write(descriptor, text, size) < 0 && errno == EPIPE && !was_pending) {
#ifdef __APPLE__
    int signal_number = 0;
    sigpending(&pending);
    if (sigismember(&pending, SIGPIPE) == 1) sigwait(&pipes, &signal_number);
#else
    const timespec at_once = {0, 0};
    while (sigtimedwait(&pipes, nullptr, &at_once) < 0 && errno == EINTR) continue;
#endif
  }
  mask(SIG_SETMASK, &before, nullptr);
}

// As printf does; what is beyond 511 bytes is cut off.
__attribute__((format(printf, 2, 3))) inline void print_line(int descriptor, const char* format,
                                                             ...) {
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  if (length <= 0) return;
  const auto size = static_cast<size_t>(length);
  write_quietly(descriptor, line, size < sizeof line ? size : sizeof line - 1);
}

inline uint64_t now_nanoseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000ULL + static_cast<uint64_t>(now.tv_nsec);
}
// Processor time of this thread.
inline uint64_t thread_nanoseconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000ULL + static_cast<uint64_t>(now.tv_nsec);
}

#ifndef __APPLE__
// Returns the variable's value; null if it is not set, or the program has other rights than its
// caller.
inline const char* environment(const char* name) { return secure_getenv(name); }
inline const char* program_name() { return program_invocation_short_name; }
// Writes the program's command line as it stands now, its words parted by blanks; as far as it
// fits.
inline void read_command_line(char* out, size_t size) {
  const int descriptor = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  const ssize_t bytes = descriptor < 0 ? 0 : read(descriptor, out, size - 1);
  if (descriptor >= 0) close(descriptor);
  size_t length = bytes < 0 ? 0 : static_cast<size_t>(bytes);
  while (length > 0 && out[length - 1] == 0) --length;
  for (size_t i = 0; i < length; ++i) out[i] = out[i] == 0 ? ' ' : out[i];
  out[length] = 0;
}
// The system's number of the calling thread.
inline uint32_t thread_number() { return static_cast<uint32_t>(syscall(SYS_gettid)); }
// Returns true if the thread of this process has ended. False where that cannot be known.
inline bool thread_is_gone(uint32_t number) {
  return syscall(SYS_tgkill, getpid(), static_cast<pid_t>(number), 0) != 0 && errno == ESRCH;
}
// False where the system has none to give.
inline bool random_number(uint64_t* out) {
  return getrandom(out, sizeof *out, GRND_NONBLOCK) == sizeof *out;
}
// Extends a file that ends at `end` by `size` bytes and allocates their blocks. 0, or an errno.
inline int reserve_disk_space(int descriptor, off_t end, size_t size) {
  return posix_fallocate(descriptor, end, static_cast<off_t>(size));
}
// Returns the inode number of an open file; 0 if it cannot be read.
inline uint64_t read_inode(int descriptor) {
  struct statx status;  // fstat itself is too new a symbol
  return statx(descriptor, "", AT_EMPTY_PATH, STATX_INO, &status) == 0 ? status.stx_ino : 0;
}
// Puts the anonymous mapping `from` where `to` is mapped. No other thread may be there.
inline void move_mapping(void* from, void* to, size_t size) {
  mremap(from, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, to);
}
#else  // the same for macOS
inline const char* environment(const char* name) {
  return issetugid() != 0 ? nullptr : getenv(name);
}
inline const char* program_name() { return getprogname(); }
inline void read_command_line(char* out, size_t) { out[0] = 0; }
inline uint32_t thread_number() {
  uint64_t number = 0;
  pthread_threadid_np(nullptr, &number);
  return static_cast<uint32_t>(number);
}
inline bool thread_is_gone(uint32_t) { return false; }
inline bool random_number(uint64_t* out) { return getentropy(out, sizeof *out) == 0; }
inline int reserve_disk_space(int descriptor, off_t end, size_t size) {
  fstore_t store{};
  store.fst_flags = F_ALLOCATEALL;
  store.fst_posmode = F_PEOFPOSMODE;
  store.fst_length = static_cast<off_t>(size);
  if (fcntl(descriptor, F_PREALLOCATE, &store) == 0) {
    return ftruncate(descriptor, end + static_cast<off_t>(size)) == 0 ? 0 : errno;
  }
  if (errno == ENOSPC) return errno;
  // The file system cannot allocate blocks: writing zeros does.
  constexpr size_t k_step = 4096;
  static const char k_zeros[k_step] = {};
  for (size_t at = 0; at < size; at += k_step) {
    const size_t chunk = size - at < k_step ? size - at : k_step;
    const ssize_t written = pwrite(descriptor, k_zeros, chunk, end + static_cast<off_t>(at));
    if (written < 0) return errno;
    if (static_cast<size_t>(written) != chunk) return ENOSPC;
  }
  return 0;
}
inline uint64_t read_inode(int descriptor) {
  struct stat status;
  return fstat(descriptor, &status) == 0 ? status.st_ino : 0;
}
inline void move_mapping(void* from, void* to, size_t size) {
  void* target = mmap(to, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON | MAP_FIXED, -1, 0);
  if (target != MAP_FAILED) memcpy(target, from, size);
  munmap(from, size);
}
#endif

// Maps a file for reading and sets `*bytes` to its size. Null if it cannot be mapped, or is empty.
inline void* map_file(const char* path, size_t* bytes) {
  const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  // lseek, because fstat is a newer glibc's than the one that is required.
  const off_t size = descriptor < 0 ? 0 : lseek(descriptor, 0, SEEK_END);
  *bytes = size <= 0 ? 0 : static_cast<size_t>(size);
  void* at = size <= 0 ? MAP_FAILED : mmap(nullptr, *bytes, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (descriptor >= 0) close(descriptor);
  return at == MAP_FAILED ? nullptr : at;
}

// Writes `size` bytes at offset `at`. False, with errno set, if not all could be written.
inline bool write_all(int descriptor, const void* bytes, uint64_t size, uint64_t at) {
  const char* from = static_cast<const char*>(bytes);
  while (size != 0) {
    const ssize_t written = pwrite(descriptor, from, size, static_cast<off_t>(at));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    from += written;
    at += static_cast<uint64_t>(written);
    size -= static_cast<uint64_t>(written);
  }
  return true;
}

}  // namespace weir_probe
