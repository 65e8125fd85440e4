// Functions that cost a step much more than a call. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace weir::profile {

// The counts of what Python does: in the main thread, and in all.
inline constexpr std::array k_host_counts{"python_calls", "c_calls", "python_lines", "host_calls"};

// Returns how telling the function is among those of Python and its libraries that wait, sleep,
// lock, log, copy deeply or read a value back from a device: 0 is the most telling. Nothing for
// others. By module and qualified name: "time.sleep".
[[nodiscard]] std::optional<std::size_t> rank_costly_call(std::string_view function);

// Returns true if it waits for another thread: how often depends on how they meet.
[[nodiscard]] bool waits_for_threads(std::string_view function);

}  // namespace weir::profile
