// Finds out where a verdict is posted, and reads and writes the markers of posts.
#include "gate/publish/target.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "gate/base/encode.hpp"
#include "gate/base/hash.hpp"
#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/sys/digest.hpp"

namespace weir::publish {

namespace {

constexpr std::size_t k_longest_name = 64;
constexpr std::string_view k_before = "<!-- ", k_behind = " -->";

bool is_name_char(char c) { return text::is_alphanumeric(c) || c == '.' || c == '_' || c == '-'; }

bool is_name(std::string_view name) {
  // "--" could end the comment that hides the marker.
  return !name.empty() && name.size() <= k_longest_name && text::is_alphanumeric(name.front()) &&
         std::ranges::all_of(name, is_name_char) && name.find("--") == std::string_view::npos;
}

// Replaces each run of characters that are not `fit` by one '-'.
std::string replace_with_dashes(std::string_view text, bool (*fit)(char)) {
  std::string name;
  for (const char c : text) {
    const char shown = fit(c) ? c : '-';
    if (shown != '-' || !name.ends_with('-')) name += shown;
  }
  return name;
}

constexpr std::size_t k_longest_base = 60, k_base_digits = 20;

bool is_base_char(char c) { return (is_name_char(c) || c == '/') && text::lower({&c, 1})[0] == c; }

// Takes " key=VALUE" off the front of `text` and returns VALUE, which ends at a space; nothing if
// it isn't there.
std::optional<std::string_view> take_value(std::string_view& text, std::string_view key) {
  if (!text.starts_with(key)) return std::nullopt;
  const std::string_view value = text.substr(key.size(), text.find(' ', 1) - key.size());
  text.remove_prefix(key.size() + value.size());
  return value;
}

std::optional<std::int64_t> parse_number(const std::optional<std::string_view>& value) {
  return value && text::has_only_digits(*value) ? text::to_int(*value) : std::nullopt;
}

// Copies the branch of this repository that `pull` is for into the event, and whether its code
// comes from a fork.
Result<void> read_base(const Json& pull, Event& event) {
  const Json& base = member_or_null(pull, "base");
  event.base = text_in(base, "ref");
  event.base_sha = text::lower(text_in(base, "sha"));
  if (event.base.empty() || !is_sha(event.base_sha)) {
    return fail(Code::data, "pull request {} of {}: base is no branch", number_in(pull, "number"),
                event.repository);
  }
  event.of_pull_request = true;
  event.from_fork = event.from_fork ||
                    !text::equal_ignoring_case(
                        text_in(member_or_null(member_or_null(pull, "head"), "repo"), "full_name"),
                        event.repository);
  return {};
}

// Adds the pull requests of `list` that the event measured, by number. They are open, for a branch
// of this repository, and their head is its branch and commit.
void add_measured(const Json& list, const Event& event, std::map<std::int64_t, Json>& pulls) {
  for (const Json& pull : list) {
    const Json& head = member_or_null(pull, "head");
    const bool is_measured =
        text_in(pull, "state") == "open" &&
        text::equal_ignoring_case(text_in(head, "sha"), event.sha) &&
        text_in(head, "ref") == event.head->branch &&
        text::equal_ignoring_case(text_in(member_or_null(head, "repo"), "full_name"),
                                  event.head->repository) &&
        text::equal_ignoring_case(
            text_in(member_or_null(member_or_null(pull, "base"), "repo"), "full_name"),
            event.repository);
    if (is_measured && number_in(pull, "number") > 0) pulls[number_in(pull, "number")] = pull;
  }
}

// Finds the open pull request whose head a workflow run measured. If there are none or several,
// adds a note instead of failing.
Result<void> find_pull(Api& api, Event& event, std::vector<std::string>& notes) {
  constexpr std::size_t k_max_pulls = 300;
  const std::string owner = event.head->repository.substr(0, event.head->repository.find('/'));
  // The first may not list a fork's branches, which the second does; each alone may lag behind.
  const std::string paths[] = {
      fmt::format("/repos/{}/commits/{}/pulls", event.repository, event.sha),
      fmt::format("/repos/{}/pulls?state=open&head={}", event.repository,
                  percent_encode(owner + ":" + event.head->branch))};
  std::map<std::int64_t, Json> pulls;
  std::optional<Error> problem;
  for (const std::string& path : paths) {
    const auto list = api.list(path, k_max_pulls);
    if (list) add_measured(*list, event, pulls);
    if (!list && !problem) problem = list.error();
  }
  if (pulls.size() == 1) {
    event.pull_request = pulls.begin()->first;
    return read_base(pulls.begin()->second, event);
  }
  if (pulls.empty() && problem) {
    return tl::unexpected(add_prefix("looking for the pull request", *problem));
  }
  const std::string branch = text::printable(event.head->branch);
  notes.push_back(
      pulls.empty() ? fmt::format("no open pull request has {} of {} at {} any more: no comment",
                                  branch, event.head->repository, text::short_commit(event.sha))
                    : fmt::format("{} pull requests have {} of {}: no comment; name one with --pr",
                                  pulls.size(), branch, event.head->repository));
  return {};
}

// Asks GitHub for base and head of the event's pull request. A head that the event has already
// stays.
Result<void> find_head_and_base(Api& api, Event& event) {
  const std::string path = fmt::format("/repos/{}/pulls/{}", event.repository, *event.pull_request);
  WEIR_TRY(const ApiResponse answer, api.get(path));
  if (!is_success(answer)) {
    return fail(Code::unavailable, "pull request {} of {}: {}", *event.pull_request,
                event.repository, refusal_text(answer));
  }
  const std::string sha = text_in(member_or_null(answer.body, "head"), "sha");
  if (event.sha.empty() && !is_sha(sha)) {
    return fail(Code::data, "pull request {} of {}: head.sha is no commit", *event.pull_request,
                event.repository);
  }
  if (event.sha.empty()) event.sha = text::lower(sha);
  return read_base(answer.body, event);
}

// Returns how GitHub compares `to` with `from`: "ahead", "behind", "identical" or "diverged".
Result<std::string> compare_commits(Api& api, const Target& target, const std::string& from,
                                    const std::string& to) {
  WEIR_TRY(const ApiResponse answer,
           api.get(fmt::format("/repos/{}/compare/{}...{}?per_page=1", target.repository,
                               percent_encode(from), to)));
  if (!is_success(answer)) return refusal_error(answer, " (the token needs contents: read)");
  return text_in(answer.body, "status");
}

// Returns true if `commit` has two parents, of which the second, the merged one, is the event's.
Result<bool> merges_head(Api& api, const Event& event, const std::string& commit) {
  WEIR_TRY(const ApiResponse answer,
           api.get(fmt::format("/repos/{}/commits/{}", event.repository, commit)));
  if (!is_success(answer)) {
    return fail(Code::unavailable, "commit {} of {}: {}", commit, event.repository,
                refusal_text(answer));
  }
  const Json& parents = member_or_null(answer.body, "parents");
  return parents.is_array() && parents.size() == 2 &&
         text::equal_ignoring_case(text_in(parents[1], "sha"), event.sha);
}

}  // namespace

RunNumber run_number(std::string_view id, std::string_view attempt) {
  const auto number = text::to_int(id), attempt_number = text::to_int(attempt);
  if (number.value_or(0) <= 0) return {};
  return {*number, std::max(1LL, attempt_number.value_or(1))};
}

bool is_newer(const RunNumber& there, const RunNumber& ours) {
  return ours.is_known() && ours < there;
}

std::string gate_name(std::string_view wanted) {
  if (wanted.empty()) return std::string(k_default_gate);
  if (is_name(wanted)) return std::string(wanted);
  std::string name = replace_with_dashes(wanted.substr(0, k_longest_name), is_name_char);
  name.erase(name.begin(), std::ranges::find_if(name, text::is_alphanumeric));
  name = name.substr(0, 48);
  while (!name.empty() && name.back() == '-') name.pop_back();
  return fmt::format("{}-{}", name.empty() ? "gate" : name, short_hash(wanted));
}

std::string base_name(std::string_view branch) {
  const bool fits = branch.size() <= k_longest_base && std::ranges::all_of(branch, is_base_char) &&
                    branch.find("--") == std::string_view::npos;
  if (fits) return std::string(branch);
  const std::string first = text::lower(branch.substr(0, k_longest_base - k_base_digits - 1));
  const std::string digits = sys::sha256_hex(branch).substr(0, k_base_digits);
  return replace_with_dashes(first, is_base_char) + "~" + digits;
}

std::string Marker::text() const {
  std::string text = "weir:gate=" + gate;
  if (pull_request) text += fmt::format(" pr={}", *pull_request);
  if (!base.empty()) text += " base=" + base;
  text += fmt::format(" run={} attempt={}", run.id, run.attempt);
  if (is_held) text += " held";
  return text;
}

std::string Marker::hidden() const { return fmt::format("{}{}{}", k_before, text(), k_behind); }

// Parses a marker such as "weir:gate=NAME pr=7 base=main run=12 attempt=1 held". Nullopt if it is
// malformed.
std::optional<Marker> parse_marker(std::string_view text) {
  const auto gate = take_value(text, "weir:gate=");
  if (!gate || !is_name(*gate)) return std::nullopt;
  Marker marker{std::string(*gate), {}};
  if (const auto pull = take_value(text, " pr=")) {
    marker.pull_request = parse_number(pull);
    if (!marker.pull_request) return std::nullopt;
  }
  if (const auto base = take_value(text, " base=")) {
    if (base->find("--") != std::string_view::npos) return std::nullopt;
    marker.base = *base;
  }
  const auto id = parse_number(take_value(text, " run="));
  const auto attempt = parse_number(take_value(text, " attempt="));
  marker.is_held = text == " held";
  if (!id || !attempt || !(text.empty() || marker.is_held)) return std::nullopt;
  marker.run = {*id, *attempt};
  return marker;
}

std::optional<Marker> parse_comment_marker(std::string_view body) {
  const std::string_view line = body.substr(0, body.find_first_of("\r\n"));
  const std::size_t around = k_before.size() + k_behind.size();
  const bool fits = line.size() >= around && line.starts_with(k_before) && line.ends_with(k_behind);
  return fits ? parse_marker(line.substr(k_before.size(), line.size() - around)) : std::nullopt;
}

bool is_repository(std::string_view text) {
  const auto fit = [](std::string_view part, std::string_view more, std::size_t max_bytes) {
    return !part.empty() && part.size() <= max_bytes && part != "." && part != ".." &&
           std::ranges::all_of(part, [&](char c) {
             return text::is_alphanumeric(c) || more.find(c) != std::string_view::npos;
           });
  };
  const std::size_t slash = text.find('/');
  return slash != std::string_view::npos && fit(text.substr(0, slash), "-_", 100) &&
         fit(text.substr(slash + 1), "-_.", 100);
}

bool is_sha(std::string_view text) {
  return (text.size() == 40 || text.size() == 64) &&
         text.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos &&
         text.find_first_not_of('0') != std::string_view::npos;
}

std::string make_run_url(const std::string& server_url, const std::string& repository,
                         const RunNumber& run) {
  if (!run.is_known() || server_url.empty() || repository.empty()) return "";
  return fmt::format("{}/{}/actions/runs/{}/attempts/{}", server_url, repository, run.id,
                     run.attempt);
}

RunNumber parse_run_url(std::string_view url, const std::string& repository) {
  const std::string before = fmt::format("/{}/actions/runs/", repository);
  const std::size_t start = text::lower(url).find(text::lower(before));
  if (start == std::string_view::npos) return {};
  const std::vector<std::string> parts = text::split(url.substr(start + before.size()), '/');
  return run_number(parts[0], parts.size() == 3 && parts[1] == "attempts" ? parts[2] : "");
}

Result<void> look_up(Api& api, Event& event, std::vector<std::string>& notes) {
  if (event.pull_request && (event.sha.empty() || event.base.empty())) {
    return find_head_and_base(api, event);
  }
  if (!event.pull_request && event.head && !event.sha.empty()) {
    return find_pull(api, event, notes);
  }
  return {};
}

Result<void> check_merge(Api& api, const Event& event, const std::string& merge) {
  WEIR_TRY(const bool is_merge, merges_head(api, event, merge));
  if (is_merge) return {};
  return fail(Code::data, "pull request {} has another head now than the one that was measured",
              *event.pull_request);
}

// Fails unless the measured commit is the event's, or merges that one into the base.
Result<void> check_measured(Api& api, const Event& event, const std::string& measured) {
  const std::string commit = text::lower(measured);
  if (commit == event.sha || (!commit.empty() && commit == event.merge_sha)) return {};
  std::string unknown;
  if (event.of_pull_request && is_sha(commit)) {
    const auto is_merge = merges_head(api, event, commit);
    if (is_merge && *is_merge) return {};
    if (!is_merge) {
      unknown =
          fmt::format(" (if it merges that could not be asked: {}; the token needs contents: read)",
                      is_merge.error().message);
    }
  }
  return fail(Code::usage,
              "the verdict is of commit {}, and would be posted to {}{}; post the verdict of that "
              "commit, or name the commit that was measured with --sha",
              text::printable(text::short_commit(commit)), text::short_commit(event.sha), unknown);
}

// Returns why the rules of `commit` are not those of the target's base; "" if they are. They are if
// it lies between the base that GitHub names and the branch's tip.
std::string why_not_rules_of_base(Api& api, const Target& target, const std::string& commit) {
  const std::string rules = text::lower(commit);
  if (!is_sha(rules)) return "the rules are of no commit";
  if (rules == target.base_sha) return "";
  const std::pair<std::string, std::string> required_positions[] = {{target.base, "behind"},
                                                                    {target.base_sha, "ahead"}};
  for (const auto& [other, required] : required_positions) {
    const auto position = compare_commits(api, target, other, rules);
    if (!position) {
      return fmt::format("whether the rules are those of {} could not be asked: {}",
                         text::printable(target.base), position.error().message);
    }
    if (*position != required && *position != "identical") {
      return fmt::format("judged by the rules of {}, which are not those of {} now",
                         text::short_commit(rules), text::printable(target.base));
    }
  }
  return "";
}

}  // namespace weir::publish
