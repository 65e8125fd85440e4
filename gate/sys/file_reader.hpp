// Reads parts of a file that may be far larger than memory.
#pragma once

#include <cstdint>
#include <string>

#include "gate/base/result.hpp"
#include "gate/sys/fd.hpp"

namespace weir::sys {

// Safe to use from several threads. Errors are Code::io with the path and the system's words.
class FileReader {
 public:
  // Follows links. What is not a file (a pipe, a device, a folder) is Code::io.
  [[nodiscard]] static Result<FileReader> open(const std::string& path);

  // `size` bytes from `offset`; fewer where the file ends before. Never more memory than the file
  // holds.
  [[nodiscard]] Result<std::string> read_at(std::uint64_t offset, std::uint64_t size) const;
  // Whether the system starts this program with other rights than its caller's (setuid, setgid,
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

}  // namespace weir::sys
