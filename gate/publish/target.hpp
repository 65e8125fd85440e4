// The place where a verdict is posted. The event, options and the API say where; never the verdict.
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

// A workflow run and its attempt. GitHub counts both from 1, and ids rise with time. {}: unknown,
// as when a person posts from their own machine.
struct RunNumber {
  std::int64_t id = 0, attempt = 0;

  [[nodiscard]] bool is_known() const { return id > 0; }
  friend auto operator<=>(const RunNumber&, const RunNumber&) = default;
};
// Returns {} if `id` is no number from 1; an `attempt` that is no number is the first.
[[nodiscard]] RunNumber run_number(std::string_view id, std::string_view attempt);
// Returns true if the post of `there` must not be overwritten by `ours`. A run that is not known is
// a person's request: it may overwrite all, and be overwritten by all.
[[nodiscard]] bool is_newer(const RunNumber& there, const RunNumber& ours);

inline constexpr std::string_view k_default_gate = "gate";

// Returns a gate's name as posts have it: [A-Za-z0-9][A-Za-z0-9._-]{0,63} without "--". In any
// other name the other characters become '-' and a hash follows, so that two names never become
// one. "" becomes k_default_gate.
[[nodiscard]] std::string gate_name(std::string_view wanted);

// Returns a branch as posts name it: [a-z0-9._/-], at most 60 characters, without "--". In any
// other name the other characters become '-', and '~' with 80 bits of its SHA-256 follows. No
// branch has a
// '~', so two branches never become one, even where GitHub ignores case. "" stays "".
[[nodiscard]] std::string base_name(std::string_view branch);

// The hidden label of a post: its gate, pull request, base and run. A later poster finds its posts
// by it. Only posts of the same gate, pull request and base replace each other. Pure.
struct Marker {
  std::string gate;  // from gate_name()
  RunNumber run;
  std::optional<std::int64_t> pull_request{};
  std::string base{};  // from base_name(); "": none
  // True for a check run that is red only because another pull request's is.
  bool is_held = false;

  [[nodiscard]] bool is_same_place(const Marker& other) const {
    return gate == other.gate && pull_request == other.pull_request && base == other.base;
  }
  // Returns "weir:gate=NAME pr=7 base=main run=12 attempt=1", without unknown parts; then " held".
  [[nodiscard]] std::string text() const;
  // The same as a line that Markdown does not show: "<!-- weir:gate=… -->".
  [[nodiscard]] std::string hidden() const;
};
// Parses text(), with nothing before or after it.
[[nodiscard]] std::optional<Marker> parse_marker(std::string_view text);
// Parses the first line of a comment, which must be hidden() and nothing else; a quoted marker is
// none.
[[nodiscard]] std::optional<Marker> parse_comment_marker(std::string_view body);

// GitHub delivers no event above 25 MB.
inline constexpr std::size_t k_largest_event = std::size_t{32} << 20;

// Environment variables of a runner. "" if not set.
struct CiVariables {
  std::string event_name;   // GITHUB_EVENT_NAME; "": inferred from the event's shape
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
  std::string repository{};  // "owner/name" to post to
  // The pull request, if the event names one. Without it no comment is posted.
  std::optional<std::int64_t> pull_request{};
  // 40 or 64 lower-case hex digits of the measured commit: a pull request's head, never the merge
  // commit made for the run. "" if only the API knows it (issue_comment): then no check run and no
  // status is posted.
  std::string sha{};
  RunNumber run{};        // the measuring run: for workflow_run the one it is about, else this one
  std::string run_url{};  // shown as the source: https://…/actions/runs/12/attempts/1, or ""
  // For a pull request or merge group: the branch to merge into, any text, and its commit as the
  // event or the API names it; of a push, the commit before it alone. "": unknown, or there is
  // none.
  std::string base{}, base_sha{};

  [[nodiscard]] Marker marker(const std::string& gate) const {
    return {gate, run, pull_request, base_name(base)};
  }
};

// GitHub's event of a workflow. The poster fills in its run_url.
struct Event : Target {
  std::string name;              // "pull_request", "push", …; "": unknown
  bool of_pull_request = false;  // true even if its number is unknown
  // For pull_request: the commit that GitHub made for this run, which merges the head into the
  // base. "": unknown.
  std::string merge_sha;
  // For workflow_run: how the run ended ("success", "failure", "cancelled", "skipped", …; "" while
  // it runs).
  std::optional<std::string> conclusion;
  // For a workflow_run of a pull request, which has to be looked up.
  std::optional<HeadBranch> head;
  bool from_fork = false;  // a fork's code ran
  // The workflow runs for a fork's pull request, with a token that may only read.
  bool reads_only = false;
};

// Reads an event. `text` is its JSON; without it only the environment variables are used. Both are
// hostile. Errors begin with `where`, the file's name. Fails with Code::data if a part that decides
// is missing or malformed. Pure.
[[nodiscard]] Result<Event> read_event(std::optional<std::string_view> text,
                                       const CiVariables& surroundings, std::string_view where);

// Returns true for "owner/name" of letters, digits and "._-" as GitHub allows them.
[[nodiscard]] bool is_repository(std::string_view text);
// Returns true for 40 or 64 hex digits of either case, not all of them 0.
[[nodiscard]] bool is_sha(std::string_view text);

// Checks that `merge`, GitHub's merge commit for a pull request's job, was made from `event.sha`,
// the head. Fails with Code::data otherwise: the job measured another commit than the pull request
// shows.
[[nodiscard]] Result<void> check_merge(Api& api, const Event& event, const std::string& merge);

// Checks that a verdict of the commit `measured` is one of `event.sha`: of that commit itself, or
// of one that merges it into the base, as GitHub makes for a pull request's job. Fails with
// Code::usage otherwise.
[[nodiscard]] Result<void> check_measured(Api& api, const Event& event,
                                          const std::string& measured);

// Returns why rules of `commit` are not those of the target's base; "" if they are. They are if
// `commit` is the one that GitHub names for the base, or lies between that and the branch's tip. So
// rules of a former target branch or of an outdated base do not count.
[[nodiscard]] std::string why_not_rules_of_base(Api& api, const Target& target,
                                                const std::string& commit);

// Returns "https://github.com/o/r/actions/runs/12/attempts/1"; "" if the run is not known.
[[nodiscard]] std::string make_run_url(const std::string& server_url, const std::string& repository,
                                       const RunNumber& run);
// Returns the run that such a URL names; {} for any other URL.
[[nodiscard]] RunNumber parse_run_url(std::string_view url, const std::string& repository);

// Asks the API for the missing parts of `event`: head and base of a pull request, or the pull
// request of a workflow run. A note says if there is none.
//
// A workflow run's pull request must be open, in this repository, and its head exactly the branch
// and commit that were measured. If there are several (one branch into two), none is taken. Fails
// if the API does, or with Code::data if its answers are malformed.
[[nodiscard]] Result<void> look_up(Api& api, Event& event, std::vector<std::string>& notes);

}  // namespace weir::publish
