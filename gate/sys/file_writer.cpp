#include "gate/sys/file_writer.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gate/sys/errno_words.hpp"
#include "gate/sys/paths.hpp"

namespace weir::sys {

Result<FileWriter> FileWriter::create(const std::string& path) {
  std::string temporary = path + ".XXXXXX";
  const int fd = mkostemp(temporary.data(), O_CLOEXEC);
  if (fd < 0) return fail(Code::io, "{}: can not be written: {}", path, errno_words());
  // mkostemp makes files that only their owner reads; a model is like any other file.
  const mode_t mask = umask(0);
  umask(mask);
  (void)fchmod(fd, 0666 & ~mask);
  return FileWriter(path, std::move(temporary), fd);
}

FileWriter::FileWriter(FileWriter&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      fd_(std::exchange(other.fd_, -1)) {}

FileWriter::~FileWriter() {
  if (fd_ < 0) return;
  close(fd_);
  unlink(temporary_.c_str());
}

Result<void> FileWriter::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail(Code::io, "{}: {}", path_, errno_words());
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Result<void> FileWriter::finish() {
  if (fsync(fd_) != 0 || rename(temporary_.c_str(), path_.c_str()) != 0) {
    return fail(Code::io, "{}: {}", path_, errno_words());
  }
  close(std::exchange(fd_, -1));
  if (const int folder = open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
      folder >= 0) {
    fsync(folder);
    close(folder);
  }
  return {};
}

}  // namespace weir::sys
