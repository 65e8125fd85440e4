// A history as JSON lines (docs/how-to/trends.md): one run, verdict or acknowledgement a line, so
// that a file that was cut off holds complete entries only. The first line is {"schema":
// "weir.history/1"}. Pure: text in, text out; everything read is hostile.
#pragma once

#include <string>
#include <string_view>

#include "gate/history/history.hpp"

namespace weir::history {

inline constexpr std::string_view k_lines_schema = "weir.history/1";
// The first line with its schema, without a newline.
[[nodiscard]] std::string first_line();
[[nodiscard]] std::string line_of(const Run& run);
[[nodiscard]] std::string line_of(const StoredVerdict& verdict);
[[nodiscard]] std::string line_of(const Acknowledgement& acknowledgement);

// Reads lines in turn, each checked (history.hpp). Fails with Code::data naming the line; entries
// before it have been handed out. Lines of other kinds are errors, as are those with more values
// (JsonLimits).
[[nodiscard]] Result<void> read_lines(std::string_view text, const EntryHandlers& take,
                                      std::size_t max_values = SIZE_MAX);

}  // namespace weir::history
