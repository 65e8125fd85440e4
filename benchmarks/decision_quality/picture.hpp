// Mean pairs to a verdict, for each noise: weir's rule beside the best fixed number. Pure.
#pragma once

#include <span>
#include <string>

#include "benchmarks/decision_quality/report.hpp"

namespace weir::quality {

// An SVG for light and dark pages: weir at no change and at a drop of `max_drop`, fixed-n. Noises
// without rows of weir's rule are left out; without any, a picture of its axis.
[[nodiscard]] std::string to_svg(std::span<const Row> rows, const Limits& limits);

}  // namespace weir::quality
