// The parts of assemble(): one function a pass. Used by assemble.cpp alone.
#pragma once

#include <span>
#include <vector>

#include "gate/profile/assemble.hpp"

namespace weir::profile {

using Records = std::vector<const RunRecord*>;

// Adds the timed metrics of records that all measured something.
void add_timed(const CellFacts& facts, const Records& timed, Profile& profile);

// Adds counts, kernels, device and placement of counted records that all ended well. What stops
// the pass from being counted becomes an error in the profile.
void add_counted(const CellFacts& facts, const Records& counted, Profile& profile);

// Length of a record in the counted pass: tokens reported generated (else asked for), or repeats.
[[nodiscard]] std::int64_t length_of(const RunRecord& record, Sweep sweep);

void add_once(std::vector<std::string>& lines, const std::string& line);

}  // namespace weir::profile
