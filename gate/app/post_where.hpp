// From the command line and a runner's environment to what is posted where.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gate/app/command_line.hpp"
#include "gate/publish/post.hpp"
#include "gate/sys/files.hpp"

namespace weir::app {

struct PostWords {
  CommonOptions common;  // out, json, quiet
  std::string run;       // a run's folder or a verdict.json; "": the newest run
  std::string repository, sha, event_file, name, api_url, token_file, run_url;
  std::optional<std::int64_t> pull_request;
  std::optional<std::string> missing_verdict;
  bool comment = true, check = true, status = true;
  bool dry_run = false, fail = false;
  std::string time_limit = "5m", settle = "7s";
};

// "https://api.github.com", without a slash at its end.
[[nodiscard]] Result<std::string> api_url_of(const PostWords& words);

// --repo, else GITHUB_REPOSITORY. Code::usage where neither says it, or it is no OWNER/NAME.
[[nodiscard]] Result<std::string> repository_of(const PostWords& words);

// What the options say, on top of the event. Fails with Code::usage where neither says enough.
[[nodiscard]] Result<publish::Event> event_of(const PostWords& words, const sys::Files& files);

// The page of the run that measured: --run-url, or GitHub's own.
[[nodiscard]] Result<std::string> run_url_of(const PostWords& words, const publish::Event& event,
                                             const std::string& api_url);

// What is said of the verdict that `words` name, or, where that may be, of none; `notes` then say
// why.
[[nodiscard]] Result<publish::Texts> texts_of(const PostWords& words, const publish::Event& event,
                                              const std::string& run_url, const sys::Files& files,
                                              std::vector<std::string>& notes);

}  // namespace weir::app
