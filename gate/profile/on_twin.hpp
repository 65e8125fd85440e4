// What a counted pass on a device twin has to hold before its counts are those of that device.
// Pure. Used by this module alone.
#pragma once

#include "gate/profile/passes.hpp"

namespace weir::profile {

// Takes the processes that read the device's memory as other bytes out of `counted`, and compares
// their counts with those of the process that was asked for the same. False, with the reason among
// the profile's errors, where they differ (the engine looks at what the device computes, which a
// twin does not) or where the work ran on another device than the twin.
[[nodiscard]] bool holds_on_twin(const CellFacts& facts, Records& counted, Profile& profile);

// Leaves out what a twin makes up.
void leave_out_results(const CellFacts& facts, Profile& profile);

}  // namespace weir::profile
