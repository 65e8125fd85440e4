#include "gate/sys/file_reader.hpp"

#include <algorithm>
#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gate/sys/errno_words.hpp"
#ifdef __linux__
#include <sys/xattr.h>
#endif

namespace weir::sys {
namespace {

bool has_capabilities([[maybe_unused]] int fd) {
#ifdef __linux__
  return fgetxattr(fd, "security.capability", nullptr, 0) > 0;
#else
  return false;
#endif
}

}  // namespace

Result<FileReader> FileReader::open(const std::string& path) {
  // Without O_NONBLOCK opening a pipe without a writer would never return.
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info {};
  if (!fd.open() || fstat(fd.get(), &info) != 0) {
    return fail(Code::io, "{}: can not be read: {}", path, errno_words());
  }
  if (!S_ISREG(info.st_mode)) return fail(Code::io, "{}: not a file", path);
  const bool other_rights = (info.st_mode & (S_ISUID | S_ISGID)) != 0 || has_capabilities(fd.get());
  return FileReader(path, std::move(fd), static_cast<std::uint64_t>(info.st_size), other_rights);
}

Result<std::string> FileReader::read_at(std::uint64_t offset, std::uint64_t size) const {
  if (offset >= size_) return std::string();
  std::string bytes(static_cast<std::size_t>(std::min(size, size_ - offset)), '\0');
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = pread(fd_.get(), bytes.data() + done, bytes.size() - done,
                              static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(Code::io, "{}: can not be read: {}", path_, errno_words());
    if (got == 0) break;  // it became shorter meanwhile
    done += static_cast<std::size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

}  // namespace weir::sys
