// Files, as the smallest interface that will do; the real ones and (tests/support/memory_files.hpp)
// a fake.
//
// Paths are used as given. Nothing here trusts what it reads: every read has a limit. Errors are
// Code::io with the path and the operating system's words. Safe to use from several threads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/sys/fd.hpp"
#include "gate/sys/file_state.hpp"

namespace weir::sys {

enum class Kind { absent, file, folder, other };

// A file that only grows, one synced line at a time.
class AppendLog {
 public:
  virtual ~AppendLog() = default;
  // Writes `line` and a newline with one call and waits until they are on the disk. `line` must not
  // hold a newline. Safe to call from several threads: lines never mix. Where it fails (a full
  // disk) what was written of the line is cut off, and every later call fails: lines have an order.
  [[nodiscard]] virtual Result<void> append(std::string_view line) = 0;
};

class Files {
 public:
  virtual ~Files() = default;

  // The whole file. More than `max_bytes` is Code::data; a folder or device is Code::io.
  [[nodiscard]] virtual Result<std::string> read(const std::string& path,
                                                 std::uint64_t max_bytes) const = 0;
  // The first `bytes` bytes, or all of them when there are fewer.
  [[nodiscard]] virtual Result<std::string> read_prefix(const std::string& path,
                                                        std::uint64_t bytes) const = 0;
  // Readers see the old text or the new one, never a part, also after a crash or power cut: written
  // under a temporary name in the same folder, synced, renamed, the folder synced.
  [[nodiscard]] virtual Result<void> write_atomic(const std::string& path,
                                                  std::string_view text) = 0;
  // The same, but does not wait for the disk: for files that can be made again, and many of them.
  // A power cut may leave the old text, or none.
  [[nodiscard]] virtual Result<void> write_unsynced(const std::string& path,
                                                    std::string_view text) {
    return write_atomic(path, text);
  }
  // Opens for appending; what stands behind the first `keep_bytes` bytes is cut off. The file is
  // made if absent. Another log that is open on it, in any process, is an error.
  [[nodiscard]] virtual Result<std::unique_ptr<AppendLog>> append_log(const std::string& path,
                                                                      std::uint64_t keep_bytes) = 0;

  // Follows links. What cannot be looked at is absent.
  [[nodiscard]] virtual Kind kind(const std::string& path) const = 0;
  [[nodiscard]] bool exists(const std::string& path) const { return kind(path) != Kind::absent; }
  // May this user read, execute (a program), or make files in (a folder) it?
  [[nodiscard]] virtual bool readable(const std::string& path) const = 0;
  [[nodiscard]] virtual bool executable(const std::string& path) const = 0;
  [[nodiscard]] virtual bool writable(const std::string& path) const = 0;
  [[nodiscard]] virtual Result<std::uint64_t> size(const std::string& path) const = 0;
  // Size and time of the last change as text: differs when the file was written again.
  [[nodiscard]] virtual Result<std::string> stamp(const std::string& path) const = 0;
  // Seconds since the epoch at which the file was last written.
  [[nodiscard]] virtual Result<double> written_at(const std::string& path) const {
    return fail(Code::unavailable, "{}: no time is known", path);
  }
  // The regular file that `path` leads to, through links, or the inode alone of a folder. Nothing
  // where it is neither, and where no such states are known.
  [[nodiscard]] virtual std::optional<FileState> state(const std::string& /*path*/) const {
    return std::nullopt;
  }
  // The regular files and links below a folder, by their names from there, without git's own. Links
  // are not followed. Empty where no such states are known.
  [[nodiscard]] virtual Result<FileStates> states(const std::string& /*folder*/) const {
    return FileStates();
  }
  // Names (not paths) in a folder, sorted by bytes, without "." and "..". At most 1 000 000.
  [[nodiscard]] virtual Result<std::vector<std::string>> list(const std::string& path) const = 0;
  // Makes the folder and those above it; fine when it is there.
  [[nodiscard]] virtual Result<void> make_dirs(const std::string& path) = 0;
  // Sets the rights of owner, group and others ("0700"). Does nothing where files have no rights.
  [[nodiscard]] virtual Result<void> set_mode(const std::string& path, unsigned mode) {
    (void)path;
    (void)mode;
    return {};
  }
  // Makes `path` a symbolic link to `target` (absolute, or counted from the folder of `path`; it
  // need not be there). A file or link of that name is replaced at once, so that readers see the
  // old or the new; a folder is not: Code::io.
  [[nodiscard]] virtual Result<void> link(const std::string& target, const std::string& path) = 0;
  // Removes a file or an empty folder; fine when it is absent. Does not follow links.
  [[nodiscard]] virtual Result<void> remove(const std::string& path) = 0;
  // Removes a folder and everything in it; fine when it is absent. Does not follow links.
  [[nodiscard]] virtual Result<void> remove_tree(const std::string& path) = 0;
};

class RealFiles final : public Files {
 public:
  [[nodiscard]] std::optional<FileState> state(const std::string& path) const override {
    return file_state(path);
  }
  [[nodiscard]] Result<FileStates> states(const std::string& folder) const override {
    return file_states(folder);
  }
  [[nodiscard]] Result<std::string> read(const std::string& path,
                                         std::uint64_t max_bytes) const override;
  [[nodiscard]] Result<std::string> read_prefix(const std::string& path,
                                                std::uint64_t bytes) const override;
  [[nodiscard]] Result<void> write_atomic(const std::string& path, std::string_view text) override;
  [[nodiscard]] Result<void> write_unsynced(const std::string& path,
                                            std::string_view text) override;
  [[nodiscard]] Result<std::unique_ptr<AppendLog>> append_log(const std::string& path,
                                                              std::uint64_t keep_bytes) override;
  [[nodiscard]] Kind kind(const std::string& path) const override;
  [[nodiscard]] bool readable(const std::string& path) const override;
  [[nodiscard]] bool executable(const std::string& path) const override;
  [[nodiscard]] bool writable(const std::string& path) const override;
  [[nodiscard]] Result<std::uint64_t> size(const std::string& path) const override;
  [[nodiscard]] Result<std::string> stamp(const std::string& path) const override;
  [[nodiscard]] Result<double> written_at(const std::string& path) const override;
  [[nodiscard]] Result<std::vector<std::string>> list(const std::string& path) const override;
  [[nodiscard]] Result<void> make_dirs(const std::string& path) override;
  [[nodiscard]] Result<void> set_mode(const std::string& path, unsigned mode) override;
  [[nodiscard]] Result<void> link(const std::string& target, const std::string& path) override;
  [[nodiscard]] Result<void> remove(const std::string& path) override;
  [[nodiscard]] Result<void> remove_tree(const std::string& path) override;
};

// Reads parts of a file that may be far larger than memory. Safe to use from several threads.
// Errors are Code::io with the path and the system's words.
class FileReader {
 public:
  // Follows links. What is not a file (a pipe, a device, a folder) is Code::io.
  [[nodiscard]] static Result<FileReader> open(const std::string& path);

  // `size` bytes from `offset`; fewer where the file ends before. Never more memory than the file
  // holds.
  [[nodiscard]] Result<std::string> read_at(std::uint64_t offset, std::uint64_t size) const;
  // True if the system starts this program with other rights than its caller's (setuid, setgid,
  // file capabilities): loaders then ignore the caller's variables.
  [[nodiscard]] bool changes_rights() const { return changes_rights_; }

 private:
  FileReader(std::string path, Fd fd, std::uint64_t size, bool changes_rights)
      : path_(std::move(path)), fd_(std::move(fd)), size_(size), changes_rights_(changes_rights) {}

  std::string path_;
  Fd fd_;
  std::uint64_t size_;
  bool changes_rights_;
};

// Writes a file that may be large, piece by piece: it appears whole under its name, or not at all.
// A temporary name in the same folder until finish(), which syncs (unless told not to) and renames.
// Destroyed before that, the temporary file is removed. Errors are Code::io with the path. Not
// thread-safe.
class FileWriter {
 public:
  [[nodiscard]] static Result<FileWriter> create(const std::string& path);
  FileWriter(FileWriter&&) = default;
  FileWriter& operator=(FileWriter&&) = delete;
  ~FileWriter();

  [[nodiscard]] Result<void> write(std::string_view bytes);
  [[nodiscard]] Result<void> finish(bool synced = true);

 private:
  FileWriter(std::string path, std::string temporary, Fd fd)
      : path_(std::move(path)), temporary_(std::move(temporary)), fd_(std::move(fd)) {}
  std::string path_, temporary_;
  Fd fd_;
};

// A folder under a name that nobody had, removed with all in it at the end. Not copied; one that
// was moved from removes nothing. Not for two threads at once.
class ScratchFolder {
 public:
  // In `parent`, which must be there: PREFIX and six characters. Code::io where none can be made.
  static Result<ScratchFolder> make(Files& files, const std::string& parent,
                                    const std::string& prefix);
  // Makes a temporary folder in TMPDIR, or in /tmp.
  static Result<ScratchFolder> make_temporary(Files& files, const std::string& prefix);
  // One that is there already, and that stays.
  static ScratchFolder kept(Files& files, std::string path) {
    return {files, std::move(path), true};
  }
  ScratchFolder(ScratchFolder&& other) noexcept
      : files_(other.files_),
        path_(std::move(other.path_)),
        stays_(std::exchange(other.stays_, true)) {}
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder() {
    if (!stays_) (void)files_.remove_tree(path_);
  }

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] bool stays() const { return stays_; }
  [[nodiscard]] std::string at(const std::string& name) const { return path_ + "/" + name; }

 private:
  ScratchFolder(Files& files, std::string path, bool stays)
      : files_(files), path_(std::move(path)), stays_(stays) {}
  Files& files_;
  std::string path_;
  bool stays_;
};

}  // namespace weir::sys
