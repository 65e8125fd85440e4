#include "gate/publish/issues.hpp"

#include <algorithm>
#include <set>

#include "gate/base/find.hpp"
#include "gate/base/hash.hpp"
#include "gate/base/text.hpp"

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
    give_out(wanted);
    std::vector<Part> parts;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      Part& part = parts.emplace_back();
      part.name = wanted[i].title;
      if (auto posted = post_one(wanted[i], given_[i], part); !posted) {
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
      if (!ours) continue;
      seen_.push_back({number_in(json, "number"), text_in(json, "title"), body,
                       link_in(json, "html_url"), text_in(json, "state") == "open"});
    }
    std::ranges::sort(seen_, {}, &SeenIssue::number);
    return {};
  }

  static std::string marker_in(const SeenIssue& seen) {
    return seen.body.substr(0, seen.body.find_first_of("\r\n"));
  }

  // Which issue is whose: one that names the very place goes before one that names a place near it,
  // and each is one change's. Of several an open one, so that what was closed as another's double
  // is not looked at.
  void give_out(const std::vector<IssueWanted>& wanted) {
    given_.assign(wanted.size(), nullptr);
    std::set<const SeenIssue*> taken;
    const auto give = [&](std::size_t i, const std::vector<std::string>& markers) {
      for (const bool open : {true, false}) {
        for (const SeenIssue& seen : seen_) {
          if (given_[i] != nullptr || seen.open != open || taken.contains(&seen)) continue;
          if (!holds(markers, marker_in(seen))) continue;
          given_[i] = &seen;
          taken.insert(&seen);
        }
      }
    };
    for (std::size_t i = 0; i < wanted.size(); ++i) give(i, {issue_marker(wanted[i])});
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      std::vector<std::string> near;
      for (const auto& at : wanted[i].near) near.push_back(change_marker(wanted[i].series, at));
      give(i, near);
    }
  }

  Result<void> post_one(const IssueWanted& wanted, const SeenIssue* seen, Part& part) {
    if (seen == nullptr) return create(wanted, part);
    part.id = seen->number;
    part.url = seen->url;
    if (seen->open) return edit(wanted, *seen, part);
    part.reason = fmt::format("#{} was closed", seen->number);
    return {};
  }

  Result<void> edit(const IssueWanted& wanted, const SeenIssue& seen, Part& part) {
    const std::string body = body_of(wanted);
    if (as_written(seen.body) == as_written(body) && seen.title == wanted.title) {
      part.outcome = Part::Outcome::unchanged;
      return {};
    }
    WEIR_TRY(const ApiResponse answer, api_.send("PATCH", fmt::format("{}/{}", path_, seen.number),
                                                 {{"title", wanted.title}, {"body", body}}));
    if (!fine(answer)) return refused(answer);
    part.outcome = Part::Outcome::edited;
    return {};
  }

  Result<void> create(const IssueWanted& wanted, Part& part) {
    if (created_ >= options_.most_new) {
      part.reason = fmt::format("beyond {} new ones at once", options_.most_new);
      return {};
    }
    ++created_;
    WEIR_TRY(const ApiResponse answer, api_.send("POST", path_,
                                                 {{"title", wanted.title},
                                                  {"body", body_of(wanted)},
                                                  {"labels", Json::array({options_.label})}}));
    if (!fine(answer)) return refused(answer, " (the token needs issues: write)");
    own_.learn(answer.body);
    part.id = number_in(answer.body, "number");
    part.url = link_in(answer.body, "html_url");
    part.outcome = Part::Outcome::created;
    const bool labelled = std::ranges::any_of(list_in(answer.body, "labels"), [&](const auto& one) {
      return text::lower(text_in(one, "name")) == text::lower(options_.label);
    });
    if (labelled) return {};
    // GitHub leaves labels out where the token may not set them, and says nothing: without it the
    // issue would not be found tomorrow, and another one made, every night.
    created_ = options_.most_new;
    (void)close(part.id);
    return fail(Code::unavailable,
                "#{} was made without its label, which this token may not set, and is closed again",
                part.id);
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
      const std::string marker = issue_marker(wanted[i]);
      const SeenIssue* lowest =
          first_of(seen_, [&](const SeenIssue& seen) { return marker_in(seen) == marker; });
      if (lowest != nullptr && lowest->number < parts[i].id) close_double(parts[i], *lowest);
    }
  }

  bool close(std::int64_t number) {
    const auto answer = api_.send("PATCH", fmt::format("{}/{}", path_, number),
                                  {{"state", "closed"}, {"state_reason", "not_planned"}});
    return answer && fine(*answer);
  }

  void close_double(Part& part, const SeenIssue& stays) {
    if (!close(part.id)) {
      part.warnings.push_back(
          fmt::format("#{} says the same, and #{} could not be closed", stays.number, part.id));
      return;
    }
    part.id = stays.number;
    part.url = stays.url;
    part.outcome = Part::Outcome::unchanged;
  }

  static std::string body_of(const IssueWanted& wanted) {
    constexpr std::size_t k_most_bytes = 60'000;  // GitHub takes 65 536 characters
    return issue_marker(wanted) + "\n" + wanted.body.substr(0, k_most_bytes);
  }

  Api& api_;
  const std::string path_;
  const IssueOptions& options_;
  const Wait& wait_;
  OwnLogin own_{api_, options_.app};
  std::vector<SeenIssue> seen_;          // by number
  std::vector<const SeenIssue*> given_;  // by what is wanted; null: none
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
