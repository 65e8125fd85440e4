// Answers requests for pull requests, comments, files and permissions in the tests' own GitHub.
#include "tests/publish/github_store.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "gate/base/encode.hpp"
#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"

#include "tests/publish/github_answers.hpp"

namespace weir::tests {
GithubStore::GithubStore(std::string owner, std::string repo)
    : owner_(std::move(owner)), repo_(std::move(repo)) {}

void GithubStore::add_pull(std::int64_t pull, const std::string& head_sha, const Json& more) {
  const Json repo = {{"full_name", owner_ + "/" + repo_}, {"fork", false}};
  Json json = {{"number", pull},
               {"state", "open"},
               {"title", fmt::format("Pull request {}", pull)},
               {"user", {{"login", "contributor"}}},
               {"head", {{"sha", head_sha}, {"ref", "topic"}, {"repo", repo}}},
               {"base", {{"sha", std::string(40, 'b')}, {"ref", "main"}, {"repo", repo}}}};
  json.merge_patch(more);
  pulls_[pull] = json;
}

std::int64_t GithubStore::add_comment(std::int64_t issue, const std::string& by,
                                      const std::string& body) {
  const bool bot = by.size() > 5 && by.substr(by.size() - 5) == "[bot]";
  comments_.push_back({.id = next_id_++,
                       .issue = issue,
                       .login = by,
                       .type = bot ? "Bot" : "User",
                       .body = body,
                       .created_at = comment_lists_});
  return comments_.back().id;
}

void GithubStore::set_permission(const std::string& who, const std::string& permission) {
  permissions_[who] = permission;
}

void GithubStore::set_file(const std::string& branch, const std::string& path,
                           const std::string& content) {
  files_[{branch, path}] = content;
}

Json GithubStore::shown(const Comment& comment) const {
  const std::string url = fmt::format("https://github.com/{}/{}/pull/{}#issuecomment-{}", owner_,
                                      repo_, comment.issue, comment.id);
  return {{"id", comment.id},
          {"body", comment.body},
          {"user", {{"login", comment.login}, {"type", comment.type}}},
          {"html_url", url},
          {"issue_url", fmt::format("https://api.github.com/repos/{}/{}/issues/{}", owner_, repo_,
                                    comment.issue)},
          {"created_at", "2026-11-20T09:30:15Z"},
          {"updated_at", fmt::format("2026-11-20T09:{:02}:15Z", 30 + comment.edits % 30)},
          {"author_association", comment.type == "Bot" ? "NONE" : "CONTRIBUTOR"}};
}

std::vector<Json> GithubStore::comments(std::int64_t issue) const {
  std::vector<Json> result;
  for (const Comment& comment : comments_) {
    if (comment.issue == issue && comment.gone_at < 0) result.push_back(shown(comment));
  }
  return result;
}

std::vector<Json> GithubStore::check_runs() const { return checks_; }

std::vector<Json> GithubStore::statuses(const std::string& sha) const {
  const auto match = statuses_.find(sha);
  return match == statuses_.end() ? std::vector<Json>{} : match->second;
}

Json GithubStore::file(const std::string& branch, const std::string& path) const {
  const auto match = files_.find({branch, path});
  return match == files_.end() ? Json() : Json(match->second);
}

StoreAnswer GithubStore::answer(const StoreRequest& request) {
  const Parts parts = text::split(request.path, '/');  // "", repos, o, r, what, ...
  if (parts.size() == 2 && parts[1] == "user") {
    if (login.find("[bot]") != std::string::npos) {
      return refuse(403, "Resource not accessible by integration");
    }
    return {.body = {{"login", login}, {"type", "User"}}};
  }
  if (parts.size() < 4 || parts[1] != "repos" || parts[2] != owner_ || parts[3] != repo_) {
    return not_found();
  }
  if (parts.size() == 4) {
    return {.body = {{"full_name", owner_ + "/" + repo_}, {"default_branch", "main"}}};
  }
  const std::string& what = parts[4];
  if (what == "issues") return issues(request, parts);
  if (what == "check-runs") return check_runs_calls(request, parts);
  if (what == "commits" && parts.size() == 7) return commits(request, parts);
  if (what == "commits" && parts.size() == 6 && parents_.contains(parts[5])) {
    Json parents = Json::array();
    for (const std::string& sha : parents_.at(parts[5])) parents.push_back({{"sha", sha}});
    return {.body = {{"sha", parts[5]}, {"parents", std::move(parents)}}};
  }
  if (what == "statuses" && parts.size() == 6 && request.method == "POST") {
    return write_status(request, parts[5]);
  }
  if (what == "compare" && parts.size() >= 6 && request.method == "GET") {
    return compare(text::join(std::vector<std::string>(parts.begin() + 5, parts.end()), "/"));
  }
  if (what == "pulls" && request.method == "GET") return pulls(request, parts);
  if (what == "collaborators" && parts.size() == 7 && parts[6] == "permission") {
    const auto match = permissions_.find(parts[5]);
    const std::string permission = match == permissions_.end() ? "none" : match->second;
    return {.body = {{"permission", permission}, {"user", {{"login", parts[5]}}}}};
  }
  if (what == "git" && parts.size() == 6 && request.method == "POST") {
    return git_objects(request, parts[5]);
  }
  if (what == "contents" && parts.size() >= 6) {
    const std::vector<std::string> below(parts.begin() + 5, parts.end());
    return contents(request, text::join(below, "/"));
  }
  return not_found();
}

// Answers one pull request, those of a branch ("head=OWNER:BRANCH"), or those with a commit. The
// last finds only branches of the repository itself.
StoreAnswer GithubStore::pulls(const StoreRequest& request, const Parts& parts) const {
  const bool of_commit = parts[4] == "commits";
  if (!of_commit && parts.size() == 6) {
    const auto match = pulls_.find(number(parts[5], 0));
    return match == pulls_.end() ? not_found() : StoreAnswer{.body = match->second};
  }
  if (!of_commit && parts.size() != 5) return not_found();
  std::vector<Json> all;
  for (const auto& [id, pull] : pulls_) {
    const Json& head = pull["head"];
    const std::string repository = text_of(head["repo"], "full_name");
    const std::string branch =
        repository.substr(0, repository.find('/')) + ":" + text_of(head, "ref");
    const bool wanted = of_commit
                            ? head["sha"] == parts[5] && repository == owner_ + "/" + repo_
                            : query(request, "head").empty() || query(request, "head") == branch;
    if (wanted) all.push_back(pull);
  }
  return make_page(request, all);
}

StoreAnswer GithubStore::issues(const StoreRequest& request, const Parts& parts) {
  if (parts.size() < 7) return issue_calls(request, parts);
  if (parts.size() != 7) return not_found();
  if (parts[5] == "comments") return comment_calls(request, number(parts[6], 0));
  const std::int64_t issue = number(parts[5], 0);
  if (parts[6] != "comments" || pulls_.count(issue) == 0) return not_found();
  if (request.method == "GET") return list_comments(request, issue);
  if (request.method != "POST") return not_found();
  const auto body = parse_json(request.body);
  if (!body || !body->is_object()) return refuse(400, "Problems parsing JSON");
  const std::string text = text_of(*body, "body");
  if (text.empty()) return invalid("IssueComment", "body", "body can't be blank");
  if (characters(text) > k_max_characters) {
    return invalid("IssueComment", "body", "body is too long (maximum is 65536 characters)");
  }
  add_comment(issue, login, text);
  return {.status = 201, .body = shown(comments_.back())};
}

StoreAnswer GithubStore::comment_calls(const StoreRequest& request, std::int64_t id) {
  const auto match = std::find_if(comments_.begin(), comments_.end(), [&](const Comment& comment) {
    return comment.id == id && comment.gone_at < 0;
  });
  if (match == comments_.end()) return not_found();
  if (request.method == "GET") return {.body = shown(*match)};
  if (match->login != login) return refuse(403, "Resource not accessible by integration");
  if (request.method == "DELETE") {
    match->gone_at = comment_lists_;
    return {.status = 204};
  }
  if (request.method != "PATCH") return not_found();
  const auto body = parse_json(request.body);
  if (!body || !body->is_object()) return refuse(400, "Problems parsing JSON");
  const std::string text = text_of(*body, "body");
  if (text.empty()) return invalid("IssueComment", "body", "body can't be blank");
  if (characters(text) > k_max_characters) {
    return invalid("IssueComment", "body", "body is too long (maximum is 65536 characters)");
  }
  match->body = text;
  ++match->edits;
  return {.body = shown(*match)};
}

StoreAnswer GithubStore::list_comments(const StoreRequest& request, std::int64_t issue) {
  if (number(query(request, "page"), 1) <= 1) ++comment_lists_;
  std::vector<Json> all;
  for (const Comment& comment : comments_) {
    if (comment.issue != issue) continue;
    // This poster cannot know the change yet: it was made (or deleted) too few list calls ago.
    if (create_lag > 0 && comment.created_at + create_lag >= comment_lists_) continue;
    if (comment.gone_at >= 0 && comment.gone_at + delete_lag < comment_lists_) continue;
    all.push_back(shown(comment));
  }
  return make_page(request, all);
}

bool GithubStore::has_branch(const std::string& branch) const {
  return branch == "main" || std::ranges::any_of(files_, [&](const auto& entry) {
           return entry.first.first == branch;
         });
}

// Makes a tree of files, a commit of a tree, or a branch of a commit.
StoreAnswer GithubStore::git_objects(const StoreRequest& request, const std::string& kind) {
  const auto body = parse_json(request.body);
  if (!body || !body->is_object()) return refuse(400, "Problems parsing JSON");
  if (kind == "trees") {
    const std::string sha = short_hash(dump_json((*body)["tree"]), 40);
    trees_[sha] = (*body)["tree"];
    return {.status = 201, .body = {{"sha", sha}}};
  }
  if (kind == "commits") {
    const std::string tree = text_of(*body, "tree");
    if (!trees_.contains(tree)) return refuse(422, "Tree SHA does not exist");
    const std::string sha = short_hash("commit " + tree, 40);
    trees_[sha] = trees_[tree];
    return {.status = 201, .body = {{"sha", sha}}};
  }
  constexpr std::string_view k_heads = "refs/heads/";
  const std::string ref = text_of(*body, "ref"), sha = text_of(*body, "sha");
  if (kind != "refs" || !ref.starts_with(k_heads)) return not_found();
  const std::string branch = ref.substr(k_heads.size());
  if (has_branch(branch)) return refuse(422, "Reference already exists");
  if (!trees_.contains(sha)) return refuse(422, "Object does not exist");
  for (const Json& file : trees_[sha]) {
    files_[{branch, text_of(file, "path")}] = text_of(file, "content");
  }
  return {.status = 201, .body = {{"ref", ref}}};
}

StoreAnswer GithubStore::contents(const StoreRequest& request, const std::string& path) {
  const auto blob = [](const std::string& content) { return short_hash(content, 32); };
  if (request.method == "GET") {
    // A short name could be a tag's: nothing asks by one.
    constexpr std::string_view k_heads = "refs/heads/";
    const std::string ref = query(request, "ref");
    if (!ref.empty() && !ref.starts_with(k_heads)) return not_found();
    const auto match = files_.find({ref.empty() ? "main" : ref.substr(k_heads.size()), path});
    if (match == files_.end()) return not_found();
    return {.body = {{"type", "file"},
                     {"path", path},
                     {"sha", blob(match->second)},
                     {"encoding", "base64"},
                     {"content", base64(match->second) + "\n"}}};
  }
  if (request.method != "PUT") return not_found();
  const auto body = parse_json(request.body);
  if (!body || !body->is_object()) return refuse(400, "Problems parsing JSON");
  const auto content = decode_base64(text_of(*body, "content"));
  if (!content) return refuse(422, "content is not valid Base64");
  std::string branch = text_of(*body, "branch");
  if (branch.empty()) branch = "main";
  if (!has_branch(branch)) return refuse(404, fmt::format("Branch {} not found", branch));
  const auto match = files_.find({branch, path});
  const bool fresh = match == files_.end();
  const std::string given = text_of(*body, "sha");
  if (!fresh && given.empty()) return refuse(422, "Invalid request.\n\n\"sha\" wasn't supplied.");
  if (given != (fresh ? "" : blob(match->second))) {
    return refuse(409, fmt::format("{} does not match {}", path, given));
  }
  files_[{branch, path}] = *content;
  return {.status = fresh ? 201 : 200,
          .body = {{"content", {{"path", path}, {"sha", blob(*content)}}}}};
}

}  // namespace weir::tests
