// What a comment asks for, done where its author may ask for it: `/weir accept REASON` writes
// allowances onto a branch and turns the check green, `/weir run` answers which commit may be
// measured. docs/rules.md has the threat model.
//
// Nothing of an artifact is believed. What is accepted is what weir's own check run on the pull
// request's head showed before the comment was written: only weir's app can write there, and its
// author could read it. So a push after the comment (another head, which had no such check run
// then), a run that was measured again since, and a file that says other things all come to
// nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gate/publish/api.hpp"
#include "gate/publish/command.hpp"
#include "gate/verdict/allowance.hpp"

namespace weir::publish {

struct AllowOptions {
  std::string gate;                       // from gate_name()
  std::string branch = "perf-baselines";  // where allowances are kept
  std::string until;                      // "2026-12-20"
  std::string app = "github-actions";     // that weir posts as
  std::string now;                        // "2026-11-20T19:00:00Z"
  // What a downloaded verdict says: has to be what the check run shows.
  std::optional<verdict::WouldTake> claimed{};
};

struct Answer {
  enum class Kind {
    nothing,   // the comment asks for nothing, or is none that counts
    refused,   // it asks, and may not or can not have it
    accepted,  // the allowances are written
    run,       // `sha` may be measured
  };
  Kind kind = Kind::nothing;
  std::string why;  // one line for people
  std::int64_t pull_request = 0;
  std::string sha;    // of the head, as it was when the comment was written
  bool fork = false;  // it lies in another repository: never on a runner of one's own
  std::vector<verdict::Allowable> changes;
  bool green = false;  // the check run is
  std::vector<std::string> notes;
};
[[nodiscard]] std::string_view to_string(Answer::Kind kind);

// Fails where the API does. What was written before that stays: asked again, the same is written.
[[nodiscard]] Result<Answer> answer_comment(Api& api, const CommentEvent& event,
                                            const AllowOptions& options);

// Adds `added` to the pull request's file on the branch, again where somebody else wrote meanwhile.
[[nodiscard]] Result<void> write_allowances(Api& api, const std::string& repository,
                                            const std::string& branch, std::int64_t pull_request,
                                            const std::vector<verdict::Allowance>& added,
                                            const std::string& message);

}  // namespace weir::publish
