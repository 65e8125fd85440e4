// A file mapped into memory, read-only.
#include "tools/engine/mapped_file.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace weir::engine {

// Maps a file into memory for reading. An empty file has no bytes; fails for folders and devices.
Result<MappedFile> MappedFile::open(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return fail(Code::io, "{}: {}", path, std::strerror(errno));
  struct stat status {};
  void* start = MAP_FAILED;
  const bool is_regular = fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
  const auto size = static_cast<std::size_t>(status.st_size);
  if (is_regular && size > 0) {
    start = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  }
  const int error = errno;
  close(descriptor);
  if (!is_regular) return fail(Code::io, "{}: not a file", path);
  MappedFile file;
  if (size == 0) return file;
  if (start == MAP_FAILED) return fail(Code::io, "{}: {}", path, std::strerror(error));
  file.bytes_ = {static_cast<const std::byte*>(start), size};
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (bytes_.empty()) return;
  munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace weir::engine
