// What writing and reading of weir.baseline/1 share. Used by this module alone.
#pragma once

#include <cstddef>
#include <string_view>

namespace weir::baseline {

inline constexpr std::string_view k_schema = "weir.baseline/1";
// A file of 20 sessions of 20 metrics is some 100 KiB; more than this is not a baseline.
inline constexpr std::size_t k_largest_file = std::size_t{16} << 20;
inline constexpr std::size_t k_longest_class = 128;

// Fit to be a file name: [A-Za-z0-9_][A-Za-z0-9._-]*, at most k_longest_class characters.
[[nodiscard]] bool valid_class(std::string_view name);

}  // namespace weir::baseline
