// Files, as the smallest interface that will do; the real ones and (memory_files.hpp) a fake.
//
// Paths are used as given. Nothing here trusts what it reads: every read has a limit. Errors are
// Code::io with the path and the operating system's words. Safe to use from several threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gate/base/result.hpp"

namespace weir::sys {

enum class Kind { absent, file, folder, other };

// A file that only grows, one synced line at a time.
class AppendLog {
 public:
  virtual ~AppendLog() = default;
  // Writes `line` and a newline with one call and waits until they are on the disk. `line` must not
  // hold a newline. Safe to call from several threads: lines never mix.
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

  // Follows links. What can not be looked at is absent.
  [[nodiscard]] virtual Kind kind(const std::string& path) const = 0;
  [[nodiscard]] bool exists(const std::string& path) const { return kind(path) != Kind::absent; }
  // May this user read, execute (a program), or make files in (a folder) it?
  [[nodiscard]] virtual bool readable(const std::string& path) const = 0;
  [[nodiscard]] virtual bool executable(const std::string& path) const = 0;
  [[nodiscard]] virtual bool writable(const std::string& path) const = 0;
  [[nodiscard]] virtual Result<std::uint64_t> size(const std::string& path) const = 0;
  // Size and time of the last change as text: differs when the file was written again.
  [[nodiscard]] virtual Result<std::string> stamp(const std::string& path) const = 0;
  // Names (not paths) in a folder, sorted by bytes, without "." and "..". At most 1 000 000.
  [[nodiscard]] virtual Result<std::vector<std::string>> list(const std::string& path) const = 0;
  // Makes the folder and those above it; fine when it is there.
  [[nodiscard]] virtual Result<void> make_dirs(const std::string& path) = 0;
  // What its owner, group and others may do with it ("0700"). Nothing where files have no rights.
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
  [[nodiscard]] Result<std::vector<std::string>> list(const std::string& path) const override;
  [[nodiscard]] Result<void> make_dirs(const std::string& path) override;
  [[nodiscard]] Result<void> set_mode(const std::string& path, unsigned mode) override;
  [[nodiscard]] Result<void> link(const std::string& target, const std::string& path) override;
  [[nodiscard]] Result<void> remove(const std::string& path) override;
  [[nodiscard]] Result<void> remove_tree(const std::string& path) override;
};

}  // namespace weir::sys
