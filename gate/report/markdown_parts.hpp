// Parts of a verdict in Markdown: the first line, what to do next, the foot. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "gate/report/formats.hpp"
#include "gate/verdict/verdict.hpp"

namespace weir::report {

// A link to the run, or `text` alone where there is no plain https address.
[[nodiscard]] std::string markdown_run_link(const MarkdownStyle& style, std::string_view text);

// "### ❌ weir: 1 of 8 cells broke a limit · …", shortened to about `most` bytes.
[[nodiscard]] std::string markdown_heading(const verdict::GateVerdict& gate,
                                           const MarkdownStyle& style, std::size_t most);
// Commands, one a line; "" where there are none or they take more than `most` bytes.
[[nodiscard]] std::string markdown_next(const verdict::GateVerdict& gate,
                                        const MarkdownStyle& style, std::size_t most);
// Commits, the base and where it came from, devices, the machine; at most `most` bytes, which
// shall be 300 or more.
[[nodiscard]] std::string markdown_foot(const verdict::GateVerdict& gate,
                                        const MarkdownStyle& style, std::size_t most);

}  // namespace weir::report
