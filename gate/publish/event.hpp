// What GitHub says of the event a workflow runs for: where its verdict belongs. Pure: the event's
// text and the environment come in as arguments, both hostile until parsed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "gate/base/result.hpp"
#include "gate/publish/marker.hpp"

namespace weir::publish {

// GitHub delivers no event above 25 MB.
inline constexpr std::size_t k_largest_event = std::size_t{32} << 20;

// What a runner sets. "" where it is not set.
struct Surroundings {
  std::string event_name;   // GITHUB_EVENT_NAME; "": told from the event's shape
  std::string repository;   // GITHUB_REPOSITORY
  std::string sha;          // GITHUB_SHA
  std::string run_id;       // GITHUB_RUN_ID
  std::string run_attempt;  // GITHUB_RUN_ATTEMPT
};

// The branch that a workflow run measured for a pull request.
struct HeadBranch {
  std::string repository;  // "someone/fork"
  std::string branch;      // any text: encode it
};

struct Event {
  std::string name;                          // "pull_request", "push", …; "": none was given
  std::string repository;                    // "owner/name" where it is posted
  std::optional<std::int64_t> pull_request;  // that it is about, where the event says so
  // 40 or 64 lower-case hex digits of the commit that was measured: a pull request's head, never
  // the merge commit made for the run. "" where only the API knows (issue_comment).
  std::string sha;
  RunNumber run;  // that measured: of workflow_run the one it tells of, else this one
  // Of workflow_run: how the run ended ("success", "failure", "cancelled", "skipped", …; "" while
  // it goes on).
  std::optional<std::string> conclusion;
  // Of a workflow_run for a pull request which the event does not name: look it up.
  std::optional<HeadBranch> head;
  // The workflow runs for a fork's pull request, with a token that may only read.
  bool reads_only = false;
};

// `text`: the event's JSON; nothing: there is none, and the surroundings are all that is known.
// `where` (the file's name) stands in errors. Fails with Code::data where a part that decides is
// missing or is not what it should be.
[[nodiscard]] Result<Event> read_event(std::optional<std::string_view> text,
                                       const Surroundings& surroundings, std::string_view where);

// "owner/name" of letters, digits and "._-" as GitHub allows them.
[[nodiscard]] bool is_repository(std::string_view text);
// 40 or 64 hex digits of either case, not all of them 0.
[[nodiscard]] bool is_sha(std::string_view text);

}  // namespace weir::publish
