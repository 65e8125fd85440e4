// Hostile text made inert: it makes no link, mention, image or markup. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::report {

// A character and its replacement.
using Replacement = std::pair<char, std::string_view>;
[[nodiscard]] std::string replace_each(std::string_view text, std::span<const Replacement> all);

// Hostile text as one line of inert Markdown prose.
[[nodiscard]] std::string markdown_text(std::string_view text, std::size_t max_columns = 400);
// Hostile text as code within a line, also within a table.
[[nodiscard]] std::string markdown_code(std::string_view text, std::size_t max_columns = 300);
// Lines of hostile text, printable already, as a block of code that they cannot close.
[[nodiscard]] std::string markdown_fence(const std::vector<std::string>& lines);

// Hostile text inside an element or quoted attribute: what XML cannot hold is dropped.
[[nodiscard]] std::string xml_text(std::string_view text);

// JSON that can stand in a page's script element: nothing in it begins a tag, comment or entity.
[[nodiscard]] std::string script_json(std::string_view json);

}  // namespace weir::report
