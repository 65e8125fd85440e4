// The reference workload: a pinned engine and model, timed in every round beside the other cells.
// Pure.
#pragma once

#include <span>
#include <string_view>

#include "gate/profile/profile.hpp"

namespace weir::profile {

// Gives every timed cell of `profiles` what the cell named `reference` did in the same rounds: its
// decode rate, else its prefill rate, else its first rate. Nothing where that cell is not there or
// reported no rate.
void take_reference(std::span<Profile> profiles, std::string_view reference);

}  // namespace weir::profile
