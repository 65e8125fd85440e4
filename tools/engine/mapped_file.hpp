// A file's bytes, mapped for reading: weights are paged in as they are used.
//
// Owned by whoever holds it; movable. Bytes stay at their address when it is moved. A file that is
// cut short by somebody else while it is mapped ends the process (SIGBUS), as with every engine
// that maps its weights.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "gate/base/result.hpp"

namespace weir::engine {

class MappedFile {
 public:
  MappedFile() = default;
  // Code::io when it is not there, not a regular file, or cannot be mapped.
  [[nodiscard]] static Result<MappedFile> open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace weir::engine
