// Made-up noise, by name. README.md describes each. Times are around 1, so logarithms around 0.
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
// Finds the noise that `text` names. Only letters and digits count, and ".3" is "0.3". A prefix is
// enough if only one noise has it and it does not end inside a number. Fails with Code::usage, and
// lists all names, if no noise or more than one matches.
[[nodiscard]] Result<std::string> find_noise_name(std::string_view text);

}  // namespace weir::quality
