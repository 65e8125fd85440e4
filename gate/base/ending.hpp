// The end of a failed program's output, with the reason for the failure. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace weir::text {

// A line such as "panic: …", "error: …" or "out of memory", and no frame of a stack.
[[nodiscard]] bool gives_reason(std::string_view line);

// Leaves the last `most` lines and, in front of them, up to three of the others that give a reason
// ("panic: …", "error: …", "out of memory"), with the line that follows where that says the place.
// Returns how many are in front.
std::size_t keep_last_lines(std::vector<std::string>& lines, std::size_t max_lines);

}  // namespace weir::text
