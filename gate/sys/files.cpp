// Reads, writes and lists files of this machine.
#include "gate/sys/files.hpp"

#include <algorithm>
#include <filesystem>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gate/sys/holes.hpp"
#include "gate/sys/paths.hpp"
#include "gate/sys/process.hpp"
#ifdef __linux__
#include <sys/xattr.h>
#endif

namespace weir::sys {
namespace {

constexpr std::size_t k_max_names = 1'000'000;

tl::unexpected<Error> io_error(const std::string& path, std::string_view what,
                               std::error_code error = {errno, std::generic_category()}) {
  return fail(Code::io, "{}: {}: {}", path, what, error.message());
}

Fd open_retrying(const std::string& path, int flags, mode_t mode = 0) {
  int fd = -1;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  return Fd(fd);
}

// Waits until the file's bytes are on disk.
int sync_file(int fd) {
#ifdef __APPLE__
  return fcntl(fd, F_FULLFSYNC) == 0 ? 0 : fsync(fd);
#else
  return fdatasync(fd);
#endif
}

// Returns a name next to `path` that no other writer of this host uses.
std::string temporary_name(const std::string& path) {
  static std::atomic<unsigned> g_serial{0};
  return fmt::format("{}.{}-{}.tmp", path, getpid(), g_serial.fetch_add(1));
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

// Makes a new name in a folder permanent. Some file systems cannot do that; then nothing more can
// be done, so it is no error.
void sync_folder(const std::string& folder) {
  const Fd fd = open_retrying(folder, O_RDONLY | O_DIRECTORY);
  if (fd.open()) fsync(fd.get());
}

// Opens a regular file and fills `info` with its facts.
Result<Fd> open_regular_file(const std::string& path, struct stat& info) {
  // Without O_NONBLOCK, opening a pipe that has no writer would block forever.
  Fd fd = open_retrying(path, O_RDONLY | O_NONBLOCK);
  if (!fd.open() || fstat(fd.get(), &info) != 0) return io_error(path, "cannot be read");
  if (!S_ISREG(info.st_mode)) return fail(Code::io, "{}: not a file", path);
  return fd;
}

bool has_capabilities([[maybe_unused]] int fd) {
#ifdef __linux__
  return fgetxattr(fd, "security.capability", nullptr, 0) > 0;
#else
  return false;
#endif
}

// Reads at most `limit` bytes of a regular file. `has_more` is set if the file has further ones.
Result<std::string> read_bytes(const std::string& path, std::uint64_t limit, bool* has_more) {
  struct stat info {};
  WEIR_TRY(const Fd fd, open_regular_file(path, info));
  std::string text;
  const auto size = static_cast<std::uint64_t>(std::max<off_t>(0, info.st_size));
  text.reserve(std::min(size, limit));
  *has_more = false;
  char buffer[65536];
  for (;;) {
    const ssize_t count = ::read(fd.get(), buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return io_error(path, "cannot be read");
    if (count == 0) return text;
    const auto space = limit - text.size();
    const auto appended = std::min<std::uint64_t>(space, static_cast<std::uint64_t>(count));
    text.append(buffer, static_cast<std::size_t>(appended));
    *has_more =
        appended < static_cast<std::uint64_t>(count) || (text.size() == limit && limit < size);
    if (*has_more) return text;
  }
}

class RealLog final : public AppendLog {
 public:
  RealLog(std::string path, Fd fd, off_t size)
      : path_(std::move(path)), fd_(std::move(fd)), size_(size) {}

  // Appends a line and waits until it is on disk. After a failure, no more lines are written.
  Result<void> append(std::string_view line) override {
    if (line.find('\n') != std::string_view::npos) {
      return fail(Code::internal, "{}: a line holds a newline", path_);
    }
    std::string text;
    text.reserve(line.size() + 1);
    text.append(line).push_back('\n');
    const std::lock_guard hold(mutex_);
    if (failed_) {
      return fail(Code::io, "{}: nothing more is written to it, as an earlier line was not", path_);
    }
    if (write_all(fd_.get(), text) && sync_file(fd_.get()) == 0) {
      size_ += static_cast<off_t>(text.size());
      return {};
    }
    failed_ = true;
    auto error = io_error(path_, "cannot be written");
    // Cut off what was written of the line. If that fails too, readers skip it.
    if (ftruncate(fd_.get(), size_) == 0) (void)sync_file(fd_.get());
    return error;
  }

 private:
  std::string path_;
  Fd fd_;
  std::mutex mutex_;
  off_t size_;  // sum of the complete lines
  bool failed_ = false;
};

Result<void> write_file(const std::string& path, std::string_view text, bool synced) {
  WEIR_TRY(FileWriter writer, FileWriter::create(path));
  WEIR_CHECK(writer.write(text));
  return writer.finish(synced);
}

}  // namespace

Result<std::string> RealFiles::read(const std::string& path, std::uint64_t max_bytes) const {
  bool has_more = false;
  WEIR_TRY(std::string text, read_bytes(path, max_bytes, &has_more));
  if (has_more) return fail(Code::data, "{}: more than {} bytes", path, max_bytes);
  return text;
}

Result<std::string> RealFiles::read_prefix(const std::string& path, std::uint64_t bytes) const {
  bool has_more = false;
  return read_bytes(path, bytes, &has_more);
}

Result<void> RealFiles::write_atomic(const std::string& path, std::string_view text) {
  return write_file(path, text, /*synced=*/true);
}

Result<void> RealFiles::write_unsynced(const std::string& path, std::string_view text) {
  return write_file(path, text, /*synced=*/false);
}

// Opens a log to append to, creates it if needed, and cuts off everything after `keep_bytes`.
// Fails if another weir has it locked.
Result<std::unique_ptr<AppendLog>> RealFiles::append_log(const std::string& path,
                                                         std::uint64_t keep_bytes) {
  Fd fd = open_retrying(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW, 0666);
  if (!fd.open()) return io_error(path, "cannot be written");
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) {
      return fail(Code::io, "{}: another weir is writing it; wait until it has ended", path);
    }
    return io_error(path, "cannot be locked");
  }
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) return io_error(path, "cannot be read");
  const auto size = std::min(static_cast<std::uint64_t>(info.st_size), keep_bytes);
  if (static_cast<std::uint64_t>(info.st_size) > size &&
      (ftruncate(fd.get(), static_cast<off_t>(size)) != 0 || fsync(fd.get()) != 0)) {
    return io_error(path, "cannot be shortened");
  }
  sync_folder(folder_of(path));
  return std::make_unique<RealLog>(path, std::move(fd), static_cast<off_t>(size));
}

Kind RealFiles::kind(const std::string& path) const {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return Kind::absent;
  if (S_ISREG(info.st_mode)) return Kind::file;
  return S_ISDIR(info.st_mode) ? Kind::folder : Kind::other;
}

bool RealFiles::readable(const std::string& path) const { return access(path.c_str(), R_OK) == 0; }
bool RealFiles::executable(const std::string& path) const {
  return access(path.c_str(), X_OK) == 0;
}
bool RealFiles::writable(const std::string& path) const { return access(path.c_str(), W_OK) == 0; }

Result<std::uint64_t> RealFiles::size(const std::string& path) const {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return io_error(path, "cannot be looked at");
  return static_cast<std::uint64_t>(info.st_size);
}

static timespec last_change(const struct stat& info) {
#ifdef __APPLE__
  return info.st_mtimespec;
#else
  return info.st_mtim;
#endif
}

Result<std::string> RealFiles::stamp(const std::string& path) const {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return io_error(path, "cannot be looked at");
  const timespec changed = last_change(info);
  return fmt::format("{} bytes, {}.{:09}", info.st_size, changed.tv_sec, changed.tv_nsec);
}

Result<double> RealFiles::written_at(const std::string& path) const {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return io_error(path, "cannot be looked at");
  const timespec changed = last_change(info);
  return static_cast<double>(changed.tv_sec) + 1e-9 * static_cast<double>(changed.tv_nsec);
}

// Returns the names in a folder, sorted; at most k_max_names of them.
Result<std::vector<std::string>> RealFiles::list(const std::string& path) const {
  std::error_code error;
  std::filesystem::directory_iterator entry(path, error);
  if (error) return io_error(path, "cannot be listed", error);
  std::vector<std::string> names;
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    if (names.size() == k_max_names) break;
    names.push_back(entry->path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

Result<void> RealFiles::set_mode(const std::string& path, unsigned mode) {
  if (chmod(path.c_str(), mode) != 0) return io_error(path, "its rights cannot be changed");
  return {};
}

// Creates a folder and the ones above it, as `mkdir -p`.
Result<void> RealFiles::make_dirs(const std::string& path) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (!part.empty() && mkdir(part.c_str(), 0777) != 0 && errno != EEXIST) {
      // It may exist in a place where this user cannot create anything.
      const int error = errno;
      if (kind(part) != Kind::folder) {
        errno = error;
        return io_error(part, "cannot be made");
      }
    }
    if (end == std::string::npos) break;
  }
  if (kind(path) != Kind::folder) return fail(Code::io, "{}: is there, but not a folder", path);
  return {};
}

Result<void> RealFiles::link(const std::string& target, const std::string& path) {
  const std::string temporary = temporary_name(path);
  if (symlink(target.c_str(), temporary.c_str()) != 0) return io_error(path, "cannot be linked");
  if (rename(temporary.c_str(), path.c_str()) == 0) return {};
  auto error = io_error(path, "cannot be replaced");
  unlink(temporary.c_str());
  return error;
}

Result<void> RealFiles::remove(const std::string& path) {
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return {};
  if (::rmdir(path.c_str()) == 0 || errno == ENOENT) return {};
  return io_error(path, "cannot be removed");
}

Result<void> RealFiles::remove_tree(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (error) return io_error(path, "cannot be removed", error);
  return {};
}

Result<FileReader> FileReader::open(const std::string& path) {
  struct stat info {};
  WEIR_TRY(Fd fd, open_regular_file(path, info));
  const bool has_other_rights =
      (info.st_mode & (S_ISUID | S_ISGID)) != 0 || has_capabilities(fd.get());
  return FileReader(path, std::move(fd), static_cast<std::uint64_t>(info.st_size),
                    has_other_rights);
}

// Reads `size` bytes at `offset`; fewer at the end of the file, none behind it.
Result<std::string> FileReader::read_at(std::uint64_t offset, std::uint64_t size) const {
  if (offset >= size_) return std::string();
  std::string bytes(static_cast<std::size_t>(std::min(size, size_ - offset)), '\0');
  std::size_t bytes_read = 0;
  while (bytes_read < bytes.size()) {
    const ssize_t count = pread(fd_.get(), bytes.data() + bytes_read, bytes.size() - bytes_read,
                                static_cast<off_t>(offset + bytes_read));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return io_error(path_, "cannot be read");
    if (count == 0) break;  // the file has become shorter meanwhile
    bytes_read += static_cast<std::size_t>(count);
  }
  bytes.resize(bytes_read);
  return bytes;
}

Result<FileWriter> FileWriter::create(const std::string& path) {
  std::string temporary = temporary_name(path);
  Fd fd = open_retrying(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666);
  if (!fd.open()) return io_error(path, "cannot be written");
  return FileWriter(path, std::move(temporary), std::move(fd));
}

// Writes a file of `bytes` bytes that begins with `head`; the rest is a hole that uses no disk.
// Returns the bytes of disk that the file uses.
Result<std::uint64_t> write_with_hole(const std::string& path, std::string_view head,
                                      std::uint64_t bytes) {
  constexpr std::uint64_t k_block = 512;  // unit of st_blocks
  const std::string temporary = temporary_name(path);
  Fd fd = open_retrying(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666);
  struct stat info {};
  const bool is_written = fd.open() && write_all(fd.get(), head) &&
                          ftruncate(fd.get(), static_cast<off_t>(bytes)) == 0 &&
                          fsync(fd.get()) == 0 && fstat(fd.get(), &info) == 0 &&
                          rename(temporary.c_str(), path.c_str()) == 0;
  if (is_written) return static_cast<std::uint64_t>(info.st_blocks) * k_block;
  auto error = io_error(path, "cannot be written");
  if (fd.open()) unlink(temporary.c_str());
  return error;
}

FileWriter::~FileWriter() {
  if (fd_.open()) unlink(temporary_.c_str());
}

Result<void> FileWriter::write(std::string_view bytes) {
  if (!write_all(fd_.get(), bytes)) return io_error(path_, "cannot be written");
  return {};
}

Result<void> FileWriter::finish(bool synced) {
  if (synced && fsync(fd_.get()) != 0) return io_error(path_, "cannot be written");
  if (rename(temporary_.c_str(), path_.c_str()) != 0) return io_error(path_, "cannot be replaced");
  fd_.reset();
  if (synced) sync_folder(folder_of(path_));
  return {};
}

Result<ScratchFolder> ScratchFolder::make(Files& files, const std::string& parent,
                                          const std::string& prefix) {
  std::string pattern = join_path(parent, prefix + "XXXXXX");
  if (mkdtemp(pattern.data()) == nullptr) {
    return fail(Code::io, "{}: no folder can be made there", parent);
  }
  return ScratchFolder(files, std::move(pattern), /*stays=*/false);
}

Result<ScratchFolder> ScratchFolder::make_temporary(Files& files, const std::string& prefix) {
  return make(files, absolute(environment_value("TMPDIR").value_or("/tmp")), prefix);
}

}  // namespace weir::sys
