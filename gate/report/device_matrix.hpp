// A matrix of what an engine does on several devices: counts and kernels, as text and as a page.
// Pure.
//
// Devices that do the same are one column. Names come from files and engines: hostile text.
#pragma once

#include <span>
#include <string>

#include "gate/profile/profile.hpp"

namespace weir::report {

// `profiles`: cells whose backend is the device. Those of one engine, model and prompt make one
// table; cells with errors are listed below it. `all` also shows rows that are the same everywhere.
[[nodiscard]] std::string device_matrix_text(std::span<const profile::Profile> profiles, bool all,
                                             int width);
// The same, all rows, as one self-contained page without scripts.
[[nodiscard]] std::string device_matrix_html(std::span<const profile::Profile> profiles);

}  // namespace weir::report
