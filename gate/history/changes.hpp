// Finds where the series of a history changed: steps and drifts (stats/changes.hpp), and points
// from which on another machine or device was used. Pure.
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

// A change in a series. Levels are in the metric's unit, sizes too unless they are relative.
struct SeriesChange : stats::Change {
  std::size_t series = 0;  // index in History::series
  // Another device or machine was used from there on, or within two points of it.
  std::optional<ClassChange> new_class{};
  // Only the class changed, without a clear step: no interval and no confidence (low and high are
  // the size).
  bool class_alone = false;
  // True if it is for the worse; absent if the metric has no direction.
  std::optional<bool> worse{};
  std::optional<Acknowledgement> acknowledgement{};  // somebody acknowledged it

  // The interval of its size holds 0: it may be as good as none, and is no alarm.
  [[nodiscard]] bool is_unclear() const { return !class_alone && low <= 0 && high >= 0; }
};
// "step", "drift", "class"
[[nodiscard]] std::string_view kind_name(const SeriesChange& change);

// Returns true if all values are counts that agreed: another value is another count, at once.
[[nodiscard]] bool has_exact_values(const Series& series);

struct ChangeQuery {
  // 0 … 4: each more finds changes sooner, and about doubles the false ones.
  int sensitivity = 0;
  // In its place: the share of series without a change that may show one in a year of nights ...
  std::optional<double> false_alarm{};
  bool any_series = false;  // ... of all series together, not of each
};
// The policy for each of so many series.
[[nodiscard]] stats::ChangePolicy policy_of(const ChangeQuery& wanted, std::size_t series);

// All changes, by series, then index. `history` must be in order (put_in_order). Counts that agreed
// are compared exactly, all else by statistics.
[[nodiscard]] Result<std::vector<SeriesChange>> find_changes(
    const History& history, std::span<const Acknowledgement> acknowledged,
    const ChangeQuery& wanted);

// An acknowledgement of this change, with neither reason nor name.
[[nodiscard]] Acknowledgement make_acknowledgement(const History& history,
                                                   const SeriesChange& change);

// A history in the order of its commits, with its changes: read by weir trend changes, ack, notify,
// the pages and the service.

struct ChangedHistory {
  History history;
  std::vector<SeriesChange> changes;
};

// Reads a history and its acknowledgements, and finds its changes.
[[nodiscard]] Result<ChangedHistory> read_changes(Store& store, const Filter& filter,
                                                  const CommitOrder& order,
                                                  const ChangeQuery& wanted);

// Texts about changes: for a terminal, for machines, and as issues. Pure; text from outside is
// inert in Markdown, and in a terminal too.

// "1a2b3c4", "2026-11-04"; the date alone without a commit.
[[nodiscard]] std::string place_label(const RunFacts& run);
// "fell by 8.1 % (6.9 to 9.3 %)"; for counts "grew by 16".
[[nodiscard]] std::string size_text(const Metric& metric, const SeriesChange& change);
// "10.3 → 9.47", with the metric's unit where it is known.
[[nodiscard]] std::string levels_text(const Metric& metric, const SeriesChange& change);

// One change a line or two, by cell, at most `width` columns. "" without changes.
[[nodiscard]] std::string changes_text(const History& history,
                                       const std::vector<SeriesChange>& changes, std::size_t width);

// One object of the array that `weir trend changes --json` writes (docs/how-to/trends.md).
[[nodiscard]] Json change_json(const History& history, const SeriesChange& change);

struct ChangeIssue {
  std::string series;             // identifies it: project, cell, metric, machine
  std::string at;                 // commit of the first changed point, or its time
  std::vector<std::string> near;  // the same of the points around it
  std::string title, body;
};
// The text of an issue about a change. `site_url`: the pages ("https://…"), or "".
[[nodiscard]] ChangeIssue make_issue(const History& history, const SeriesChange& change,
                                     const std::string& site_url);

}  // namespace weir::history
