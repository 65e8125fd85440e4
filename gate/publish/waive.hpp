// Does what a comment asks for, if its author may ask for it. `/weir waive CODE REASON` writes
// waivers to a branch and turns the check green. `/weir run SHA` says which commit may be
// measured. docs/explanation/rules.md has the threat model.
//
// No artifact is trusted. A comment waives what weir's own check run on the pull request's head
// shows, because only weir's app can write there. CODE names all of it: after a push, a retarget,
// or with other rules, another measurement or another file, the code no longer fits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/publish/api.hpp"
#include "gate/publish/target.hpp"
#include "gate/verdict/waiver.hpp"

namespace weir::publish {

// Returns 160 bits of SHA-256 as 40 hexadecimal digits. It covers the target's full head, base and
// pull request, the gate, the rules, and the changes listed as waivable and as beyond that. An
// author chooses the heads, and with only 80 bits could find two with the same code.
[[nodiscard]] std::string waiver_code(const Target& target, const std::string& gate,
                                      const verdict::NeededWaivers& take);
// Returns "/weir waive CODE REASON", to copy.
[[nodiscard]] std::string waiver_line(const std::string& code);

// A comment that asks weir for something: `/weir waive CODE REASON`, `/weir run SHA`. Pure; the
// event and the comment are anybody's until parsed.

struct Command {
  enum class Kind { none, waive, run };
  Kind kind = Kind::none;
  std::string word;    // the word after that, in lower case: CODE or SHA
  std::string reason;  // for waive: the rest of the line
};
// Parses the first line of a comment that is not empty. A quotation or code is no command.
[[nodiscard]] Command parse_command(std::string_view body);

struct CommentEvent {
  std::string repository;   // "owner/name"
  std::int64_t number = 0;  // number of the issue or pull request
  bool on_pull_request = false;
  bool created = false;  // not edited, not deleted
  bool bot = false;      // written by a program
  std::int64_t comment = 0;
  std::string body, login;
};
// Reads GitHub's issue_comment event. `repository` is GITHUB_REPOSITORY, which the event has to
// name;
// "" accepts any. Errors begin with `where`. Code::data for any other text.
[[nodiscard]] Result<CommentEvent> read_comment_event(std::string_view text,
                                                      std::string_view repository,
                                                      std::string_view where);

struct WaiveOptions {
  std::string gate;                       // from gate_name()
  std::string branch = "perf-baselines";  // holds the waivers
  std::string until;                      // "2026-12-20"
  std::string app = "github-actions";     // the app that weir posts as
  // Changes of a downloaded verdict, which have to be those that the check run shows.
  std::optional<verdict::NeededWaivers> claimed{};
};

struct Answer {
  enum class Kind {
    nothing,  // the comment asks for nothing, or is none that counts
    refused,  // it asks, and may not or cannot have it
    waived,   // the waivers are written
    run,      // `sha` may be measured
  };
  Kind kind = Kind::nothing;
  std::string why;  // one line for people
  std::int64_t pull_request = 0;
  std::string sha;  // the head
  // The branch that it is for; "" if its name has more than letters, digits and "._/-".
  std::string base;
  bool fork =
      false;  // the head is in another repository: never measure it on a runner of one's own
  std::vector<verdict::Waivable> changes;
  bool green = false;  // the check run is green now
  std::vector<std::string> notes;
};
[[nodiscard]] std::string_view to_string(Answer::Kind kind);

// Fails if the API does. Anything written before that stays; a repeated call writes the same.
[[nodiscard]] Result<Answer> answer_comment(Api& api, const CommentEvent& event,
                                            const WaiveOptions& options);

// Adds `added` to the pull request's file on the branch. Tries again if somebody else wrote
// meanwhile.
[[nodiscard]] Result<void> write_waivers(Api& api, const std::string& repository,
                                         const std::string& branch, std::int64_t pull_request,
                                         const std::vector<verdict::Waiver>& added,
                                         const std::string& message);

}  // namespace weir::publish
