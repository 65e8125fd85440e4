// The resources of the machine that weir itself measures of each timed process. Pure.
#pragma once

#include <string_view>

namespace weir::profile {

// Returns true for the name of such a metric ("minor_faults"). An engine may not print one.
[[nodiscard]] bool is_measured_by_weir(std::string_view metric);

}  // namespace weir::profile
