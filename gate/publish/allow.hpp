// What a comment asks for, done where its author may ask for it: `/weir accept CODE REASON` writes
// allowances onto a branch and turns the check green, `/weir run SHA` answers which commit may be
// measured. docs/explanation/rules.md has the threat model.
//
// Nothing of an artifact is believed. What is accepted is what weir's own check run on the pull
// request's head shows: only weir's app can write there. CODE names all of it, so that a push, a
// retarget, other rules, another measurement and a file that says other things all come to nothing,
// whenever the comment was written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/publish/api.hpp"
#include "gate/publish/target.hpp"
#include "gate/verdict/allowance.hpp"

namespace weir::publish {

// 160 bits of SHA-256, as 40 hexadecimal digits (an author chooses both heads, and with 80 bits
// could make two of one code), over everything that an acceptance is of: the target's full head,
// base and pull request, the gate, the rules, and what is listed as accepted and as beyond that.
[[nodiscard]] std::string acceptance_code(const Target& target, const std::string& gate,
                                          const verdict::WouldTake& take);
// "/weir accept CODE REASON", to copy.
[[nodiscard]] std::string acceptance_line(const std::string& code);

// A comment that asks weir for something: `/weir accept CODE REASON`, `/weir run SHA`. Pure; the
// event and the comment are anybody's until parsed.

struct Command {
  enum class Kind { none, accept, run };
  Kind kind = Kind::none;
  std::string word;    // the word behind that, in lower case: CODE, or SHA
  std::string reason;  // of accept: the rest of the line
};
// The first line of a comment that is not empty; what a comment quotes or shows as code is none.
[[nodiscard]] Command parse_command(std::string_view body);

struct CommentEvent {
  std::string repository;   // "owner/name"
  std::int64_t number = 0;  // of the issue or pull request
  bool on_pull_request = false;
  bool created = false;  // not edited, not deleted
  bool bot = false;      // written by a program
  std::int64_t comment = 0;
  std::string body, login;
};
// GitHub's issue_comment event. `repository`: GITHUB_REPOSITORY, with which the event has to agree;
// "": nothing to agree with. `where` stands in errors. Code::data for any other text.
[[nodiscard]] Result<CommentEvent> read_comment_event(std::string_view text,
                                                      std::string_view repository,
                                                      std::string_view where);

struct AllowOptions {
  std::string gate;                       // from gate_name()
  std::string branch = "perf-baselines";  // where allowances are kept
  std::string until;                      // "2026-12-20"
  std::string app = "github-actions";     // that weir posts as
  // What a downloaded verdict says: has to be what the check run shows.
  std::optional<verdict::WouldTake> claimed{};
};

struct Answer {
  enum class Kind {
    nothing,   // the comment asks for nothing, or is none that counts
    refused,   // it asks, and may not or cannot have it
    accepted,  // the allowances are written
    run,       // `sha` may be measured
  };
  Kind kind = Kind::nothing;
  std::string why;  // one line for people
  std::int64_t pull_request = 0;
  std::string sha;    // of the head
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
