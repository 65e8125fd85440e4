// Reads GitHub's events.
#include <tuple>

#include <fmt/format.h>

#include "gate/base/json.hpp"
#include "gate/base/text.hpp"
#include "gate/publish/target.hpp"

namespace weir::publish {

namespace {

constexpr std::size_t k_longest_branch = 1024;

// The form that a text has to have.
struct Form {
  std::string_view name;
  bool (*fits)(std::string_view text);
};
constexpr Form k_commit{"commit (40 or 64 hex digits)", is_sha};
constexpr Form k_repository{"OWNER/NAME", is_repository};

// Reads parts of the event by their paths ("pull_request.head.sha"), and keeps the first complaint.
class Reader {
 public:
  explicit Reader(const Json& json) : json_(json) {}

  [[nodiscard]] bool has(std::string_view path) { return find(path) != nullptr; }
  // Returns "" if the text isn't there.
  [[nodiscard]] std::string read_text(std::string_view path, std::size_t max_bytes) {
    const Json* value = find(path);
    if (value == nullptr) return "";
    if (!value->is_string() || value->get_ref<const std::string&>().size() > max_bytes) {
      add_problem(path, fmt::format("is no text of at most {} bytes", max_bytes));
      return "";
    }
    return value->get<std::string>();
  }
  // Returns a branch, or any other text that has to be there.
  [[nodiscard]] std::string required_text(std::string_view path,
                                          std::size_t max_bytes = k_longest_branch) {
    std::string value = read_text(path, max_bytes);
    if (value.empty()) add_problem(path, "is missing");
    return value;
  }
  [[nodiscard]] std::string commit(std::string_view path) {
    return text::lower(read_form(k_commit, path, 100));
  }
  [[nodiscard]] std::string repository(std::string_view path) {
    return read_form(k_repository, path, 200);
  }
  // Returns a number from 1 up to 2^53; 0, with a complaint, for anything else.
  [[nodiscard]] std::int64_t number(std::string_view path) {
    const Json* value = find(path);
    constexpr std::uint64_t k_max = std::uint64_t{1} << 53U;
    if (value == nullptr) {
      add_problem(path, "is missing");
      return 0;
    }
    const bool is_too_large = value->is_number_unsigned() && value->get<std::uint64_t>() > k_max;
    if (!value->is_number_integer() || is_too_large || value->get<std::int64_t>() <= 0) {
      add_problem(path, "is no number from 1");
      return 0;
    }
    return value->get<std::int64_t>();
  }
  void add_problem(std::string_view path, const std::string& what) {
    if (!problem_) problem_ = Error{Code::data, fmt::format("{} {}", path, what)};
  }
  [[nodiscard]] const std::optional<Error>& problem() const { return problem_; }

 private:
  // Returns the value at a path, or null.
  [[nodiscard]] const Json* find(std::string_view path) {
    const Json* value = &json_;
    std::string parent;
    for (const std::string& key : text::split(path, '.')) {
      if (!value->is_object()) add_problem(parent, "is no object");
      value = &member_or_null(*value, key.c_str());
      if (value->is_null()) return nullptr;
      text::append_item(parent, ".", key);
    }
    return value;
  }
  std::string read_form(const Form& form, std::string_view path, std::size_t max_bytes) {
    std::string value = required_text(path, max_bytes);
    if (!value.empty() && !form.fits(value)) {
      add_problem(path,
                  fmt::format("\"{}\" is no {}", text::printable(value.substr(0, 80)), form.name));
    }
    return value;
  }

  const Json& json_;
  std::optional<Error> problem_;
};

bool about_pull_request(std::string_view event) {
  return event == "pull_request" || event == "pull_request_target" ||
         event == "pull_request_review" || event == "pull_request_review_comment";
}

// Infers the name of an event from members that only this kind of event has.
std::string infer_event_name(Reader& reader) {
  if (reader.has("workflow_run")) return "workflow_run";
  if (reader.has("merge_group")) return "merge_group";
  if (reader.has("pull_request")) return "pull_request";
  if (reader.has("issue") && reader.has("comment")) return "issue_comment";
  if (reader.has("after") && reader.has("ref")) return "push";
  return reader.has("schedule") ? "schedule" : "workflow_dispatch";
}

// Returns true if the repository at this path is missing or is not the event's.
bool is_fork(Reader& reader, const std::string& repository, const Event& event) {
  return !reader.has(repository) ||
         text::lower(reader.repository(repository + ".full_name")) != text::lower(event.repository);
}

void read_pull_request(Reader& reader, Event& event) {
  event.pull_request = reader.number("pull_request.number");
  if (event.name == "pull_request") event.merge_sha = event.sha;  // GITHUB_SHA
  event.sha = reader.commit("pull_request.head.sha");
  // A fork that was deleted has no repository any more.
  event.from_fork = is_fork(reader, "pull_request.head.repo", event);
  event.reads_only = event.from_fork && event.name != "pull_request_target";
  event.of_pull_request = true;
  event.base = reader.required_text("pull_request.base.ref");
  event.base_sha = reader.commit("pull_request.base.sha");
}

// Reads a workflow_run event: commit, run and how it ended; for a pull request also the branch that
// it came from.
void read_workflow_run(Reader& reader, Event& event) {
  event.sha = reader.commit("workflow_run.head_sha");
  event.run = {reader.number("workflow_run.id"), reader.number("workflow_run.run_attempt")};
  event.conclusion = reader.read_text("workflow_run.conclusion", 40);
  if (!about_pull_request(reader.read_text("workflow_run.event", 100))) return;
  const std::string head = "workflow_run.head_repository";
  event.from_fork = reader.has(head) && is_fork(reader, head, event);
  // GitHub names a pull request here too, but it may be outdated: look it up by its head.
  event.of_pull_request = true;
  event.head = HeadBranch{reader.repository(head + ".full_name"),
                          reader.read_text("workflow_run.head_branch", k_longest_branch)};
}

void read_issue_comment(Reader& reader, Event& event) {
  const std::int64_t number = reader.number("issue.number");
  if (reader.has("issue.pull_request")) {
    event.pull_request = number;
    event.of_pull_request = true;
    event.sha.clear();  // GITHUB_SHA is the default branch's
  }
}

// Fails if a variable has a value that does not have its form.
Result<void> check_variable(const char* name, const std::string& value, const Form& form) {
  if (value.empty() || form.fits(value)) return {};
  return fail(Code::data, "{}: \"{}\" is no {}", name, text::printable(value), form.name);
}

// Makes an event from the runner's environment variables alone.
Result<Event> start_event(const CiVariables& variables) {
  Event event;
  event.name = variables.event_name;
  event.run = run_number(variables.run_id, variables.run_attempt);
  event.repository = variables.repository;
  event.sha = text::lower(variables.sha);
  WEIR_CHECK(check_variable("GITHUB_REPOSITORY", event.repository, k_repository));
  WEIR_CHECK(check_variable("GITHUB_SHA", variables.sha, k_commit));
  return event;
}

}  // namespace

// Reads the event that started a CI job. Each kind of event names commit, base and pull request in
// fields of its own. Without an event, only the CI variables count.
Result<Event> read_event(std::optional<std::string_view> text, const CiVariables& variables,
                         std::string_view where) {
  WEIR_TRY(Event event, start_event(variables));
  if (!text) return event;
  const auto json = parse_json(*text, {.bytes = k_largest_event, .depth = 64});
  if (!json) return tl::unexpected(add_prefix(where, json.error()));
  if (!json->is_object()) return fail(Code::data, "{}: an event is a JSON object", where);
  Reader reader(*json);
  if (event.name.empty()) event.name = infer_event_name(reader);
  if (reader.has("repository")) {
    const std::string named = reader.repository("repository.full_name");
    if (!event.repository.empty() && text::lower(named) != text::lower(event.repository)) {
      reader.add_problem("repository.full_name",
                         fmt::format("\"{}\" is not GITHUB_REPOSITORY, \"{}\"",
                                     text::printable(named.substr(0, 200)), event.repository));
    }
    event.repository = named;
  } else if (event.repository.empty()) {
    reader.add_problem("repository", "is missing");
  }
  if (about_pull_request(event.name)) {
    read_pull_request(reader, event);
  } else if (event.name == "workflow_run") {
    read_workflow_run(reader, event);
  } else if (event.name == "merge_group") {
    constexpr std::string_view k_heads = "refs/heads/";
    event.sha = reader.commit("merge_group.head_sha");
    event.base_sha = reader.commit("merge_group.base_sha");
    event.base = reader.required_text("merge_group.base_ref");
    if (event.base.starts_with(k_heads)) event.base.erase(0, k_heads.size());
  } else if (event.name == "issue_comment") {
    read_issue_comment(reader, event);
  } else if (event.name == "push" && reader.has("after")) {
    event.sha = reader.commit("after");
    const std::string before = text::lower(reader.read_text("before", 100));
    if (is_sha(before)) event.base_sha = before;  // of a new branch it is all zeros
  }
  if (reader.problem()) return tl::unexpected(add_prefix(where, *reader.problem()));
  return event;
}

}  // namespace weir::publish
