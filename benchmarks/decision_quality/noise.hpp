// Made-up noise, by name. README.md has each in words; times are around 1, so logarithms around 0.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gate/base/result.hpp"

#include "benchmarks/decision_quality/scenario.hpp"

namespace weir::quality {

// In the order of the tables.
[[nodiscard]] std::vector<std::string> noise_names();
[[nodiscard]] std::optional<Scenario> noise(std::string_view name);
// The name of the noise that people call this: only letters and digits count, ".3" is "0.3", and
// the beginning of a name is enough where it is that of one noise and does not end inside a number.
// Code::usage, with all names, where it is none or more than one.
[[nodiscard]] Result<std::string> noise_called(std::string_view text);

}  // namespace weir::quality
