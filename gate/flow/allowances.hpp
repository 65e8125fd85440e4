// What a gate's pull request was allowed: read from a branch (--allowances-ref), kept in the run.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gate/flow/job.hpp"
#include "gate/flow/post.hpp"
#include "gate/source/git.hpp"
#include "gate/verdict/allowance.hpp"

namespace weir::flow {
struct AllowedWanted {
  std::optional<std::string> ref;            // --allowances-ref
  std::optional<std::int64_t> pull_request;  // --pr; absent: of the event that a CI system tells of
  std::string base;                          // --base; "": likewise
};

struct Allowed {
  std::vector<verdict::Allowance> list;
  std::int64_t pull_request = 0;
  std::string head, today, base;
  std::vector<std::string> notes;  // why there are none
};
// Null where none is asked for. A branch that is not there yet, or no pull request, is a note: then
// nothing is allowed. Fails with Code::data on a file that is no list of allowances.
[[nodiscard]] Result<std::shared_ptr<const Allowed>> read_allowed(const AllowedWanted& wanted,
                                                                  const Job& job);

void fields(Fields& io, Allowed& allowed);

// weir allow: a change is accepted for one pull request. By hand onto a local branch, or, asked for
// by a comment, through GitHub's API.
struct AllowOptions {
  std::string verdict;  // a run's folder or a verdict.json
  std::optional<std::int64_t> pull_request;
  std::string sha, cell, metric, from, to, reason, who, until;
  std::string branch = "perf-baselines";
  std::string event_file, gate;
  GithubOptions access{.time_limit = "2m"};
};
[[nodiscard]] Result<Answer> allow(const Job& job, const AllowOptions& words);

}  // namespace weir::flow
