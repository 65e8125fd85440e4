// Change points of a history as issues: one each, edited while they are open, found again by a
// hidden marker. docs/how-to/trends.md.
//
// A change's place moves by a point or two while more points come in, so an issue is the same
// change's where the place it names is one of `near`. What people closed stays closed. Two posters
// at once converge: the lowest number stays, the other closes its own.
#pragma once

#include <string>
#include <vector>

#include "gate/publish/api.hpp"
#include "gate/publish/post.hpp"

namespace weir::publish {

struct IssueWanted {
  std::string series;             // whose change it is: the same words every night
  std::string at;                 // the place of its first changed point: a commit, or a time
  std::vector<std::string> near;  // places beside it, which an earlier night may have named
  std::string title;              // one line, inert, at most 256 characters
  std::string body;               // Markdown, inert, without a marker
};

struct IssueOptions {
  std::string label = "weir";
  // New ones in one call; more is rather one cause (an image, a driver) than so many changes.
  std::size_t most_new = 10;
  double settle_seconds = 3;
  std::string app = "github-actions";  // as of PostOptions
};

// In the order of what is wanted; `name` is its title. left_out: closed by somebody, or beyond
// most_new. Each has a bounded number of requests, and one that fails keeps none from being posted,
// unless the list of what is there cannot be read: then none is.
[[nodiscard]] Result<std::vector<Part>> post_issues(Api& api, const std::string& repository,
                                                    const std::vector<IssueWanted>& wanted,
                                                    const IssueOptions& options, const Wait& wait);

// The first line of an issue's body.
[[nodiscard]] std::string issue_marker(const IssueWanted& wanted);

}  // namespace weir::publish
