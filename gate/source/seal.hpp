// Programs and tracked files of a checkout, held to be what they were before anything ran there.
#pragma once

#include <string>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/sys/files.hpp"

namespace weir::source {

// The candidate's engine may write wherever the base's checkout lies. A seal tells if it did: it
// covers the files that git tracks and all that may be executed, and ignores other files, which a
// base may write itself.
class Seal {
 public:
  // `states` are those of `folder` now, `tracked` are names from there.
  Seal(std::string folder, sys::FileStates states, const std::vector<std::string>& tracked);
  // Fails with Code::unavailable if a file was changed, replaced or removed since, else as
  // Files::states().
  [[nodiscard]] Result<void> check(const sys::Files& files) const;

 private:
  std::string folder_;
  sys::FileStates states_;
};

}  // namespace weir::source
