// GitHub's events, as text.
#include <fmt/format.h>

#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/publish/target.hpp"

namespace weir::publish {

namespace {

constexpr std::size_t k_longest_branch = 1024;

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
  // A branch, or any other text that has to be there.
  [[nodiscard]] std::string need(const char* key, std::size_t most = k_longest_branch) const {
    std::string value = words(key, most);
    if (value.empty()) complain(path_of(key), "is missing");
    return value;
  }
  [[nodiscard]] std::string sha(const char* key) const {
    std::string found = need(key, 100);
    if (!found.empty() && !is_sha(found)) {
      complain(path_of(key),
               fmt::format("\"{}\" is no commit (40 or 64 hex digits)", shown(found)));
    }
    return text::lower(found);
  }
  [[nodiscard]] std::string repository(const char* key) const {
    std::string found = need(key, 200);
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
  void complain(const std::string& path, const std::string& what) const {
    if (!problem_) problem_ = Error{Code::data, fmt::format("{} {}", path, what)};
  }

 private:
  [[nodiscard]] const Json* find(const char* key) const {
    if (json_ == nullptr) return nullptr;
    const auto found = json_->find(key);
    return found == json_->end() || found->is_null() ? nullptr : &*found;
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
  event.from_fork = !own;
  event.reads_only = !own && event.name != "pull_request_target";
  event.of_pull_request = true;
  event.base = pull.at("base").need("ref");
  event.base_sha = pull.at("base").sha("sha");
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
  // Which pull request GitHub names here is as old as the event.
  event.of_pull_request = true;
  event.head = HeadBranch{head.repository("full_name"), run.words("head_branch", k_longest_branch)};
}

void read_issue_comment(const Section& top, Event& event) {
  const Section issue = top.at("issue");
  const std::int64_t number = issue.number("number");
  if (issue.has("pull_request")) {
    event.pull_request = number;
    event.of_pull_request = true;
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

}  // namespace

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
    const Section group = top.at("merge_group");
    constexpr std::string_view k_heads = "refs/heads/";
    event.sha = group.sha("head_sha");
    event.base_sha = group.sha("base_sha");
    event.base = group.need("base_ref");
    if (event.base.starts_with(k_heads)) event.base.erase(0, k_heads.size());
  } else if (event.name == "issue_comment") {
    read_issue_comment(top, event);
  } else if (event.name == "push" && top.has("after")) {
    event.sha = top.sha("after");
  }
  if (problem) return tl::unexpected(with_context(where, *problem));
  return event;
}

}  // namespace weir::publish
