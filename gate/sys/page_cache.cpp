// Reads files into the system's cache.
#include "gate/sys/page_cache.hpp"

#include <algorithm>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gate/sys/fd.hpp"

namespace weir::sys {
namespace {

// Maps a part of a file so that the system reads its pages into memory, without copying them.
// Returns false if the system cannot do that.
bool populate(int fd, off_t offset, std::size_t bytes) {
#ifdef __linux__
  constexpr int k_populate_read = 22;  // MADV_POPULATE_READ, since Linux 5.14
  void* part = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, offset);
  if (part == MAP_FAILED) return false;
  const bool is_populated = madvise(part, bytes, k_populate_read) == 0;
  munmap(part, bytes);
  return is_populated;
#else
  (void)fd, (void)offset, (void)bytes;
  return false;
#endif
}

}  // namespace

// Reads a file into the system's cache, so that a later run does not wait for the disk. Maps it if
// the system can, else reads it.
void read_into_cache(const std::string& path) {
  constexpr off_t k_part_bytes = off_t{256} << 20;
  constexpr std::size_t k_buffer_bytes = std::size_t{1} << 20;
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info {};
  if (!file.open() || fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return;
  off_t offset = 0;
  while (offset < info.st_size) {
    const off_t bytes = std::min(k_part_bytes, info.st_size - offset);
    if (!populate(file.get(), offset, static_cast<std::size_t>(bytes))) break;
    offset += bytes;
  }
  std::vector<char> buffer(offset < info.st_size ? k_buffer_bytes : 0);
  while (offset < info.st_size) {
    const ssize_t count = pread(file.get(), buffer.data(), buffer.size(), offset);
    if (count <= 0) return;
    offset += count;
  }
}

}  // namespace weir::sys
