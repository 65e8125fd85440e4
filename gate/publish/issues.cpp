// Posts change points as issues: makes, edits and finds them again.
#include "gate/publish/issues.hpp"

#include <algorithm>
#include <set>

#include "gate/base/find.hpp"
#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"

namespace weir::publish {
namespace {

constexpr std::size_t k_max_issues = 10'000;

std::string change_marker(const std::string& series, const std::string& at) {
  return fmt::format("<!-- weir:change={} at={} -->", short_hash(series, 16), short_hash(at, 16));
}

// An issue on GitHub that weir made.
struct ExistingIssue {
  std::int64_t number = 0;
  std::string title, body, url;
  bool open = false;
};

// Posts one issue for each change.
class IssuePoster {
 public:
  IssuePoster(Api& api, const std::string& repository, const IssueOptions& options,
              const Wait& wait)
      : api_(api), path_("/repos/" + repository + "/issues"), options_(options), wait_(wait) {}

  Result<std::vector<Part>> post(const std::vector<WantedIssue>& wanted) {
    WEIR_CHECK(read_issues());
    assign_issues(wanted);
    std::vector<Part> parts;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      Part& part = parts.emplace_back();
      part.name = wanted[i].title;
      if (auto posted = post_one(wanted[i], assigned_[i], part); !posted) {
        part.outcome = Part::Outcome::failed;
        part.reason = posted.error().message;
      }
    }
    if (created_ > 0) settle(wanted, parts);
    return parts;
  }

 private:
  // Reads the issues that are ours and have the label. A marker alone means nothing: anybody may
  // write one.
  Result<void> read_issues() {
    WEIR_TRY(const Json list,
             api_.list(path_ + "?state=all&labels=" + options_.label, k_max_issues));
    issues_.clear();
    for (const Json& json : list) {
      const std::string body = text_in(json, "body");
      if (json.contains("pull_request") || !body.starts_with("<!-- weir:change=")) continue;
      WEIR_TRY(const bool ours, own_.is_own(json));
      if (!ours) continue;
      issues_.push_back({number_in(json, "number"), text_in(json, "title"), body,
                         link_in(json, "html_url"), text_in(json, "state") == "open"});
    }
    std::ranges::sort(issues_, {}, &ExistingIssue::number);
    return {};
  }

  static std::string marker_in(const ExistingIssue& issue) {
    return issue.body.substr(0, issue.body.find_first_of("\r\n"));
  }

  // Assigns at most one issue to each change. An issue that names the exact place goes before one
  // that names a place near it. Open issues go first, so that a closed duplicate is not taken.
  void assign_issues(const std::vector<WantedIssue>& wanted) {
    assigned_.assign(wanted.size(), nullptr);
    std::set<const ExistingIssue*> used;
    const auto assign = [&](std::size_t i, const std::vector<std::string>& markers) {
      for (const bool open : {true, false}) {
        for (const ExistingIssue& issue : issues_) {
          if (assigned_[i] != nullptr || issue.open != open || used.contains(&issue)) continue;
          if (!holds(markers, marker_in(issue))) continue;
          assigned_[i] = &issue;
          used.insert(&issue);
        }
      }
    };
    for (std::size_t i = 0; i < wanted.size(); ++i) assign(i, {issue_marker(wanted[i])});
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      std::vector<std::string> near;
      for (const auto& at : wanted[i].near) near.push_back(change_marker(wanted[i].series, at));
      assign(i, near);
    }
  }

  // Makes the issue if there is none, edits an open one, and leaves a closed one alone.
  Result<void> post_one(const WantedIssue& wanted, const ExistingIssue* issue, Part& part) {
    if (issue == nullptr) return create(wanted, part);
    part.id = issue->number;
    part.url = issue->url;
    if (issue->open) return edit(wanted, *issue, part);
    part.reason = fmt::format("#{} was closed", issue->number);
    return {};
  }

  Result<void> edit(const WantedIssue& wanted, const ExistingIssue& issue, Part& part) {
    const std::string body = issue_body(wanted);
    if (normalize_body(issue.body) == normalize_body(body) && issue.title == wanted.title) {
      part.outcome = Part::Outcome::unchanged;
      return {};
    }
    WEIR_TRY(const ApiResponse answer, api_.send("PATCH", fmt::format("{}/{}", path_, issue.number),
                                                 {{"title", wanted.title}, {"body", body}}));
    if (!is_success(answer)) return refusal_error(answer);
    part.outcome = Part::Outcome::edited;
    return {};
  }

  // Makes an issue with our label. Fails, and closes the issue again, if GitHub left the label out.
  Result<void> create(const WantedIssue& wanted, Part& part) {
    if (created_ >= options_.max_new_issues) {
      part.reason = fmt::format("beyond {} new ones at once", options_.max_new_issues);
      return {};
    }
    ++created_;
    WEIR_TRY(const ApiResponse answer, api_.send("POST", path_,
                                                 {{"title", wanted.title},
                                                  {"body", issue_body(wanted)},
                                                  {"labels", Json::array({options_.label})}}));
    if (!is_success(answer)) return refusal_error(answer, " (the token needs issues: write)");
    own_.learn(answer.body);
    part.id = number_in(answer.body, "number");
    part.url = link_in(answer.body, "html_url");
    part.outcome = Part::Outcome::created;
    const bool labelled =
        std::ranges::any_of(list_or_empty(answer.body, "labels"), [&](const auto& label) {
          return text::lower(text_in(label, "name")) == text::lower(options_.label);
        });
    if (labelled) return {};
    // GitHub silently leaves labels out if the token may not set them. Without the label the issue
    // would not be found again, and every night would make another one.
    created_ = options_.max_new_issues;
    (void)close(part.id);
    return fail(Code::unavailable,
                "#{} was made without its label, which this token may not set, and is closed again",
                part.id);
  }

  // Closes our new issues if another poster made the same with a lower number.
  void settle(const std::vector<WantedIssue>& wanted, std::vector<Part>& parts) {
    wait_(options_.settle_seconds);
    if (const auto result = read_issues(); !result) {
      for (Part& part : parts) {
        if (part.outcome != Part::Outcome::created) continue;
        part.warnings.push_back("whether another poster made the same is not known: " +
                                result.error().message);
      }
      return;
    }
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (parts[i].outcome != Part::Outcome::created) continue;
      const std::string marker = issue_marker(wanted[i]);
      const ExistingIssue* lowest = find_first(
          issues_, [&](const ExistingIssue& issue) { return marker_in(issue) == marker; });
      if (lowest != nullptr && lowest->number < parts[i].id) close_duplicate(parts[i], *lowest);
    }
  }

  bool close(std::int64_t number) {
    const auto answer = api_.send("PATCH", fmt::format("{}/{}", path_, number),
                                  {{"state", "closed"}, {"state_reason", "not_planned"}});
    return answer && is_success(*answer);
  }

  void close_duplicate(Part& part, const ExistingIssue& stays) {
    if (!close(part.id)) {
      part.warnings.push_back(
          fmt::format("#{} says the same, and #{} could not be closed", stays.number, part.id));
      return;
    }
    part.id = stays.number;
    part.url = stays.url;
    part.outcome = Part::Outcome::unchanged;
  }

  static std::string issue_body(const WantedIssue& wanted) {
    constexpr std::size_t k_max_bytes = 60'000;  // GitHub takes 65 536 characters
    return issue_marker(wanted) + "\n" + wanted.body.substr(0, k_max_bytes);
  }

  Api& api_;
  const std::string path_;
  const IssueOptions& options_;
  const Wait& wait_;
  OwnLogin own_{api_, options_.app};
  std::vector<ExistingIssue> issues_;           // by number
  std::vector<const ExistingIssue*> assigned_;  // one for each wanted issue; null: none
  std::size_t created_ = 0;
};

}  // namespace

std::string issue_marker(const WantedIssue& wanted) {
  return change_marker(wanted.series, wanted.at);
}

Result<std::vector<Part>> post_issues(Api& api, const std::string& repository,
                                      const std::vector<WantedIssue>& wanted,
                                      const IssueOptions& options, const Wait& wait) {
  if (wanted.empty()) return std::vector<Part>();
  return IssuePoster(api, repository, options, wait).post(wanted);
}

}  // namespace weir::publish
