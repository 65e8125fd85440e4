// What weir.yaml is checked against besides itself, on this machine and day.
#pragma once

#include <cstdint>
#include <string>

#include "gate/config/settings.hpp"
#include "gate/sys/files.hpp"

namespace weir::app {

inline constexpr std::uint64_t k_largest_config = std::uint64_t{1} << 20;

[[nodiscard]] config::Known known_now(const sys::Files& files, const std::string& config_file);

}  // namespace weir::app
