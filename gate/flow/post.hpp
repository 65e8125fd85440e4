// GitHub: access to its API, and posting verdicts to pull requests.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "gate/base/secret.hpp"
#include "gate/flow/job.hpp"
#include "gate/publish/github.hpp"
#include "gate/publish/post.hpp"
#include "gate/sys/interrupts.hpp"

namespace weir::flow {

struct GithubOptions {
  std::string api_url{}, token_file{};
  std::string app = "github-actions";  // the token's app, if GitHub does not report it
  std::string time_limit = "5m";
};
// Removes slashes from the end of an address.
[[nodiscard]] std::string without_slash(std::string url);
// Returns the API's address without a slash at its end: `option`, else GITHUB_API_URL's value, else
// "https://api.github.com".
[[nodiscard]] Result<std::string> github_api_url(const Job& job, const std::string& option);
// Returns the token from `file`, else from WEIR_TOKEN, GITHUB_TOKEN or GH_TOKEN in this order.
// Never from the command line, which other users can see. Code::usage if there is none; `without`
// tells people what works without.
[[nodiscard]] Result<Secret> github_token(const Job& job, const std::string& file,
                                          const std::string& without);
// Makes the API. Signals are the caller's concern.
[[nodiscard]] Result<std::unique_ptr<publish::GithubApi>> github_api(
    sys::World& world, publish::GithubSettings settings, const sys::Stop& stop);

// The API, until a signal ends it. Reports every wait, with the token masked.
class Github {
 public:
  // Code::usage for a bad URL, token or time limit.
  [[nodiscard]] static Result<std::unique_ptr<Github>> open(const Job& job,
                                                            const GithubOptions& options,
                                                            const std::string& without);

  [[nodiscard]] publish::Api& api() const { return *api_; }
  [[nodiscard]] const Masker& masker() const { return masker_; }
  [[nodiscard]] const sys::Stop& stop() const { return interrupts_.stop(); }
  [[nodiscard]] double limit_seconds() const { return limit_seconds_; }
  [[nodiscard]] publish::Wait wait() const;

 private:
  explicit Github(sys::World& world) : world_(world) {}
  sys::World& world_;
  Masker masker_;
  sys::Interrupts interrupts_;
  double limit_seconds_ = 0;
  std::unique_ptr<publish::GithubApi> api_;
};

struct PostOptions {
  std::string run;  // a run's folder or a verdict.json; "": the newest run
  std::string repository, sha, event_file, name, run_url;
  GithubOptions access;
  std::optional<std::int64_t> pull_request;
  std::optional<std::string> missing_verdict;
  std::string comment;  // one of verdict::k_comments; "": gate.comment
  publish::PostOptions parts;
  // The verdict was made in this job from a fork's records (weir gate --from RUN --rules-from
  // BASE).
  bool judged_here = false;
  bool dry_run = false, fail = false;
  std::string settle = "7s";
};
// Posts a verdict to a pull request and its commit.
[[nodiscard]] Result<Answer> post(const Job& job, const PostOptions& options);
// Returns `option` (--repo), else GITHUB_REPOSITORY. Code::usage if both are absent, or for
// anything but OWNER/NAME.
[[nodiscard]] Result<std::string> github_repository(const Job& job, const std::string& option);

}  // namespace weir::flow
