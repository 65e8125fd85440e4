#include "gate/publish/issues.hpp"

#include <algorithm>
#include <optional>

#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"
#include "gate/publish/answers.hpp"
#include "gate/publish/own_login.hpp"

namespace weir::publish {
namespace {

constexpr std::size_t k_most_issues = 10'000;

std::string change_marker(const std::string& series, const std::string& at) {
  return fmt::format("<!-- weir:change={} at={} -->", short_hash(series, 16), short_hash(at, 16));
}

struct SeenIssue {
  std::int64_t number = 0;
  std::string title, body, url;
  bool open = false;
};

class IssuePoster {
 public:
  IssuePoster(Api& api, const std::string& repository, const IssueOptions& options,
              const Wait& wait)
      : api_(api), path_("/repos/" + repository + "/issues"), options_(options), wait_(wait) {}

  Result<std::vector<Part>> post(const std::vector<IssueWanted>& wanted) {
    WEIR_CHECK(look());
    std::vector<Part> parts;
    for (const IssueWanted& one : wanted) {
      Part& part = parts.emplace_back();
      part.name = one.title;
      if (auto posted = post_one(one, part); !posted) {
        part.outcome = Part::Outcome::failed;
        part.reason = posted.error().message;
      }
    }
    if (created_ > 0) settle(wanted, parts);
    return parts;
  }

 private:
  // Those that are ours, with the label: without it, or by somebody else, a marker means nothing.
  Result<void> look() {
    WEIR_TRY(const Json list,
             api_.list(path_ + "?state=all&labels=" + options_.label, k_most_issues));
    seen_.clear();
    for (const Json& json : list) {
      const std::string body = text_in(json, "body");
      if (json.contains("pull_request") || !body.starts_with("<!-- weir:change=")) continue;
      WEIR_TRY(const bool ours, own_.wrote(json));
      if (ours) seen_.push_back(seen_of(json));
    }
    std::sort(seen_.begin(), seen_.end(),
              [](const SeenIssue& a, const SeenIssue& b) { return a.number < b.number; });
    return {};
  }

  static SeenIssue seen_of(const Json& json) {
    return {number_in(json, "number"), text_in(json, "title"), text_in(json, "body"),
            link_in(json, "html_url"), text_in(json, "state") == "open"};
  }

  [[nodiscard]] std::vector<const SeenIssue*> of(const IssueWanted& wanted) const {
    std::vector<std::string> markers{issue_marker(wanted)};
    for (const std::string& at : wanted.near) markers.push_back(change_marker(wanted.series, at));
    std::vector<const SeenIssue*> found;
    for (const SeenIssue& seen : seen_) {
      const std::string first = seen.body.substr(0, seen.body.find_first_of("\r\n"));
      if (std::find(markers.begin(), markers.end(), first) != markers.end()) found.push_back(&seen);
    }
    return found;
  }

  Result<void> post_one(const IssueWanted& wanted, Part& part) {
    const auto there = of(wanted);
    if (there.empty()) return create(wanted, part);
    // Of several an open one, so that what was closed as another's double is not looked at.
    const auto open =
        std::find_if(there.begin(), there.end(), [](const SeenIssue* seen) { return seen->open; });
    const SeenIssue& seen = open == there.end() ? *there.front() : **open;
    part.id = seen.number;
    part.url = seen.url;
    if (!seen.open) {
      part.reason = fmt::format("#{} was closed", seen.number);
      return {};
    }
    return edit(wanted, seen, part);
  }

  Result<void> edit(const IssueWanted& wanted, const SeenIssue& seen, Part& part) {
    const std::string body = body_of(wanted);
    if (as_written(seen.body) == as_written(body) && seen.title == wanted.title) {
      part.outcome = Part::Outcome::unchanged;
      return {};
    }
    WEIR_TRY(const ApiResponse answer,
             api_.call({.method = "PATCH",
                        .path = fmt::format("{}/{}", path_, seen.number),
                        .body = {{"title", wanted.title}, {"body", body}}}));
    if (!fine(answer)) return fail(Code::unavailable, "{}", refusal(answer));
    part.outcome = Part::Outcome::edited;
    return {};
  }

  Result<void> create(const IssueWanted& wanted, Part& part) {
    if (created_ >= options_.most_new) {
      part.reason = fmt::format("beyond {} new ones at once", options_.most_new);
      return {};
    }
    ++created_;
    WEIR_TRY(const ApiResponse answer,
             api_.call({.method = "POST",
                        .path = path_,
                        .body = {{"title", wanted.title},
                                 {"body", body_of(wanted)},
                                 {"labels", Json::array({options_.label})}}}));
    if (!fine(answer)) {
      return fail(Code::unavailable, "{}{}", refusal(answer),
                  answer.status == 403 ? " (the token needs issues: write)" : "");
    }
    own_.learn(answer.body);
    part.id = number_in(answer.body, "number");
    part.url = link_in(answer.body, "html_url");
    part.outcome = Part::Outcome::created;
    return {};
  }

  // Another poster may have made the same: the lowest stays.
  void settle(const std::vector<IssueWanted>& wanted, std::vector<Part>& parts) {
    wait_(options_.settle_seconds);
    if (const auto looked = look(); !looked) {
      for (Part& part : parts) {
        if (part.outcome != Part::Outcome::created) continue;
        part.warnings.push_back("whether another poster made the same is not known: " +
                                looked.error().message);
      }
      return;
    }
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (parts[i].outcome != Part::Outcome::created) continue;
      const auto there = of(wanted[i]);
      if (there.empty() || there.front()->number >= parts[i].id) continue;
      close_double(parts[i], *there.front());
    }
  }

  void close_double(Part& part, const SeenIssue& stays) {
    const auto answer = api_.call({.method = "PATCH",
                                   .path = fmt::format("{}/{}", path_, part.id),
                                   .body = {{"state", "closed"}, {"state_reason", "not_planned"}}});
    if (!answer || !fine(*answer)) {
      part.warnings.push_back(
          fmt::format("#{} says the same, and #{} could not be closed", stays.number, part.id));
      return;
    }
    part.id = stays.number;
    part.url = stays.url;
    part.outcome = Part::Outcome::unchanged;
  }

  static std::string body_of(const IssueWanted& wanted) {
    return issue_marker(wanted) + "\n" + wanted.body;
  }

  Api& api_;
  const std::string path_;
  const IssueOptions& options_;
  const Wait& wait_;
  OwnLogin own_{api_};
  std::vector<SeenIssue> seen_;
  std::size_t created_ = 0;
};

}  // namespace

std::string issue_marker(const IssueWanted& wanted) {
  return change_marker(wanted.series, wanted.at);
}

Result<std::vector<Part>> post_issues(Api& api, const std::string& repository,
                                      const std::vector<IssueWanted>& wanted,
                                      const IssueOptions& options, const Wait& wait) {
  if (wanted.empty()) return std::vector<Part>();
  return IssuePoster(api, repository, options, wait).post(wanted);
}

}  // namespace weir::publish
