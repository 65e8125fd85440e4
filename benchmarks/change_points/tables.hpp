// The tables of docs/evidence/change-points.md, as Markdown.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "benchmarks/change_points/trials.hpp"

namespace weir::changes {

// Each figure comes from `trials` series. Slow methods get fewer, above all if they run nightly.
[[nodiscard]] std::string unchanged_table(const Bench& bench, std::size_t trials);
// False alarms a year, and how soon a step is detected, by weir trend changes --sensitivity.
[[nodiscard]] std::string sensitivity_table(const Bench& bench, std::size_t trials);
[[nodiscard]] std::string step_table(const Bench& bench, std::size_t trials);
// PELT without a change, and with a step of 2 standard deviations after 200 nights.
[[nodiscard]] std::string pelt_table(const Bench& bench, std::size_t trials);
[[nodiscard]] std::string drift_table(const Bench& bench, std::size_t trials);
// Steps and drifts: how often the kind is right, the places, and the intervals of sizes.
[[nodiscard]] std::string shape_table(const Bench& bench, std::size_t trials);
// Drifts that ended: whether there is one change, and whether its interval holds the size.
[[nodiscard]] std::string end_table(const Bench& bench, std::size_t trials);
// Processor seconds for 1 000 series of 1 000 points.
[[nodiscard]] std::string speed_table(const Bench& bench);

}  // namespace weir::changes
