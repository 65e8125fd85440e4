// States of a folder's files, by which a change is seen even if it was undone.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "gate/base/result.hpp"

namespace weir::sys {

struct FileState {
  std::uint64_t inode = 0, bytes = 0;
  // When the file or its permissions changed last, since 1970. No program can set it.
  std::int64_t changed_seconds = 0, changed_nanoseconds = 0;
  bool executable = false;

  friend bool operator==(const FileState&, const FileState&) = default;
};

using FileStates = std::map<std::string, FileState>;  // by name

// As Files::state().
[[nodiscard]] std::optional<FileState> file_state(const std::string& path);
// As Files::states(). Fails with Code::io.
[[nodiscard]] Result<FileStates> file_states(const std::string& folder);

}  // namespace weir::sys
