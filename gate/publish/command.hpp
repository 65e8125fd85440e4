// A comment that asks weir for something: `/weir accept REASON`, `/weir run`. Pure; the event and
// the comment are anybody's until parsed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "gate/base/result.hpp"

namespace weir::publish {

struct Command {
  enum class Kind { none, accept, run };
  Kind kind = Kind::none;
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
  std::string body, login, created_at;  // "2026-11-20T19:00:00Z"
};
// GitHub's issue_comment event. `repository`: GITHUB_REPOSITORY, with which the event has to agree;
// "": nothing to agree with. `where` stands in errors. Code::data for any other text.
[[nodiscard]] Result<CommentEvent> read_comment_event(std::string_view text,
                                                      std::string_view repository,
                                                      std::string_view where);

// "2026-11-20T19:00:00Z": two such times compare as text.
[[nodiscard]] bool is_time(std::string_view text);

}  // namespace weir::publish
