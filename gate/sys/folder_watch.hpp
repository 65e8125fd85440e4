// Notices what others take out of a folder. Linux only.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "gate/sys/fd.hpp"

namespace weir::sys {

class FolderWatch {
 public:
  FolderWatch() = default;
  // Watches the files of `folder` (absolute) whose names end with `suffix`, from now on.
  FolderWatch(const std::string& folder, std::string suffix);

  // Returns the name of a file that was removed, renamed or replaced since then or the last call,
  // or the path of the folder if it, or one above it, was. Nothing if none was, or where the system
  // does not tell.
  [[nodiscard]] std::optional<std::string> find_removed() const;

 private:
  std::string folder_, suffix_;
  Fd events_;
  [[maybe_unused]] int own_watch_ = -1;  // of the folder; those above it have other numbers
};

}  // namespace weir::sys
