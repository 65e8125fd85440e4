// A small GitHub in memory: pulls, issue comments, check runs, commit statuses, permissions and the
// files of a branch. It answers and refuses like the real one as far as posting needs it
// (docs.github.com/rest, version 2022-11-28).
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
  // Set for lists: the next page and the last one; 0 means none.
  std::int64_t next_page = 0, last_page = 0;
};

// One repository. Not thread-safe; the server locks around it.
class GithubStore {
 public:
  GithubStore(std::string owner = "o", std::string repo = "r");

  // Author of new comments ("user": {"login", "type": "Bot"}).
  std::string login = "github-actions[bot]";
  // Lag of lists. A new item appears from the (k+1)-th later list call on; each call for the first
  // page counts. A deleted item stays that long. By id, both take effect at once.
  int create_lag = 0, delete_lag = 0;
  // Checks need a token of an app; a personal one gets 403 "Resource not accessible ...".
  bool checks_allowed = true;
  // A token without permission for labels has them dropped silently.
  bool labels_allowed = true;

  // Adds a pull request. `more` is merged over {"number", "state": "open", "head": {"sha"}, "base",
  // "user"}.
  void add_pull(std::int64_t number, const std::string& head_sha,
                const Json& more = Json::object());
  void remove_pull(std::int64_t number) { pulls_.erase(number); }
  std::int64_t add_comment(std::int64_t issue, const std::string& login, const std::string& body);
  // Sets the commits of a branch, the oldest first; compare() uses them.
  void set_branch(const std::string& name, const std::vector<std::string>& commits) {
    branches_[name] = commits;
  }
  void set_parents(const std::string& sha, const std::vector<std::string>& parents) {
    parents_[sha] = parents;
  }
  // Adds an open issue by `login`, which may be ours or another's.
  std::int64_t add_issue(const std::string& login, const std::string& title,
                         const std::string& body, const std::string& label);
  void set_permission(const std::string& login, const std::string& permission);
  void set_file(const std::string& branch, const std::string& path, const std::string& content);

  // Returns the comments as GitHub shows them, ordered by id, without deleted ones.
  [[nodiscard]] std::vector<Json> comments(std::int64_t issue) const;
  // Returns the check runs. Each has all "annotations" of its batches, and "head_sha",
  // "conclusion", "output", ...
  [[nodiscard]] std::vector<Json> check_runs() const;
  [[nodiscard]] const std::vector<Json>& issues() const { return issues_; }
  void close_issue(std::int64_t number);
  [[nodiscard]] std::vector<Json> statuses(const std::string& sha) const;  // the newest first
  // Returns the content of a file; null if there is none.
  [[nodiscard]] Json file(const std::string& branch, const std::string& path) const;

  [[nodiscard]] StoreAnswer answer(const StoreRequest& request);

 private:
  struct Comment {
    std::int64_t id = 0, issue = 0;
    std::string login, type, body;
    std::int64_t created_at = 0;  // number of list calls before it
    std::int64_t gone_at = -1;
    std::int64_t edits = 0;
  };
  using Parts = std::vector<std::string>;

  [[nodiscard]] Json shown(const Comment& comment) const;
  [[nodiscard]] StoreAnswer pulls(const StoreRequest& request, const Parts& parts) const;
  StoreAnswer issues(const StoreRequest& request, const Parts& parts);
  StoreAnswer issue_calls(const StoreRequest& request, const Parts& parts);
  StoreAnswer comment_calls(const StoreRequest& request, std::int64_t id);
  StoreAnswer list_comments(const StoreRequest& request, std::int64_t issue);
  StoreAnswer check_runs_calls(const StoreRequest& request, const Parts& parts);
  StoreAnswer write_check(const StoreRequest& request, Json* there);
  [[nodiscard]] StoreAnswer compare(const std::string& both) const;
  StoreAnswer commits(const StoreRequest& request, const Parts& parts);
  StoreAnswer write_status(const StoreRequest& request, const std::string& sha);
  StoreAnswer contents(const StoreRequest& request, const std::string& path);
  StoreAnswer git_objects(const StoreRequest& request, const std::string& kind);
  [[nodiscard]] bool has_branch(const std::string& branch) const;

  std::string owner_, repo_;
  std::int64_t next_id_ = 1001;
  std::int64_t comment_lists_ = 0, check_lists_ = 0;
  std::map<std::int64_t, Json> pulls_;
  std::vector<Comment> comments_;
  std::vector<Json> issues_, checks_;
  std::vector<std::int64_t> checks_created_at_;
  std::map<std::string, std::vector<Json>> statuses_;
  std::map<std::string, std::string> permissions_;
  std::map<std::string, std::vector<std::string>> branches_, parents_;
  std::map<std::pair<std::string, std::string>, std::string> files_;
  std::map<std::string, Json> trees_;  // of trees and commits
};

}  // namespace weir::tests
