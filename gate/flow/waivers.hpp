// Changes that are waived for one pull request: read from a branch, and kept in the run.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gate/flow/job.hpp"
#include "gate/flow/post.hpp"
#include "gate/source/git.hpp"
#include "gate/verdict/waiver.hpp"

namespace weir::flow {
struct WaiverOptions {
  std::optional<std::string> ref;            // --waivers-ref
  std::optional<std::int64_t> pull_request;  // --pr; absent: that of the CI system's event
  std::string base;                          // --base; "": that of the event
  std::vector<std::string> merged;           // --merged-pr: "12@COMMIT"
  std::vector<std::string> in_base;          // --base-pr: the same
};

// A pull request whose waivers hold, with its head ("" where it is not known).
struct WaivedPull {
  std::int64_t number = 0;
  std::string head;
  bool is_in_base = false;  // the base has its change, too
  std::vector<verdict::Waiver> waivers{};
};

struct Waived {
  std::vector<WaivedPull> pulls;
  std::optional<std::int64_t> pull_request;  // the one that is judged
  std::string today, base;
  std::vector<std::string> notes;  // the reasons if there are none

  [[nodiscard]] std::vector<verdict::Waiver> all() const;
  // The gate that they are applied to, without the names of its cells.
  [[nodiscard]] verdict::WaiverContext context() const;
};
// Reads the waivers of the pull request that is judged, and of those that are merged into what is
// judged; null without --waivers-ref. If the branch or every pull request is unknown, nothing is
// waived and a note says so. Code::data for a file that is no list of waivers.
[[nodiscard]] Result<std::shared_ptr<const Waived>> load_waivers(const WaiverOptions& options,
                                                                 const Job& job);

void fields(Fields& io, Waived& waived);

// Returns the head that the CI system's event names: of a pull request, a merge group or a push.
// "" if there is no event, or if it names none; an error if it cannot be read.
[[nodiscard]] Result<std::string> event_head(const Job& job);
// Returns the base's commit that the event names; "" if none does.
[[nodiscard]] Result<std::string> event_base(const Job& job);

// weir waive: waives a change for one pull request. Writes to a local branch, or answers a comment
// through GitHub's API.
struct WaiveOptions {
  std::string verdict;  // a run's folder or a verdict.json
  std::optional<std::int64_t> pull_request;
  std::string sha, base, cell, metric, from, to, reason, who, until;
  std::string branch = "perf-baselines";
  std::string event_file, gate;
  GithubOptions access{.time_limit = "2m"};
};
[[nodiscard]] Result<Answer> waive(const Job& job, const WaiveOptions& options);

}  // namespace weir::flow
