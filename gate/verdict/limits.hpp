// Limits: how far a metric may change. Parsed by config, resolved here for one metric of one cell.
#pragma once

#include <array>
#include <map>
#include <set>
#include <span>

#include "gate/base/names.hpp"
#include "gate/profile/cell.hpp"
#include "gate/unit/metric.hpp"

namespace weir::verdict {

enum class Mode { gate, report, off };
inline constexpr auto k_modes = names_in_order<Mode>("gate", "report", "off");

// An amount in a limit: 5 % is {0.05, true}; 3 is {3, false}. In an entry a number without a unit
// has the one that the metric's name ends in ("heap_mb"); in a Limit all are in base units.
struct Amount {
  double value = 0;
  bool relative = false;
  std::optional<unit::Unit> unit{};  // the base unit of `value`, where the config names one
  std::string shown_in{};            // of bytes: as Metric::shown_in
  // Returns the amount in the unit of `whole`, which a share is one of.
  [[nodiscard]] double of(double whole) const { return relative ? value * whole : value; }
  friend bool operator==(const Amount& a, const Amount& b) {
    return a.value == b.value && a.relative == b.relative;
  }
};

// Globs on the parts of a cell's name; an empty string matches everything. `engine` matches with
// or without "@variant", `prompt` with or without "@d256".
struct Match {
  std::string engine{}, model{}, backend{}, prompt{}, variant{};
  [[nodiscard]] bool fits(const profile::CellKey& cell) const;
  // fits() asks these for the parts of a name, one by one.
  [[nodiscard]] static bool fits_engine(const Match& match, const profile::CellKey& cell);
  [[nodiscard]] static bool fits_model(const Match& match, const profile::CellKey& cell);
  [[nodiscard]] static bool fits_backend(const Match& match, const profile::CellKey& cell);
  [[nodiscard]] static bool fits_prompt(const Match& match, const profile::CellKey& cell);
  [[nodiscard]] static bool fits_variant(const Match& match, const profile::CellKey& cell);
  friend bool operator==(const Match&, const Match&) = default;
};

// One entry under `limits:`. An absent kind is left to other entries.
inline constexpr const char* k_default_source = "default";  // of limits that no file has

struct LimitEntry {
  Match match;
  std::vector<std::string>
      metrics;                // globs over metric names, "kernels" and "placement"; empty: all
  std::optional<bool> exact;  // on counts, kernels, placement
  std::optional<Amount> max_drop, max_increase, max_decrease;
  std::optional<Amount> tolerate;  // with a limit on a change; default: half of it
  std::optional<Amount> max, min;  // absolute
  std::optional<Mode> mode;
  std::optional<std::string> until, reason, issue;
  std::string source;  // "weir.yaml:31:5", for messages; else k_default_source

  [[nodiscard]] bool covers(const profile::CellKey& cell, std::string_view metric_name) const;
  [[nodiscard]] bool covers_name(std::string_view metric_name) const;
};

struct MaxChange {
  Amount amount;
  Amount tolerate;
};

// The limit on one metric of one cell. Everything absent and mode gate: info.
struct Limit {
  bool exact = false;
  std::optional<MaxChange> max_drop, max_increase, max_decrease;
  std::optional<Amount> max, min;
  Mode mode = Mode::gate;
  std::optional<std::string> reason;
  // With `exact` on a count that only nearly repeats: how far it may move, relative.
  std::optional<double> allowed_variation{};

  [[nodiscard]] bool is_set() const;        // some kind is set
  [[nodiscard]] std::string words() const;  // "must not change", "may vary by 0.5 %", "1 to 3", ""
};

// Places of entries in a configuration, a bit each.
using EntrySet = std::vector<std::uint64_t>;
// Places of different patterns in a configuration's limits, a bit each.
using PatternSet = std::vector<std::uint64_t>;
[[nodiscard]] inline bool contains(std::span<const std::uint64_t> set, std::size_t place) {
  return (set[place / 64] >> (place % 64) & 1) != 0;
}
inline void insert(std::span<std::uint64_t> set, std::size_t place) {
  set[place / 64] |= std::uint64_t{1} << (place % 64);
}
inline void insert_all(std::span<std::uint64_t> set, std::span<const std::uint64_t> more) {
  for (std::size_t i = 0; i < set.size(); ++i) set[i] |= more[i];
}
[[nodiscard]] inline bool intersects(std::span<const std::uint64_t> a,
                                     std::span<const std::uint64_t> b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if ((a[i] & b[i]) != 0) return true;
  }
  return false;
}

// Matches many entries with many cells. Each entry is matched once with each part of a cell's name
// that occurs. Refers to the caller's matches. Not thread-safe, because the sets are filled on use.
class MatchTable {
 public:
  explicit MatchTable(std::vector<const Match*> matches) : matches_(std::move(matches)) {}
  // The entries that fit the cell.
  [[nodiscard]] EntrySet fitting(const profile::CellKey& cell) const;
  [[nodiscard]] EntrySet none() const { return EntrySet((matches_.size() + 63) / 64); }
  // How often an entry was matched with a part so far.
  [[nodiscard]] std::size_t compared() const { return compared_; }

 private:
  std::vector<const Match*> matches_;
  mutable std::array<std::map<std::string, EntrySet, std::less<>>, 5> parts_;
  mutable std::size_t compared_ = 0;
};
template <class Entries>
[[nodiscard]] MatchTable make_match_table(const Entries& entries) {
  std::vector<const Match*> matches;
  for (const auto& entry : entries) matches.push_back(&entry.match);
  return MatchTable(std::move(matches));
}

// The entries of a configuration, ready for many cells and metrics. Each entry is matched once with
// each part of a cell's name, and each different pattern once with each metric's name. A resolution
// then takes a few words of bits, so that cells × metrics is not multiplied by entries. Refers to
// the caller's entries. Not thread-safe either.
class LimitTable {
 public:
  // Patterns with "*" times names that are matched. Patterns and names may multiply, so there is an
  // end: no pattern covers the names after it, and has_given_up() says so.
  static constexpr std::size_t k_max_compared = 4'000'000;

  LimitTable(std::span<const LimitEntry> entries = {});  // NOLINT: meant to be implicit
  LimitTable(const std::vector<LimitEntry>& entries)     // NOLINT: meant to be implicit
      : LimitTable(std::span<const LimitEntry>(entries)) {}
  template <std::size_t Count>
  LimitTable(const LimitEntry (&entries)[Count])  // NOLINT: meant to be implicit
      : LimitTable(std::span<const LimitEntry>(entries)) {}
  LimitTable(const LimitEntry* first, std::size_t count) : LimitTable(std::span(first, count)) {}

  [[nodiscard]] std::span<const LimitEntry> entries() const { return entries_; }
  // The entries whose `match` fits the cell.
  [[nodiscard]] EntrySet fitting(const profile::CellKey& cell) const {
    return matches_.fitting(cell);
  }
  // Different patterns of all entries, in the order in which they first come; each has its place in
  // a PatternSet.
  [[nodiscard]] const std::vector<std::string_view>& patterns() const { return patterns_; }
  [[nodiscard]] PatternSet no_patterns() const { return PatternSet((patterns_.size() + 63) / 64); }
  // The patterns of an entry.
  [[nodiscard]] const std::vector<std::size_t>& patterns_of(std::size_t entry) const {
    return patterns_of_entry_[entry];
  }
  // The patterns that match the name.
  [[nodiscard]] const PatternSet& matching(std::string_view metric_name) const;
  // True once more names and patterns came than are matched. What was judged since then is not to
  // be used.
  [[nodiscard]] bool has_given_up() const { return has_given_up_; }
  // The limit on a metric of a cell with this set of fitting entries.
  [[nodiscard]] Limit resolve(const EntrySet& fitting_cell, const unit::Metric& metric) const;
  // The limit on one of k_non_metrics.
  [[nodiscard]] Limit resolve_non_metric(const EntrySet& fitting_cell, std::string_view name) const;
  // How often a pattern was matched with a name so far.
  [[nodiscard]] std::size_t compared() const { return compared_ + matches_.compared(); }

 private:
  static constexpr std::size_t k_settings = 8;
  // The sets that belong to a name; names often share them.
  struct Name {
    const EntrySet* covering = nullptr;
    const PatternSet* matching = nullptr;
    const std::vector<const LimitEntry*>* defaults = nullptr;
  };

  [[nodiscard]] EntrySet none() const { return matches_.none(); }
  [[nodiscard]] const Name& find_name(std::string_view metric_name) const;
  // Replaces the settings in `limit` by those of the last entries that have them. Under `mode: off`
  // later settings, and bounds of the same entry, are left, and gate.
  void apply_entries(const EntrySet& fitting_cell, const EntrySet& covering_name,
                     const unit::Metric* metric, Limit& limit) const;

  std::span<const LimitEntry> entries_;
  MatchTable matches_;
  std::array<EntrySet, k_settings> with_setting_;  // entries that have each setting
  EntrySet without_patterns_;
  std::vector<std::string_view> patterns_;
  std::vector<EntrySet> entries_of_pattern_;
  std::vector<std::vector<std::size_t>> patterns_of_entry_;
  std::map<std::string_view, std::size_t> places_;  // of patterns_
  std::vector<std::size_t> globs_;                  // places of those with "*"
  mutable std::map<std::string, Name, std::less<>> names_;
  mutable std::set<std::vector<std::uint64_t>> sets_;
  mutable std::set<std::vector<const LimitEntry*>> default_sets_;
  mutable std::size_t compared_ = 0;
  mutable bool has_given_up_ = false;
};

// Returns the limit of a metric that an engine's output declares: it may get 5 % worse. Nothing for
// a metric of weir's that has a default limit, and for a count that must not change.
[[nodiscard]] std::optional<LimitEntry> limit_of_declared(const unit::Metric& metric,
                                                          const std::string& engine);

// For each kind the last covering entry wins; kinds add up; `exact: false` removes one. `mode: off`
// leaves later entries, and the `max` and `min` of its own.
// `limits` holds the config's own entries; the defaults are applied before them.
[[nodiscard]] Limit resolve_limit(const profile::CellKey& cell, const unit::Metric& metric,
                                  const LimitTable& limits);
// The subjects that a limit may name and that are no metrics.
inline constexpr std::array k_non_metrics = {"kernels", "kernel_names", "kernel_code", "placement"};
// The limit on one of k_non_metrics.
[[nodiscard]] Limit resolve_non_metric_limit(const profile::CellKey& cell, std::string_view name,
                                             const LimitTable& limits);

// Returns why `tolerate` of `entry` does not go with the limits beside it: it must be of their unit
// and smaller. Nothing when fine, or when there is none.
[[nodiscard]] std::optional<std::string> tolerate_problem(const LimitEntry& entry);

// Returns why `entry` makes no sense for `metric` (max_drop on a count, exact on a time); nothing
// when fine.
[[nodiscard]] std::optional<std::string> nonsense(const LimitEntry& entry,
                                                  const unit::Metric& metric);

// Returns true for a day of the calendar: "2027-03-01".
[[nodiscard]] bool is_day(std::string_view text);

[[nodiscard]] std::string show(const Amount& amount);  // "5 %", "3"
[[nodiscard]] std::string_view to_string(Mode mode);

}  // namespace weir::verdict
