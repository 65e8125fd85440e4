// Limits: how far a metric may change. Parsed by config, resolved here for one metric of one cell.
#pragma once

#include <array>

#include "gate/base/names.hpp"
#include "gate/profile/cell.hpp"
#include "gate/unit/metric.hpp"

namespace weir::verdict {

enum class Mode { gate, report, off };
inline constexpr auto k_modes = names_in_order<Mode>("gate", "report", "off");

// An amount in a limit: 5 % is {0.05, true}; 3 is {3, false}, in the metric's base unit.
struct Amount {
  double value = 0;
  bool relative = false;
  friend bool operator==(const Amount&, const Amount&) = default;
};

// Globs on the parts of a cell's name; an empty string matches everything. `engine` matches with
// or without "@variant", `prompt` with or without "@d256".
struct Match {
  std::string engine{}, model{}, backend{}, prompt{}, variant{};
  [[nodiscard]] bool fits(const profile::CellKey& cell) const;
  friend bool operator==(const Match&, const Match&) = default;
};

// One entry under `limits:`. An absent kind is left to other entries.
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
  std::string source;  // "weir.yaml:31:5", for messages

  [[nodiscard]] bool covers(const profile::CellKey& cell, std::string_view metric_name) const;
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
  std::optional<double> repeats_within{};

  [[nodiscard]] bool any() const;           // some kind is set
  [[nodiscard]] std::string words() const;  // "must not change", "may vary by 0.5 %", "1 to 3", ""
};

// For each kind the last covering entry wins; kinds add up; `exact: false` removes one.
// `entries` are the config's own; the defaults are applied before them.
[[nodiscard]] Limit resolve_limit(const profile::CellKey& cell, const unit::Metric& metric,
                                  std::span<const LimitEntry> entries);
// The subjects that a limit may name and that are no metrics.
inline constexpr std::array k_non_metrics = {"kernels", "kernel_names", "kernel_code", "placement"};
// The limit on one of k_non_metrics.
[[nodiscard]] Limit resolve_non_metric_limit(const profile::CellKey& cell, std::string_view name,
                                             std::span<const LimitEntry> entries);

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
