// Answers requests for issues in the tests' own GitHub.
#include <algorithm>

#include "gate/base/text.hpp"

#include "tests/publish/github_answers.hpp"

namespace weir::tests {

std::int64_t GithubStore::add_issue(const std::string& by, const std::string& title,
                                    const std::string& body, const std::string& label) {
  const std::int64_t number = next_id_++;
  const bool bot = by.ends_with("[bot]");
  issues_.push_back(
      {{"id", number},
       {"number", number},
       {"title", title},
       {"body", body},
       {"state", "open"},
       {"labels", Json::array({{{"name", label}}})},
       {"user", {{"login", by}, {"type", bot ? "Bot" : "User"}}},
       {"html_url", fmt::format("https://github.com/{}/{}/issues/{}", owner_, repo_, number)}});
  return number;
}

void GithubStore::close_issue(std::int64_t wanted) {
  for (Json& issue : issues_) {
    if (issue["number"] == wanted) issue["state"] = "closed";
  }
}

StoreAnswer GithubStore::issue_calls(const StoreRequest& request, const Parts& parts) {
  if (parts.size() == 5 && request.method == "GET") {
    std::vector<Json> all;
    for (const Json& issue : issues_) {
      const std::string state = query(request, "state"), label = query(request, "labels");
      const bool wanted = state == "all" || issue["state"] == (state.empty() ? "open" : state);
      if (wanted && (label.empty() || issue["labels"][0]["name"] == label)) all.push_back(issue);
    }
    std::reverse(all.begin(), all.end());  // the newest first
    return make_page(request, all);
  }
  const auto body = parse_json(request.body);
  if (!body || !body->is_object()) return refuse(400, "Problems parsing JSON");
  if (parts.size() == 5 && request.method == "POST") {
    const std::string title = text_of(*body, "title");
    if (title.empty()) return invalid("Issue", "title", "title can't be blank");
    if (characters(title) > 256) return invalid("Issue", "title", "title is too long");
    const Json labels = body->value("labels", Json::array());
    const bool labelled = labels_allowed && !labels.empty();
    add_issue(login, title, text_of(*body, "body"), labelled ? std::string(labels[0]) : "");
    return {.status = 201, .body = issues_.back()};
  }
  if (parts.size() != 6 || request.method != "PATCH") return not_found();
  const std::int64_t wanted = number(parts[5], 0);
  for (Json& issue : issues_) {
    if (issue["number"] != wanted) continue;
    if (issue["user"]["login"] != login) return refuse(403, "Resource not accessible");
    for (const char* key : {"title", "body", "state", "state_reason"}) {
      if (body->contains(key)) issue[key] = (*body)[key];
    }
    return {.body = issue};
  }
  return not_found();
}

}  // namespace weir::tests
