// Change points of a history as issues: one each, edited while it is open, and found again by a
// hidden marker. docs/how-to/trends.md.
//
// The place of a change moves by a point or two while more points come in, so an issue also belongs
// to a change if the place it names is one of `near`. Issues that people closed stay closed. Two
// posters at once converge: the lowest number stays, and the other poster closes its own.
#pragma once

#include <string>
#include <vector>

#include "gate/publish/api.hpp"
#include "gate/publish/post.hpp"

namespace weir::publish {

struct WantedIssue {
  std::string series;             // name of the series, the same every night
  std::string at;                 // place of the first changed point: a commit, or a time
  std::vector<std::string> near;  // places near it, which an earlier night may have named
  std::string title;              // one line, inert, at most 256 characters
  std::string body;               // Markdown, inert, without a marker
};

struct IssueOptions {
  std::string label = "weir";
  // The most new issues in one call: more changes at once probably have one cause (an image, a
  // driver).
  std::size_t max_new_issues = 10;
  double settle_seconds = 3;
  std::string app = "github-actions";  // as in PostOptions
};

// Returns a part for each wanted issue, in order; `name` is its title. left_out: closed by
// somebody, or beyond max_new_issues. Each sends a bounded number of requests, and one that fails
// does not stop the others. If the list of issues can't be read, none is posted.
[[nodiscard]] Result<std::vector<Part>> post_issues(Api& api, const std::string& repository,
                                                    const std::vector<WantedIssue>& wanted,
                                                    const IssueOptions& options, const Wait& wait);

// Returns the first line of an issue's body.
[[nodiscard]] std::string issue_marker(const WantedIssue& wanted);

}  // namespace weir::publish
