// Figures of a verdict as data. Only gate/web draws them (src/figures.js): in the page of a gate
// and in the trend site. Pure.
//
// Each is an object whose "kind" says how it is drawn. Except for "load" it has "title", "caption"
// and "words", which say the same to readers who don't see the figure.
#pragma once

#include <array>
#include <vector>

#include "gate/base/json.hpp"
#include "gate/report/document.hpp"
#include "gate/verdict/verdict.hpp"

namespace weir::report {

// Returns "requests" and "batches" of the cell's last run: a point for each request (no figure for
// fewer than 20), and how many graphs computed how many tokens at once.
[[nodiscard]] std::vector<Json> served_figures(const verdict::CellVerdict& cell);

// Returns "ratios": how many pairs changed by how much. The row must be one of rows_with_picture().
[[nodiscard]] Json ratios_figure(const MetricRow& row);

// Latency against load: p50, p90 and p99 of the time to the first token and of the time for each
// output token, and the rate of output. Null: not measured.
struct LoadedCell {
  const verdict::CellVerdict* cell_verdict;
  std::array<const verdict::Judgement*, 7> metrics;
};
// Returns the cells of each prompt that was measured at several concurrencies, by rising
// concurrency.
[[nodiscard]] std::vector<LoadedCell> loaded_cells(const verdict::GateVerdict& gate);
// Returns "load": the values of these cells, and of their base.
[[nodiscard]] Json load_figure(const std::vector<LoadedCell>& cells);

}  // namespace weir::report
