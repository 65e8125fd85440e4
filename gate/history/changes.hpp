// Where the series of a history changed: steps and drifts (stats/changes.hpp), and where what they
// were measured on became another machine or device. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gate/base/json.hpp"
#include "gate/history/order.hpp"
#include "gate/history/store.hpp"
#include "gate/stats/changes.hpp"

namespace weir::history {

// Levels are in the metric's unit, sizes too where they are not relative.
struct SeriesChange : stats::Change {
  std::size_t series = 0;  // of History::series
  // What it was measured on became another one, there or within two points of it.
  std::optional<ClassChange> new_class{};
  // No step is clear besides: neither an interval nor a confidence (low and high are the size).
  bool class_alone = false;
  // Whether this is for the worse; nothing where the metric has no direction.
  std::optional<bool> worse{};
  std::optional<Acknowledgement> known{};  // somebody said so
};
// "step", "drift", "class"
[[nodiscard]] std::string_view kind_name(const SeriesChange& change);

// Its values are counts that agreed: another value is another count, at once.
[[nodiscard]] bool is_exact(const Series& series);

struct ChangesWanted {
  // 0 … 4: each more finds changes sooner, and about doubles the false ones.
  int sensitivity = 0;
  // In its place: the share of series without a change that may show one in a year of nights ...
  std::optional<double> false_alarm{};
  bool any_series = false;  // ... of all series together, not of each
};
// What it comes to for each of so many series.
[[nodiscard]] stats::ChangePolicy policy_of(const ChangesWanted& wanted, std::size_t series);

// `history` is in order (put_in_order). Counts that agreed are compared exactly; what is only
// nearly exact, and times, by statistics. By series, then index.
[[nodiscard]] Result<std::vector<SeriesChange>> changes_of(
    const History& history, std::span<const Acknowledgement> acknowledged,
    const ChangesWanted& wanted);

// An acknowledgement of this change, without its words.
[[nodiscard]] Acknowledgement acknowledgement_of(const History& history,
                                                 const SeriesChange& change);

// A history in the order of its commits, with where it changed: what weir trend changes, ack,
// notify, the pages and the service read.

struct ChangedHistory {
  History history;
  std::vector<SeriesChange> changes;
};

// Its acknowledgements are read too.
[[nodiscard]] Result<ChangedHistory> read_changes(Store& store, const Filter& filter,
                                                  const CommitOrder& order,
                                                  const ChangesWanted& wanted);

// Changes of a history in words: for a terminal, for machines, and as issues. Pure; what comes from
// outside is inert in Markdown, and nothing else in it is trusted by a terminal either.

// "1a2b3c4", "2026-11-04"; the date alone without a commit.
[[nodiscard]] std::string place_words(const RunFacts& run);
// "fell by 8.1 % (6.9 to 9.3 %)"; of counts "grew by 16".
[[nodiscard]] std::string size_words(const Metric& metric, const SeriesChange& change);
// "10.3 → 9.47", with the metric's unit where it is known.
[[nodiscard]] std::string level_words(const Metric& metric, const SeriesChange& change);

// One change a line or two, by cell, at most `width` columns. "" without changes.
[[nodiscard]] std::string changes_text(const History& history,
                                       const std::vector<SeriesChange>& changes, std::size_t width);

// One object of the array that `weir trend changes --json` writes (docs/how-to/trends.md).
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
