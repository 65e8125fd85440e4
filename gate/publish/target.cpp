#include "gate/publish/target.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "gate/base/encode.hpp"
#include "gate/base/hash.hpp"
#include "gate/base/json.hpp"
#include "gate/base/text.hpp"

namespace weir::publish {

namespace {

constexpr std::size_t k_longest_name = 64;
constexpr std::string_view k_before = "<!-- ", k_behind = " -->";

bool fit_for_name(char c) { return text::is_alphanumeric(c) || c == '.' || c == '_' || c == '-'; }

bool is_name(std::string_view name) {
  // "--" could end the comment that hides the marker.
  return !name.empty() && name.size() <= k_longest_name && text::is_alphanumeric(name.front()) &&
         std::ranges::all_of(name, fit_for_name) && name.find("--") == std::string_view::npos;
}

// "key=DIGITS" off the front of `text`.
std::optional<std::int64_t> take_number(std::string_view& text, std::string_view key) {
  if (text.substr(0, key.size()) != key) return std::nullopt;
  text.remove_prefix(key.size());
  const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto value = text::to_int(text.substr(0, end));
  text.remove_prefix(end);
  if (!value) return std::nullopt;
  return *value;
}

// Parts of the event under the path they have there. Keeps the first complaint.
class Section {
 public:
  Section(const Json* json, std::string path, std::optional<Error>& problem)
      : json_(json), path_(std::move(path)), problem_(problem) {}

  [[nodiscard]] Section at(const char* key) const {
    const Json* below = find(key);
    const std::string path = path_of(key);
    if (below != nullptr && !below->is_object()) {
      complain(path, "is no object");
      below = nullptr;
    }
    return {below, path, problem_};
  }
  [[nodiscard]] bool there() const { return json_ != nullptr; }
  [[nodiscard]] bool has(const char* key) const { return find(key) != nullptr; }
  // "" where it is not there.
  [[nodiscard]] std::string words(const char* key, std::size_t most) const {
    const Json* value = find(key);
    if (value == nullptr) return "";
    if (!value->is_string() || value->get_ref<const std::string&>().size() > most) {
      complain(path_of(key), fmt::format("is no text of at most {} bytes", most));
      return "";
    }
    return value->get<std::string>();
  }
  [[nodiscard]] std::string sha(const char* key) const {
    std::string found = need(key, words(key, 100));
    if (!found.empty() && !is_sha(found)) {
      complain(path_of(key),
               fmt::format("\"{}\" is no commit (40 or 64 hex digits)", shown(found)));
    }
    return text::lower(found);
  }
  [[nodiscard]] std::string repository(const char* key) const {
    std::string found = need(key, words(key, 200));
    if (!found.empty() && !is_repository(found)) {
      complain(path_of(key), fmt::format("\"{}\" is no OWNER/NAME", shown(found)));
    }
    return found;
  }
  // A count from 1.
  [[nodiscard]] std::int64_t number(const char* key) const {
    const Json* value = find(key);
    const bool fine =
        value != nullptr && value->is_number_integer() &&
        (!value->is_number_unsigned() || value->get<std::uint64_t>() <= std::uint64_t{1} << 53U) &&
        value->get<std::int64_t>() > 0;
    if (!fine) complain(path_of(key), value == nullptr ? "is missing" : "is no number from 1");
    return fine ? value->get<std::int64_t>() : 0;
  }
  [[nodiscard]] const Json* list(const char* key) const {
    const Json* value = find(key);
    return value != nullptr && value->is_array() ? value : nullptr;
  }
  void complain(const std::string& path, const std::string& what) const {
    if (!problem_) problem_ = Error{Code::data, fmt::format("{} {}", path, what)};
  }

 private:
  [[nodiscard]] const Json* find(const char* key) const {
    if (json_ == nullptr) return nullptr;
    const auto found = json_->find(key);
    return found == json_->end() || found->is_null() ? nullptr : &*found;
  }
  [[nodiscard]] std::string need(const char* key, std::string value) const {
    if (value.empty()) complain(path_of(key), "is missing");
    return value;
  }
  [[nodiscard]] std::string path_of(const char* key) const {
    return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
  }
  static std::string shown(std::string_view hostile) {
    return text::printable(hostile.substr(0, 80));
  }

  const Json* json_;
  std::string path_;
  std::optional<Error>& problem_;
};

bool about_pull_request(std::string_view event) {
  return event == "pull_request" || event == "pull_request_target" ||
         event == "pull_request_review" || event == "pull_request_review_comment";
}

// By what only one kind of event has.
std::string name_from_shape(const Section& top) {
  if (top.has("workflow_run")) return "workflow_run";
  if (top.has("merge_group")) return "merge_group";
  if (top.has("pull_request")) return "pull_request";
  if (top.has("issue") && top.has("comment")) return "issue_comment";
  if (top.has("after") && top.has("ref")) return "push";
  return top.has("schedule") ? "schedule" : "workflow_dispatch";
}

void read_pull_request(const Section& top, Event& event) {
  const Section pull = top.at("pull_request");
  event.pull_request = pull.number("number");
  event.sha = pull.at("head").sha("sha");
  // A fork that was deleted has no repository any more.
  const Section head = pull.at("head").at("repo");
  const bool own =
      head.there() && text::lower(head.repository("full_name")) == text::lower(event.repository);
  event.reads_only = !own && event.name != "pull_request_target";
}

// The pull request that GitHub names: only of branches in the repository itself, and as it is now,
// which may be a later commit than was measured.
std::optional<std::int64_t> named_pull(const Section& run, const std::string& sha) {
  const Json* pulls = run.list("pull_requests");
  std::optional<std::int64_t> found;
  for (const Json& one : pulls == nullptr ? Json::array() : *pulls) {
    std::optional<Error> unlike;
    const Section pull(one.is_object() ? &one : nullptr, "pull_requests", unlike);
    const std::string head = pull.at("head").sha("sha");
    const std::int64_t number = pull.number("number");
    if (unlike || head != sha) continue;
    if (found) return std::nullopt;  // two: the branch is to be merged into several
    found = number;
  }
  return found;
}

void read_workflow_run(const Section& top, Event& event) {
  const Section run = top.at("workflow_run");
  event.sha = run.sha("head_sha");
  event.run = {run.number("id"), run.number("run_attempt")};
  event.conclusion = run.words("conclusion", 40);
  if (!about_pull_request(run.words("event", 100))) return;
  const Section head = run.at("head_repository");
  event.from_fork =
      head.there() && text::lower(head.repository("full_name")) != text::lower(event.repository);
  event.pull_request = named_pull(run, event.sha);
  if (event.pull_request) return;
  event.head = HeadBranch{head.repository("full_name"), run.words("head_branch", 1024)};
}

void read_issue_comment(const Section& top, Event& event) {
  const Section issue = top.at("issue");
  const std::int64_t number = issue.number("number");
  if (issue.has("pull_request")) {
    event.pull_request = number;
    event.sha.clear();  // GITHUB_SHA is the default branch's
  }
}

RunNumber own_run(const Surroundings& surroundings) {
  const auto id = text::to_int(surroundings.run_id);
  const auto attempt = text::to_int(surroundings.run_attempt);
  if (!id || *id <= 0) return {};
  return {*id, attempt && *attempt > 0 ? *attempt : 1};
}

Result<Event> from_surroundings(const Surroundings& surroundings) {
  Event event;
  event.name = surroundings.event_name;
  event.run = own_run(surroundings);
  if (!surroundings.repository.empty()) {
    if (!is_repository(surroundings.repository)) {
      return fail(Code::data, "GITHUB_REPOSITORY: \"{}\" is no OWNER/NAME",
                  text::printable(surroundings.repository));
    }
    event.repository = surroundings.repository;
  }
  if (!surroundings.sha.empty()) {
    if (!is_sha(surroundings.sha)) {
      return fail(Code::data, "GITHUB_SHA: \"{}\" is no commit (40 or 64 hex digits)",
                  text::printable(surroundings.sha));
    }
    event.sha = text::lower(surroundings.sha);
  }
  return event;
}

bool alike(std::string_view a, std::string_view b) { return text::lower(a) == text::lower(b); }

// Numbers of the pull requests of `list` whose head is what `event` measured.
std::vector<std::int64_t> measured_pulls(const Json& list, const Event& event) {
  std::vector<std::int64_t> numbers;
  for (const Json& pull : list) {
    const Json& head = below(pull, "head");
    const std::string head_repository = text_in(below(head, "repo"), "full_name");
    const bool same =
        text_in(pull, "state") == "open" && alike(text_in(head, "sha"), event.sha) &&
        text_in(head, "ref") == event.head->branch &&
        alike(head_repository, event.head->repository) &&
        alike(text_in(below(below(pull, "base"), "repo"), "full_name"), event.repository);
    const std::int64_t number = number_in(pull, "number");
    if (same && number > 0 && std::ranges::find(numbers, number) == numbers.end()) {
      numbers.push_back(number);
    }
  }
  return numbers;
}

Result<void> find_pull(Api& api, Event& event, std::vector<std::string>& notes) {
  constexpr std::size_t k_most = 300;
  const std::string owner = event.head->repository.substr(0, event.head->repository.find('/'));
  // The second knows a fork's branches, which the first may not; each alone may lag behind.
  const std::string paths[] = {
      fmt::format("/repos/{}/commits/{}/pulls", event.repository, event.sha),
      fmt::format("/repos/{}/pulls?state=open&head={}", event.repository,
                  percent_encoded(owner + ":" + event.head->branch))};
  std::vector<std::int64_t> numbers;
  std::optional<Error> problem;
  for (const std::string& path : paths) {
    const auto list = api.list(path, k_most);
    if (list) numbers = measured_pulls(*list, event);
    if (!list && !problem) problem = list.error();
    if (!numbers.empty()) break;
  }
  if (numbers.size() == 1) {
    event.pull_request = numbers.front();
    return {};
  }
  if (numbers.empty() && problem) {
    return tl::unexpected(with_context("looking for the pull request", *problem));
  }
  const std::string branch = text::printable(event.head->branch);
  notes.push_back(
      numbers.empty()
          ? fmt::format("no open pull request has {} of {} at {} any more: no comment", branch,
                        event.head->repository, event.sha.substr(0, 7))
          : fmt::format("{} pull requests have {} of {}: no comment; name one with --pr",
                        numbers.size(), branch, event.head->repository));
  return {};
}

Result<void> find_head(Api& api, Event& event) {
  const std::string path = fmt::format("/repos/{}/pulls/{}", event.repository, *event.pull_request);
  WEIR_TRY(const ApiResponse answer, api.get(path));
  if (!fine(answer)) {
    return fail(Code::unavailable, "pull request {} of {}: {}", *event.pull_request,
                event.repository, refusal(answer));
  }
  const std::string sha = text_in(below(answer.body, "head"), "sha");
  if (!is_sha(sha)) {
    return fail(Code::data, "pull request {} of {}: head.sha is no commit", *event.pull_request,
                event.repository);
  }
  event.sha = text::lower(sha);
  return {};
}

}  // namespace

bool newer(const RunNumber& there, const RunNumber& ours) { return ours.known() && ours < there; }

std::string gate_name(std::string_view wanted) {
  if (wanted.empty()) return std::string(k_default_gate);
  if (is_name(wanted)) return std::string(wanted);
  std::string name;
  for (const char c : wanted.substr(0, k_longest_name)) {
    const char fit = fit_for_name(c) ? c : '-';
    if (fit != '-' || (!name.empty() && name.back() != '-')) name += fit;
  }
  const std::size_t first = std::min(
      static_cast<std::size_t>(std::ranges::find_if(name, text::is_alphanumeric) - name.begin()),
      name.size());
  name = name.substr(first, 48);
  while (!name.empty() && name.back() == '-') name.pop_back();
  return fmt::format("{}-{}", name.empty() ? "gate" : name, short_hash(wanted));
}

std::string Marker::text() const {
  return fmt::format("weir:gate={} run={} attempt={}", gate, run.id, run.attempt);
}

std::string Marker::hidden() const { return fmt::format("{}{}{}", k_before, text(), k_behind); }

std::optional<Marker> parse_marker(std::string_view text) {
  constexpr std::string_view k_start = "weir:gate=";
  if (text.substr(0, k_start.size()) != k_start) return std::nullopt;
  text.remove_prefix(k_start.size());
  const std::size_t end = text.find(' ');
  if (end == std::string_view::npos || !is_name(text.substr(0, end))) return std::nullopt;
  Marker marker{std::string(text.substr(0, end)), {}};
  text.remove_prefix(end);
  const auto id = take_number(text, " run=");
  const auto attempt = id ? take_number(text, " attempt=") : std::nullopt;
  if (!attempt || !text.empty()) return std::nullopt;
  marker.run = {*id, *attempt};
  return marker;
}

std::optional<Marker> marker_of(std::string_view body) {
  std::string_view line = body.substr(0, body.find_first_of("\r\n"));
  if (line.size() < k_before.size() + k_behind.size() ||
      line.substr(0, k_before.size()) != k_before ||
      line.substr(line.size() - k_behind.size()) != k_behind) {
    return std::nullopt;
  }
  line.remove_prefix(k_before.size());
  line.remove_suffix(k_behind.size());
  return parse_marker(line);
}

bool is_repository(std::string_view text) {
  const auto fit = [](std::string_view part, std::string_view more, std::size_t most) {
    return !part.empty() && part.size() <= most && part != "." && part != ".." &&
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

Result<Event> read_event(std::optional<std::string_view> text, const Surroundings& surroundings,
                         std::string_view where) {
  WEIR_TRY(Event event, from_surroundings(surroundings));
  if (!text) return event;
  const auto json = parse_json(*text, {.bytes = k_largest_event, .depth = 64});
  if (!json) return tl::unexpected(with_context(where, json.error()));
  if (!json->is_object()) return fail(Code::data, "{}: an event is a JSON object", where);
  std::optional<Error> problem;
  const Section top(&*json, "", problem);
  if (event.name.empty()) event.name = name_from_shape(top);
  const Section repository = top.at("repository");
  if (repository.there()) {
    const std::string named = repository.repository("full_name");
    if (!event.repository.empty() && text::lower(named) != text::lower(event.repository)) {
      top.complain("repository.full_name",
                   fmt::format("\"{}\" is not GITHUB_REPOSITORY, \"{}\"",
                               text::printable(named.substr(0, 200)), event.repository));
    }
    event.repository = named;
  } else if (event.repository.empty()) {
    top.complain("repository", "is missing");
  }
  if (about_pull_request(event.name)) {
    read_pull_request(top, event);
  } else if (event.name == "workflow_run") {
    read_workflow_run(top, event);
  } else if (event.name == "merge_group") {
    event.sha = top.at("merge_group").sha("head_sha");
  } else if (event.name == "issue_comment") {
    read_issue_comment(top, event);
  } else if (event.name == "push" && top.has("after")) {
    event.sha = top.sha("after");
  }
  if (problem) return tl::unexpected(with_context(where, *problem));
  return event;
}

std::string run_url_of(const std::string& server_url, const std::string& repository,
                       const RunNumber& run) {
  if (!run.known() || server_url.empty() || repository.empty()) return "";
  return fmt::format("{}/{}/actions/runs/{}/attempts/{}", server_url, repository, run.id,
                     run.attempt);
}

RunNumber run_of_url(std::string_view url, const std::string& repository) {
  const std::string before = fmt::format("/{}/actions/runs/", repository);
  const std::size_t start = text::lower(url).find(text::lower(before));
  if (start == std::string_view::npos) return {};
  const std::vector<std::string> parts = text::split(url.substr(start + before.size()), '/');
  const auto id = text::to_int(parts[0]);
  if (!id || *id <= 0) return {};
  const auto attempt = parts.size() == 3 && parts[1] == "attempts" ? text::to_int(parts[2])
                                                                   : std::optional<long long>(1);
  return {*id, attempt && *attempt > 0 ? *attempt : 1};
}

Result<void> look_up(Api& api, Event& event, std::vector<std::string>& notes) {
  if (event.pull_request && event.sha.empty()) return find_head(api, event);
  if (!event.pull_request && event.head && !event.sha.empty()) {
    return find_pull(api, event, notes);
  }
  return {};
}

}  // namespace weir::publish
