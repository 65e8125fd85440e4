// Made-up noise, by name. README.md has each in words; times are around 1, so logarithms around 0.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/decision_quality/scenario.hpp"

namespace weir::quality {

// In the order of the tables.
[[nodiscard]] std::vector<std::string> noise_names();
[[nodiscard]] std::optional<Scenario> noise(std::string_view name);

}  // namespace weir::quality
