#include "gate/sys/scratch.hpp"

#include <utility>

#include <unistd.h>

#include "gate/sys/paths.hpp"
#include "gate/sys/process.hpp"

namespace weir::sys {

ScratchFolder::ScratchFolder(Files& files, std::string path, bool stays)
    : files_(files), path_(std::move(path)), stays_(stays) {}

ScratchFolder::ScratchFolder(ScratchFolder&& other) noexcept
    : files_(other.files_),
      path_(std::move(other.path_)),
      stays_(std::exchange(other.stays_, true)) {}

ScratchFolder::~ScratchFolder() {
  if (!stays_) (void)files_.remove_tree(path_);
}

Result<ScratchFolder> ScratchFolder::make(Files& files, const std::string& parent,
                                          const std::string& prefix) {
  std::string pattern = join_path(parent, prefix + "XXXXXX");
  if (mkdtemp(pattern.data()) == nullptr) {
    return fail(Code::io, "{}: no folder can be made there", parent);
  }
  return ScratchFolder(files, std::move(pattern), false);
}

Result<ScratchFolder> ScratchFolder::make_temporary(Files& files, const std::string& prefix) {
  return make(files, absolute(environment_value("TMPDIR").value_or("/tmp")), prefix);
}

ScratchFolder ScratchFolder::kept(Files& files, std::string path) {
  return {files, std::move(path), true};
}

std::string ScratchFolder::at(const std::string& name) const { return join_path(path_, name); }

}  // namespace weir::sys
