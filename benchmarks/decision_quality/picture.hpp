// A picture of mean pairs to a verdict, for each noise: weir's rule and the best fixed number.
// Pure.
#pragma once

#include <span>
#include <string>

#include "benchmarks/decision_quality/report.hpp"

namespace weir::quality {

// Returns an SVG for light and dark pages: weir without a change and at a drop of `max_drop`, and
// fixed-n. Noises without rows of weir's rule are left out; without any only the axis is drawn.
[[nodiscard]] std::string to_svg(std::span<const Row> rows, const Limits& limits);

}  // namespace weir::quality
