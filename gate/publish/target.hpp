// Where a verdict is posted. Never told by the verdict: by the event, by options, and where both
// are silent by the API.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/publish/api.hpp"

namespace weir::publish {

// What tells weir's own posts apart: of which gate they are, and which run of the workflow they
// show, so that a later poster finds them and an older one leaves them alone. Pure.

// A workflow run and its attempt, both counted from 1 by GitHub, ids rising with time. {}: unknown,
// as when a person posts from a desk.
struct RunNumber {
  std::int64_t id = 0, attempt = 0;

  [[nodiscard]] bool known() const { return id > 0; }
  friend auto operator<=>(const RunNumber&, const RunNumber&) = default;
};
// {} where `id` is no number from 1; an `attempt` that is none is the first.
[[nodiscard]] RunNumber run_number(std::string_view id, std::string_view attempt);
// Whether what `there` left must not be overwritten by `ours`. A run that is not known was asked
// for by somebody just now: it may overwrite all, and be overwritten by all.
[[nodiscard]] bool newer(const RunNumber& there, const RunNumber& ours);

inline constexpr std::string_view k_default_gate = "gate";

// A gate's name as posts bear it: [A-Za-z0-9][A-Za-z0-9._-]{0,63} without "--". A name that is not
// like that already gets its other characters as '-' and a hash behind it, so that two names never
// become one. "" is k_default_gate.
[[nodiscard]] std::string gate_name(std::string_view wanted);

// A branch as posts name it: [a-z0-9._/-], at most 60 characters, without "--". Any other one gets
// '-' for its other characters, and 80 bits of its SHA-256 behind a '~', which no branch has: so
// two branches never become one, also where GitHub ignores case. "" stays "".
[[nodiscard]] std::string base_name(std::string_view branch);

// Whose a post is, and of which run. Only posts of the same gate, pull request and base ever take
// each other's place.
struct Marker {
  std::string gate;  // from gate_name()
  RunNumber run;
  std::optional<std::int64_t> pull_request{};
  std::string base{};  // from base_name(); "": none
  // Of a check run: it is red only because another pull request's says otherwise.
  bool held = false;

  [[nodiscard]] bool of_the_same(const Marker& other) const {
    return gate == other.gate && pull_request == other.pull_request && base == other.base;
  }
  // "weir:gate=NAME pr=7 base=main run=12 attempt=1", without what is not known; " held".
  [[nodiscard]] std::string text() const;
  // The same as a line that Markdown does not show: "<!-- weir:gate=… -->".
  [[nodiscard]] std::string hidden() const;
};
// From text(), nothing else before or behind it.
[[nodiscard]] std::optional<Marker> parse_marker(std::string_view text);
// From the first line of a comment, which must be hidden() and nothing else: what a comment quotes
// is none.
[[nodiscard]] std::optional<Marker> marker_of(std::string_view body);

// What GitHub says of the event a workflow runs for: where its verdict belongs. Pure: the event's
// text and the environment come in as arguments, both hostile until parsed.

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

struct Target {
  std::string repository{};  // "owner/name" where it is posted
  // That it is about, where the event says so. None: no comment.
  std::optional<std::int64_t> pull_request{};
  // 40 or 64 lower-case hex digits of the commit that was measured: a pull request's head, never
  // the merge commit made for the run. "" where only the API knows (issue_comment): no check run
  // and no status.
  std::string sha{};
  RunNumber run{};        // that measured: of workflow_run the one it tells of, else this one
  std::string run_url{};  // shown as the source: https://…/actions/runs/12/attempts/1, or ""
  // Of a pull request or merge group: the branch that it is to be merged into, any text, and its
  // commit as the event or the API names it. "": not known, or there is none.
  std::string base{}, base_sha{};

  [[nodiscard]] Marker marker(const std::string& gate) const {
    return {gate, run, pull_request, base_name(base)};
  }
};

// Its run_url is for whoever posts to say.
struct Event : Target {
  std::string name;              // "pull_request", "push", …; "": none was given
  bool of_pull_request = false;  // also where nobody knows which
  // Of workflow_run: how the run ended ("success", "failure", "cancelled", "skipped", …; "" while
  // it goes on).
  std::optional<std::string> conclusion;
  // Of a workflow_run for a pull request: look it up.
  std::optional<HeadBranch> head;
  bool from_fork = false;  // a fork's code ran
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

// That `merge`, GitHub's merge commit for a pull request's job, is of `event.sha`, the head: else
// Code::data, for what that job measured is not what the pull request shows.
[[nodiscard]] Result<void> check_merge(Api& api, const Event& event, const std::string& merge);

// Why rules of `commit` are none of the target's base; "" where they are: `commit` is what GitHub
// names as the base's, or stands between that and the branch's tip. So rules of a branch that the
// pull request was for before, or of a base as it once was, do not count.
[[nodiscard]] std::string why_not_rules_of_base(Api& api, const Target& target,
                                                const std::string& commit);

// "https://github.com/o/r/actions/runs/12/attempts/1"; "" where the run is not known.
[[nodiscard]] std::string run_url_of(const std::string& server_url, const std::string& repository,
                                     const RunNumber& run);
// The run that such a URL names; {} for any other URL.
[[nodiscard]] RunNumber run_of_url(std::string_view url, const std::string& repository);

// Asks the API for what `event` leaves open: head and base of a pull request that is named, the
// pull request of a workflow run. Says in `notes` where there is none. Of a workflow run only an
// open pull request of this repository counts whose head is exactly the branch and the commit that
// was measured; where several are (one branch into two), none is taken.
// Fails where the API does, or with Code::data where its answers are not what they should be.
[[nodiscard]] Result<void> look_up(Api& api, Event& event, std::vector<std::string>& notes);

}  // namespace weir::publish
