// The tables of docs/evidence/change-points.md, as Markdown.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "benchmarks/change_points/trials.hpp"

namespace weir::changes {

// `trials` series each; other methods, which take longer, get a tenth where they look nightly.
[[nodiscard]] std::string unchanged_table(const Bench& bench, std::size_t trials);
// False alarms a year, and how soon a step is found, by weir trend changes --sensitivity.
[[nodiscard]] std::string sensitivity_table(const Bench& bench, std::size_t trials);
[[nodiscard]] std::string step_table(const Bench& bench, std::size_t trials);
// PELT, where nothing changed and at steps of 2 standard deviations behind 200 nights.
[[nodiscard]] std::string pelt_table(const Bench& bench, std::size_t trials);
[[nodiscard]] std::string drift_table(const Bench& bench, std::size_t trials);
// Steps and drifts: how often told as what they are, places, sizes and their intervals.
[[nodiscard]] std::string shape_table(const Bench& bench, std::size_t trials);
// Processor seconds for 1 000 series of 1 000 points.
[[nodiscard]] std::string speed_table(const Bench& bench);

}  // namespace weir::changes
