// Preloaded: a disk that is full after WEIR_FULL_DISK_AFTER reservations of room.
#include <atomic>
#include <cerrno>
#include <cstdlib>

#include <unistd.h>

extern "C" int posix_fallocate(int descriptor, off_t offset, off_t size) {
  static std::atomic<int> left = std::atoi(std::getenv("WEIR_FULL_DISK_AFTER"));
  if (left-- <= 0) return ENOSPC;
  return ftruncate(descriptor, offset + size) == 0 ? 0 : errno;
}
