// Where a verdict is posted. Never told by the verdict: by the event, by options, and where both
// are silent by the API.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/publish/api.hpp"
#include "gate/publish/event.hpp"

namespace weir::publish {

struct Target {
  std::string repository;                    // "owner/name"
  std::optional<std::int64_t> pull_request;  // none: no comment
  std::string sha;                           // "": no check run and no status
  RunNumber run;                             // that measured
  std::string run_url;  // shown as the source: https://…/actions/runs/12/attempts/1, or ""
};

// "https://github.com/o/r/actions/runs/12/attempts/1"; "" where the run is not known.
[[nodiscard]] std::string run_url_of(const std::string& server_url, const std::string& repository,
                                     const RunNumber& run);
// The run that such a URL names; {} for any other URL.
[[nodiscard]] RunNumber run_of_url(std::string_view url, const std::string& repository);

// Asks the API for what `event` leaves open: the head of a pull request that a comment was written
// on, the pull request of a workflow run. Says in `notes` where there is none. Of a workflow run
// only an open pull request of this repository counts whose head is exactly the branch and the
// commit that was measured; where several are (one branch into two), none is taken.
// Fails where the API does, or with Code::data where its answers are not what they should be.
[[nodiscard]] Result<void> look_up(Api& api, Event& event, std::vector<std::string>& notes);

}  // namespace weir::publish
