// GitHub's API with what it works on, and the token for it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "gate/base/secret.hpp"
#include "gate/publish/github.hpp"
#include "gate/sys/files.hpp"
#include "gate/sys/interrupts.hpp"

namespace weir::app {

// From `file`, else WEIR_TOKEN, GITHUB_TOKEN or GH_TOKEN: the one named for weir first. Never from
// the command line: other users see that. Code::usage where there is none; `without` says what
// needs none.
[[nodiscard]] Result<Secret> token_of(const std::string& file, const sys::Files& files,
                                      const std::string& without);

// At most one at a time: it takes the interrupts.
class GithubAccess {
 public:
  // `say` is told of every wait, masked and printable. Code::usage for a URL or token that is none.
  [[nodiscard]] static Result<std::unique_ptr<GithubAccess>> make(
      const std::string& api_url, const Secret& token, double total_seconds,
      std::function<void(const std::string&)> say);
  GithubAccess(const GithubAccess&) = delete;
  GithubAccess& operator=(const GithubAccess&) = delete;

  [[nodiscard]] publish::Api& api() { return *api_; }
  [[nodiscard]] const Masker& masker() const { return masker_; }
  [[nodiscard]] const sys::Stop& stop() const { return interrupts_.stop(); }

 private:
  GithubAccess() = default;
  Masker masker_;
  sys::Interrupts interrupts_;
  sys::RealHttp http_;
  sys::RealClock clock_;
  sys::RealPause pause_;
  sys::RealCoin coin_;
  std::unique_ptr<publish::GithubApi> api_;
};

}  // namespace weir::app
