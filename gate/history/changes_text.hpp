// Changes of a history in words: for a terminal, for machines, and as issues. Pure; what comes from
// outside is inert in Markdown, and nothing else in it is trusted by a terminal either.
#pragma once

#include <string>
#include <vector>

#include "gate/base/json.hpp"
#include "gate/history/changes.hpp"

namespace weir::history {

// "1a2b3c4", "2026-11-04"; the date alone without a commit.
[[nodiscard]] std::string place_words(const RunFacts& run);
// "fell by 8.1 % (6.9 to 9.3 %)"; of counts "grew by 16".
[[nodiscard]] std::string size_words(const Metric& metric, const SeriesChange& change);
// "10.3 → 9.47", with the metric's unit where it is known.
[[nodiscard]] std::string level_words(const Metric& metric, const SeriesChange& change);

// One change a line or two, by cell, at most `width` columns. "" without changes.
[[nodiscard]] std::string changes_text(const History& history,
                                       const std::vector<SeriesChange>& changes, std::size_t width);

// One object of the array that `weir trend changes --json` writes (docs/trends.md).
[[nodiscard]] Json change_json(const History& history, const SeriesChange& change);

struct ChangeIssue {
  std::string series;             // which one: project, cell, metric, machine
  std::string at;                 // commit of the first changed point, or its time
  std::vector<std::string> near;  // of the points beside it
  std::string title, body;
};
// `site_url`: of the pages ("https://…"), or "".
[[nodiscard]] ChangeIssue issue_of(const History& history, const SeriesChange& change,
                                   const std::string& site_url);

}  // namespace weir::history
