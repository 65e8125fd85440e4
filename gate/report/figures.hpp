// Figures of a verdict as data, which gate/web alone draws (src/figures.js): in the page of a gate
// and in the trend site. Pure.
//
// Each is an object with "kind", by which it is drawn. But for "load" it has "title", "caption" and
// "words", which say the same to whoever cannot see it.
#pragma once

#include <array>
#include <vector>

#include "gate/base/json.hpp"
#include "gate/report/document.hpp"
#include "gate/verdict/verdict.hpp"

namespace weir::report {

// "requests" and "batches" of the cell's last run: a point for each request (none for fewer than
// 20), and how many graphs computed how many tokens at once.
[[nodiscard]] std::vector<Json> served_figures(const verdict::CellVerdict& cell);

// "ratios": how many pairs changed by how much; of a metric of pictured() alone.
[[nodiscard]] Json ratios_figure(const MetricRow& row);

// Latency against load: p50, p90 and p99 to the first token, the same for each output token, and
// the output's rate. Null: not measured.
struct LoadedCell {
  const verdict::CellVerdict* of;
  std::array<const verdict::Judgement*, 7> metrics;
};
// The cells of each prompt that was measured at several concurrencies, by rising concurrency.
[[nodiscard]] std::vector<LoadedCell> loaded_cells(const verdict::GateVerdict& gate);
// "load": what these cells measured, and their base.
[[nodiscard]] Json load_figure(const std::vector<LoadedCell>& cells);

}  // namespace weir::report
