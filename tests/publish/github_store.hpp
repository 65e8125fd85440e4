// A small GitHub of the tests' own, in memory: pulls, issue comments, check runs, commit statuses,
// permissions and the files of a branch, with the answers and refusals of the real one as far as
// posting meets them (docs.github.com/rest, version 2022-11-28).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gate/base/json.hpp"

namespace weir::tests {

struct StoreRequest {
  std::string method{}, path{};  // path: without query, "/repos/o/r/issues/1/comments"
  std::map<std::string, std::string> query{};
  std::string body{};
};
struct StoreAnswer {
  int status = 200;
  Json body = Json(nullptr);  // null: none
  // Set for lists: the page after this one and the last one. 0: none.
  std::int64_t next_page = 0, last_page = 0;
};

// One repository. Not thread-safe (the server locks around it).
class GithubStore {
 public:
  GithubStore(std::string owner = "o", std::string repo = "r");

  // Who asks from now on: the author of new comments ("user": {"login", "type": "Bot"}).
  std::string login = "github-actions[bot]";
  // What is created is in lists only from the (k+1)-th list call after it on (a call is one for the
  // first page); what is deleted stays in lists that long. By id it is there, or gone, at once.
  int create_lag = 0, delete_lag = 0;
  // Checks need a token of an app; a personal one gets 403 "Resource not accessible ...".
  bool checks_allowed = true;
  // A token that may not set labels has them left out, without a word.
  bool labels_allowed = true;

  // more: fields merged over {"number", "state": "open", "head": {"sha"}, "base", "user"}.
  void add_pull(std::int64_t number, const std::string& head_sha,
                const Json& more = Json::object());
  void remove_pull(std::int64_t number) { pulls_.erase(number); }
  std::int64_t add_comment(std::int64_t issue, const std::string& login, const std::string& body);
  // The commits of a branch, the oldest first: what may be compared with what.
  void set_branch(const std::string& name, const std::vector<std::string>& commits) {
    branches_[name] = commits;
  }
  void set_parents(const std::string& sha, const std::vector<std::string>& parents) {
    parents_[sha] = parents;
  }
  // By somebody who is not ours, or ours: "state" is "open".
  std::int64_t add_issue(const std::string& login, const std::string& title,
                         const std::string& body, const std::string& label);
  void set_permission(const std::string& login, const std::string& permission);
  void set_file(const std::string& branch, const std::string& path, const std::string& content);

  // As GitHub shows them, in order of their ids; what is deleted is not there.
  [[nodiscard]] std::vector<Json> comments(std::int64_t issue) const;
  // Each with "annotations": all that came in batches; "head_sha", "conclusion", "output", ...
  [[nodiscard]] std::vector<Json> check_runs() const;
  [[nodiscard]] const std::vector<Json>& issues() const { return issues_; }
  void close_issue(std::int64_t number);
  [[nodiscard]] std::vector<Json> statuses(const std::string& sha) const;  // the newest first
  // Content of a file; null when there is none.
  [[nodiscard]] Json file(const std::string& branch, const std::string& path) const;

  [[nodiscard]] StoreAnswer answer(const StoreRequest& request);

 private:
  struct Comment {
    std::int64_t id = 0, issue = 0;
    std::string login, type, body;
    std::int64_t made_at = 0;  // list calls there had been
    std::int64_t gone_at = -1;
    std::int64_t edits = 0;
  };
  using Parts = std::vector<std::string>;

  [[nodiscard]] Json shown(const Comment& comment) const;
  [[nodiscard]] StoreAnswer pulls(const StoreRequest& request, const Parts& parts) const;
  StoreAnswer issues(const StoreRequest& request, const Parts& parts);
  StoreAnswer issue_calls(const StoreRequest& request, const Parts& parts);
  StoreAnswer one_comment(const StoreRequest& request, std::int64_t id);
  StoreAnswer list_comments(const StoreRequest& request, std::int64_t issue);
  StoreAnswer check_runs_calls(const StoreRequest& request, const Parts& parts);
  StoreAnswer write_check(const StoreRequest& request, Json* there);
  [[nodiscard]] StoreAnswer compare(const std::string& both) const;
  StoreAnswer commits(const StoreRequest& request, const Parts& parts);
  StoreAnswer write_status(const StoreRequest& request, const std::string& sha);
  StoreAnswer contents(const StoreRequest& request, const std::string& path);

  std::string owner_, repo_;
  std::int64_t next_id_ = 1001;
  std::int64_t comment_lists_ = 0, check_lists_ = 0;
  std::map<std::int64_t, Json> pulls_;
  std::vector<Comment> comments_;
  std::vector<Json> issues_, checks_;
  std::vector<std::int64_t> checks_made_at_;
  std::map<std::string, std::vector<Json>> statuses_;
  std::map<std::string, std::string> permissions_;
  std::map<std::string, std::vector<std::string>> branches_, parents_;
  std::map<std::pair<std::string, std::string>, std::string> files_;
};

}  // namespace weir::tests
