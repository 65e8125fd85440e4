// Measured profiles as the text that `weir run` shows. Judges nothing. Pure.
#pragma once

#include <span>
#include <string>

#include "gate/profile/profile.hpp"

namespace weir::report {

struct ProfileStyle {
  int width = 80;
  bool verbose = false;  // also kernels, the servers' own metrics, every metric
};

// One cell: its metrics with value, spread and source, then errors and doubts.
[[nodiscard]] std::string profile_text(const profile::Profile& profile, const ProfileStyle& style);
// Several, one after the other, and one line about all of them.
[[nodiscard]] std::string profiles_text(std::span<const profile::Profile> profiles,
                                        const ProfileStyle& style);

}  // namespace weir::report
