// Answers requests for check runs, commit statuses and comparisons in the tests' own GitHub.
#include <algorithm>

#include <fmt/format.h>

#include "tests/publish/github_answers.hpp"
#include "tests/publish/github_store.hpp"

namespace weir::tests {

StoreAnswer GithubStore::check_runs_calls(const StoreRequest& request, const Parts& parts) {
  if (!checks_allowed && request.method != "GET") {
    return refuse(403, "Resource not accessible by personal access token");
  }
  if (parts.size() == 5 && request.method == "POST") return write_check(request, nullptr);
  if (parts.size() < 6) return not_found();
  const std::int64_t id = number(parts[5], 0);
  const auto match = std::find_if(checks_.begin(), checks_.end(),
                                  [&](const Json& check) { return check["id"] == id; });
  if (match == checks_.end()) return not_found();
  if (parts.size() == 7 && parts[6] == "annotations") {
    return make_page(request, (*match)["annotations"].get<std::vector<Json>>());
  }
  if (request.method == "PATCH") return write_check(request, &*match);
  Json brief = *match;
  brief.erase("annotations");
  return {.body = brief};
}

StoreAnswer GithubStore::write_check(const StoreRequest& request, Json* there) {
  const auto body = parse_json(request.body);
  if (!body || !body->is_object()) return refuse(400, "Problems parsing JSON");
  if (there == nullptr && (text_of(*body, "name").empty() || text_of(*body, "head_sha").empty())) {
    return refuse(422, "Invalid request.\n\n\"name\", \"head_sha\" weren't supplied.");
  }
  if (body->contains("conclusion") &&
      !is_one_of(text_of(*body, "conclusion"),
                 std::array{"action_required", "cancelled", "failure", "neutral", "success",
                            "skipped", "timed_out"})) {
    return invalid("CheckRun", "conclusion", "is not a conclusion");
  }
  const Json output = body->value("output", Json::object());
  if (body->contains("output") && (!output.contains("title") || !output.contains("summary"))) {
    return refuse(422, "Invalid request.\n\n\"title\", \"summary\" weren't supplied.");
  }
  if (text_of(output, "summary").size() > 65'535) {
    return invalid("CheckRun", "summary", "Only 65535 characters are allowed");
  }
  const Json annotations = output.value("annotations", Json::array());
  if (annotations.size() > 50) {
    return refuse(422, "Invalid request.\n\nNo more than 50 items are allowed; annotations.");
  }
  for (const Json& annotation : annotations) {
    if (text_of(annotation, "path").empty() || text_of(annotation, "message").empty() ||
        !annotation.contains("start_line") || !annotation.contains("end_line") ||
        !is_one_of(text_of(annotation, "annotation_level"),
                   std::array{"notice", "warning", "failure"}) ||
        text_of(annotation, "title").size() > 255 ||
        text_of(annotation, "message").size() > 65'536) {
      return invalid("CheckRun", "annotations", "is not an annotation");
    }
  }
  if (there == nullptr) {
    checks_.push_back({{"id", next_id_++},
                       {"status", "queued"},
                       {"conclusion", nullptr},
                       {"annotations", Json::array()},
                       {"app", {{"slug", "github-actions"}}}});
    checks_created_at_.push_back(check_lists_);
    there = &checks_.back();
    (*there)["html_url"] = fmt::format("https://github.com/{}/{}/runs/{}", owner_, repo_,
                                       (*there)["id"].get<std::int64_t>());
  }
  for (const auto& [key, value] : body->items()) {
    if (key != "output") (*there)[key] = value;
  }
  if (body->contains("conclusion")) (*there)["status"] = "completed";
  if (body->contains("output")) {
    (*there)["output"] = output;
    (*there)["output"].erase("annotations");
    for (const Json& annotation : annotations) (*there)["annotations"].push_back(annotation);
    (*there)["output"]["annotations_count"] = (*there)["annotations"].size();
  }
  Json brief = *there;
  brief.erase("annotations");
  return {.status = request.method == "POST" ? 201 : 200, .body = brief};
}

// Compares "FROM...TO", which are branches (at present) or commits. Commits without a common branch
// are "diverged".
StoreAnswer GithubStore::compare(const std::string& both) const {
  const std::size_t dots = both.find("...");
  if (dots == std::string::npos) return not_found();
  std::string from = both.substr(0, dots);
  const std::string to = both.substr(dots + 3);
  const auto branch = branches_.find(from);
  if (branch != branches_.end()) from = branch->second.back();
  for (const auto& [name, commits] : branches_) {
    const auto a = std::ranges::find(commits, from), b = std::ranges::find(commits, to);
    if (a == commits.end() || b == commits.end()) continue;
    if (a == b) return {.body = {{"status", "identical"}}};
    return {.body = {{"status", a < b ? "ahead" : "behind"}}};
  }
  return {.body = {{"status", "diverged"}}};
}

StoreAnswer GithubStore::commits(const StoreRequest& request, const Parts& parts) {
  if (request.method != "GET") return not_found();
  if (parts[6] == "pulls") return pulls(request, parts);
  if (parts[6] == "statuses") return make_page(request, statuses(parts[5]));
  if (parts[6] != "check-runs") return not_found();
  if (number(query(request, "page"), 1) <= 1) ++check_lists_;
  const std::string name = query(request, "check_name");
  std::vector<Json> all;
  for (std::size_t i = checks_.size(); i-- > 0;) {  // the newest first
    if (checks_[i]["head_sha"] != parts[5] || (!name.empty() && checks_[i]["name"] != name))
      continue;
    if (create_lag > 0 && checks_created_at_[i] + create_lag >= check_lists_) continue;
    Json brief = checks_[i];
    brief.erase("annotations");
    all.push_back(brief);
  }
  return make_page(request, all, "check_runs");
}

StoreAnswer GithubStore::write_status(const StoreRequest& request, const std::string& sha) {
  const auto body = parse_json(request.body);
  if (!body || !body->is_object()) return refuse(400, "Problems parsing JSON");
  if (!is_one_of(text_of(*body, "state"), std::array{"error", "failure", "pending", "success"})) {
    return invalid("Status", "state", "state is not included in the list");
  }
  if (characters(text_of(*body, "description")) > 140) {
    return invalid("Status", "description", "description is too long (maximum is 140 characters)");
  }
  Json status = *body;
  status["id"] = next_id_++;
  if (!status.contains("context")) status["context"] = "default";
  auto& list = statuses_[sha];
  list.insert(list.begin(), status);
  return {.status = 201, .body = status};
}

}  // namespace weir::tests
