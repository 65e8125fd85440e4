// Programs and tracked files of a checkout, held to be what they were before anything ran there.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/sys/file_state.hpp"

namespace weir::source {

// The candidate's engine may write wherever the base's checkout lies. A seal tells if it did: it
// covers the files that git tracks and all that may be executed, and ignores other files, which a
// base may write itself.
class Seal {
 public:
  // `tracked`: names from `folder`. Fails with Code::io.
  [[nodiscard]] static Result<Seal> take(const std::string& folder,
                                         const std::vector<std::string>& tracked);
  // Fails with Code::unavailable if a file was changed, replaced or removed since.
  [[nodiscard]] Result<void> check() const;

 private:
  std::string folder_;
  std::map<std::string, sys::FileState> states_;
};

}  // namespace weir::source
