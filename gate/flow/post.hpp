// GitHub: the API with what it works on, and the token for it; what is posted where.
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
  std::string app = "github-actions";  // whose token it is, where GitHub does not say
  std::string time_limit = "5m";
};
// An address without slashes at its end.
[[nodiscard]] std::string without_slash(std::string url);
// "https://api.github.com", without a slash at its end: `given`, else GITHUB_API_URL's value.
[[nodiscard]] Result<std::string> api_url_of(const Job& job, const std::string& given);
// From `file`, else WEIR_TOKEN, GITHUB_TOKEN or GH_TOKEN: the one named for weir first. Never from
// the command line: other users see that. Code::usage where there is none; `without` says what
// needs none.
[[nodiscard]] Result<Secret> token_of(const Job& job, const std::string& file,
                                      const std::string& without);
// Without signals, which are the caller's.
[[nodiscard]] Result<std::unique_ptr<publish::GithubApi>> github_api(
    sys::World& world, publish::GithubSettings settings, const sys::Stop& stop);

// The API, until a signal ends it. Every wait is told, masked.
class Github {
 public:
  // Code::usage for a URL, a token or a time limit that is none.
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
  std::string comment;  // of verdict::k_comments, in place of gate.comment; "": as that says
  publish::PostOptions parts;
  // The verdict was made in this job from a fork's records (weir gate --from RUN --rules-from
  // BASE).
  bool judged_here = false;
  bool dry_run = false, fail = false;
  std::string settle = "7s";
};
// weir post: a verdict to a pull request and its commit.
[[nodiscard]] Result<Answer> post(const Job& job, const PostOptions& words);
// `given` (--repo), else GITHUB_REPOSITORY. Code::usage where neither says it, or it is no
// OWNER/NAME.
[[nodiscard]] Result<std::string> repository_of(const Job& job, const std::string& given);

}  // namespace weir::flow
