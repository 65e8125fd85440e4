// What differs between Linux and macOS for the writing side of the probe file.
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

// To the end of its block: the program's errno is the program's.
class KeepErrno {
 public:
  KeepErrno() = default;
  KeepErrno(const KeepErrno&) = delete;
  KeepErrno& operator=(const KeepErrno&) = delete;
  ~KeepErrno() { errno = error_; }

 private:
  int error_ = errno;
};

// Writes to a descriptor that nobody may read any more: then there is nobody left to tell, and no
// reason to end the program by SIGPIPE.
inline void write_quietly(int descriptor, const char* text, size_t size) {
  sigset_t pipes, before, pending;
  sigemptyset(&pipes);
  sigaddset(&pipes, SIGPIPE);
  sigemptyset(&pending);
  sigpending(&pending);
  const bool had_one = sigismember(&pending, SIGPIPE) == 1;
#ifdef __APPLE__
  const auto mask = pthread_sigmask;
#else
  const auto mask = sigprocmask;  // of this thread; the other's symbol is too new
#endif
  mask(SIG_BLOCK, &pipes, &before);
  if (write(descriptor, text, size) < 0 && errno == EPIPE && !had_one) {
#ifdef __APPLE__
    int taken = 0;
    sigpending(&pending);
    if (sigismember(&pending, SIGPIPE) == 1) sigwait(&pipes, &taken);
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
  const auto all = static_cast<size_t>(length);
  write_quietly(descriptor, line, all < sizeof line ? all : sizeof line - 1);
}

inline uint64_t now_nanoseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000ULL + static_cast<uint64_t>(now.tv_nsec);
}
// Of the processor, that this thread has taken.
inline uint64_t thread_nanoseconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000ULL + static_cast<uint64_t>(now.tv_nsec);
}

#ifndef __APPLE__
// Null where there is none, and in a program with other rights than its caller's.
inline const char* environment(const char* name) { return secure_getenv(name); }
inline const char* program_name() { return program_invocation_short_name; }
// The system's number of the calling thread.
inline uint32_t thread_number() { return static_cast<uint32_t>(syscall(SYS_gettid)); }
// Has the thread of this process ended? False where that cannot be told.
inline bool thread_is_gone(uint32_t number) {
  return syscall(SYS_tgkill, getpid(), static_cast<pid_t>(number), 0) != 0 && errno == ESRCH;
}
// False where the system has none to give.
inline bool random_number(uint64_t* out) {
  return getrandom(out, sizeof *out, GRND_NONBLOCK) == sizeof *out;
}
// Gives a file that ends at `end` `size` bytes more and all their blocks. 0, or an errno.
inline int reserve(int descriptor, off_t end, size_t size) {
  return posix_fallocate(descriptor, end, static_cast<off_t>(size));
}
// What tells an open file from another of its name; 0 when it cannot be told.
inline uint64_t inode_of(int descriptor) {
  struct statx status;  // fstat itself is too new a symbol
  return statx(descriptor, "", AT_EMPTY_PATH, STATX_INO, &status) == 0 ? status.stx_ino : 0;
}
// Puts the anonymous mapping `from` where `to` is mapped. No other thread may be there.
inline void move_mapping(void* from, void* to, size_t size) {
  mremap(from, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, to);
}
#else  // the same of macOS
inline const char* environment(const char* name) {
  return issetugid() != 0 ? nullptr : getenv(name);
}
inline const char* program_name() { return getprogname(); }
inline uint32_t thread_number() {
  uint64_t number = 0;
  pthread_threadid_np(nullptr, &number);
  return static_cast<uint32_t>(number);
}
inline bool thread_is_gone(uint32_t) { return false; }
inline bool random_number(uint64_t* out) { return getentropy(out, sizeof *out) == 0; }
inline int reserve(int descriptor, off_t end, size_t size) {
  fstore_t wanted{};
  wanted.fst_flags = F_ALLOCATEALL;
  wanted.fst_posmode = F_PEOFPOSMODE;
  wanted.fst_length = static_cast<off_t>(size);
  if (fcntl(descriptor, F_PREALLOCATE, &wanted) == 0) {
    return ftruncate(descriptor, end + static_cast<off_t>(size)) == 0 ? 0 : errno;
  }
  if (errno == ENOSPC) return errno;
  // A file system that cannot: written, it has them as well.
  constexpr size_t k_step = 4096;
  static const char k_zeros[k_step] = {};
  for (size_t at = 0; at < size; at += k_step) {
    const size_t wish = size - at < k_step ? size - at : k_step;
    const ssize_t done = pwrite(descriptor, k_zeros, wish, end + static_cast<off_t>(at));
    if (done < 0) return errno;
    if (static_cast<size_t>(done) != wish) return ENOSPC;
  }
  return 0;
}
inline uint64_t inode_of(int descriptor) {
  struct stat status;
  return fstat(descriptor, &status) == 0 ? status.st_ino : 0;
}
inline void move_mapping(void* from, void* to, size_t size) {
  void* there = mmap(to, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON | MAP_FIXED, -1, 0);
  if (there != MAP_FAILED) memcpy(there, from, size);
  munmap(from, size);
}
#endif

// A whole file, mapped to read; null where it cannot be, or is empty. `*bytes`: its size.
inline void* map_file(const char* path, size_t* bytes) {
  const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  // lseek, because fstat is a newer glibc's than the one that is required.
  const off_t size = descriptor < 0 ? 0 : lseek(descriptor, 0, SEEK_END);
  *bytes = size <= 0 ? 0 : static_cast<size_t>(size);
  void* at = size <= 0 ? MAP_FAILED : mmap(nullptr, *bytes, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (descriptor >= 0) close(descriptor);
  return at == MAP_FAILED ? nullptr : at;
}

// All of it, or false with errno set.
inline bool write_all(int descriptor, const void* bytes, uint64_t size, uint64_t at) {
  const char* from = static_cast<const char*>(bytes);
  while (size != 0) {
    const ssize_t done = pwrite(descriptor, from, size, static_cast<off_t>(at));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    from += done;
    at += static_cast<uint64_t>(done);
    size -= static_cast<uint64_t>(done);
  }
  return true;
}

}  // namespace weir_probe
