// Writes a file that may be large, piece by piece: it appears whole under its name, or not at all.
#pragma once

#include <string>
#include <string_view>

#include "gate/base/result.hpp"

namespace weir::sys {

// A temporary name in the same folder until finish(), which syncs and renames. Destroyed before
// that, the temporary file is removed. Errors are Code::io with the path. Not thread-safe.
class FileWriter {
 public:
  [[nodiscard]] static Result<FileWriter> create(const std::string& path);
  FileWriter(FileWriter&& other) noexcept;
  FileWriter& operator=(FileWriter&&) = delete;
  ~FileWriter();

  [[nodiscard]] Result<void> write(std::string_view bytes);
  [[nodiscard]] Result<void> finish();

 private:
  FileWriter(std::string path, std::string temporary, int fd)
      : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}
  std::string path_, temporary_;
  int fd_ = -1;
};

}  // namespace weir::sys
