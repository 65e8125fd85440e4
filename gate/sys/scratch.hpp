// A folder under a name that nobody had, removed with all in it at the end.
#pragma once

#include <string>

#include "gate/sys/files.hpp"

namespace weir::sys {

// Not copied; one that was moved from removes nothing. Not for two threads at once.
class ScratchFolder {
 public:
  // In `parent`, which must be there: PREFIX and six characters. Code::io where none can be made.
  static Result<ScratchFolder> make(Files& files, const std::string& parent,
                                    const std::string& prefix);
  // Where files of the moment go: below TMPDIR, or /tmp.
  static Result<ScratchFolder> make_temporary(Files& files, const std::string& prefix);
  // One that is there already, and that stays.
  static ScratchFolder kept(Files& files, std::string path);
  ScratchFolder(ScratchFolder&& other) noexcept;
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder();

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] bool stays() const { return stays_; }
  [[nodiscard]] std::string at(const std::string& name) const;

 private:
  ScratchFolder(Files& files, std::string path, bool stays);
  Files& files_;
  std::string path_;
  bool stays_;
};

}  // namespace weir::sys
