// Results as text. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "benchmarks/decision_quality/replay.hpp"

namespace weir::quality {

// One rule on one scenario at one effect.
struct Row {
  std::string rule, noise;
  std::optional<double> drop;
  Tally tally;
  // The trials without a change of the same rule and noise; absent if none were replayed.
  std::optional<Tally> unchanged;
  std::optional<std::string> note;  // for fixed-n: the name of the best test
};

// The share of gates of k_gate_metrics metrics that fail falsely, and its upper 95 % bound.
struct GateFalseFail {
  double share = 0, upper = 0;
};
[[nodiscard]] GateFalseFail gate_false_fail(const Tally& unchanged);

// For each rule, the sum of its rows without a change on the noises of `same_program`, under the
// noise "pooled".
[[nodiscard]] std::vector<Row> pool_unchanged_rows(std::span<const Row> rows,
                                                   std::span<const std::string> same_program);

// A line without its newline.
[[nodiscard]] std::string to_json(const Row& row, const Limits& limits);
[[nodiscard]] std::string heading();
[[nodiscard]] std::string to_line(const Row& row);

// Tables: a row for each rule and noise, effects side by side.
[[nodiscard]] std::string to_markdown(std::span<const Row> rows);

}  // namespace weir::quality
