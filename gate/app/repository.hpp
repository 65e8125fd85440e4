// The git repository that a path lies in, with all that asking it needs.
#pragma once

#include <memory>
#include <string>

#include "gate/source/git.hpp"

namespace weir::app {

class Repository {
 public:
  // Of the nearest folder above `path` (absolute, need not be there) that is.
  [[nodiscard]] static Result<std::shared_ptr<Repository>> around(const std::string& path);
  Repository(const Repository&) = delete;
  Repository& operator=(const Repository&) = delete;

  [[nodiscard]] const source::Git& git() const { return *git_; }
  // The commit that `ref` means; Code::config with a hint where it means none.
  [[nodiscard]] Result<std::string> commit(const std::string& option, const std::string& ref) const;

 private:
  Repository() : locks_(""), effects_{processes_, files_, clock_, locks_, {}, never_} {}
  sys::RealProcesses processes_;
  sys::RealFiles files_;
  sys::RealClock clock_;
  sys::HostLocks locks_;
  sys::Stop never_;
  source::Effects effects_;
  std::optional<source::Git> git_;
};

}  // namespace weir::app
