// What differs between Linux and macOS for the writing side of the probe file.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

namespace weir_probe {

// Null where there is none, and in a program with other rights than its caller's.
inline const char* environment(const char* name) {
#ifdef __APPLE__
  return issetugid() != 0 ? nullptr : getenv(name);
#else
  return secure_getenv(name);
#endif
}

inline const char* program_name() {
#ifdef __APPLE__
  return getprogname();
#else
  return program_invocation_short_name;
#endif
}

// False where the system has none to give.
inline bool random_number(uint64_t* out) {
#ifdef __APPLE__
  return getentropy(out, sizeof *out) == 0;
#else
  return getrandom(out, sizeof *out, GRND_NONBLOCK) == sizeof *out;
#endif
}

// Gives a fresh, empty file `size` bytes and all its blocks. 0, or an errno.
inline int reserve(int descriptor, size_t size) {
#ifdef __APPLE__
  fstore_t wanted{};
  wanted.fst_flags = F_ALLOCATEALL;
  wanted.fst_posmode = F_PEOFPOSMODE;
  wanted.fst_length = static_cast<off_t>(size);
  if (fcntl(descriptor, F_PREALLOCATE, &wanted) == 0) {
    return ftruncate(descriptor, static_cast<off_t>(size)) == 0 ? 0 : errno;
  }
  if (errno == ENOSPC) return errno;
  // A file system that cannot: written, it has them as well.
  constexpr size_t k_step = 4096;
  static const char k_zeros[k_step] = {};
  for (size_t at = 0; at < size; at += k_step) {
    const size_t wish = size - at < k_step ? size - at : k_step;
    const ssize_t done = pwrite(descriptor, k_zeros, wish, static_cast<off_t>(at));
    if (done < 0) return errno;
    if (static_cast<size_t>(done) != wish) return ENOSPC;
  }
  return 0;
#else
  return posix_fallocate(descriptor, 0, static_cast<off_t>(size));
#endif
}

// Puts the anonymous mapping `from` where `to` is mapped. No other thread may be there.
inline void move_mapping(void* from, void* to, size_t size) {
#ifdef __APPLE__
  void* there = mmap(to, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON | MAP_FIXED, -1, 0);
  if (there != MAP_FAILED) memcpy(there, from, size);
  munmap(from, size);
#else
  mremap(from, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, to);
#endif
}

}  // namespace weir_probe
