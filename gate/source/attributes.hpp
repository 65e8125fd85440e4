// Lines of .gitattributes by which a checkout differs from its commit. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::source {

// Returns, in their order, lines with an attribute that can change contents: all but those that
// only diffs, merges, archives and code hosts use.
[[nodiscard]] std::vector<std::string> content_attributes(std::string_view text);

// Returns false if no file of these paths can match the pattern of a line of content_attributes().
// `folder`: that of the .gitattributes, in the same tree; "" is the top. A line that defines a
// macro, or is in quotes, may concern any file.
[[nodiscard]] bool may_concern(std::string_view line, const std::string& folder,
                               std::span<const std::string> paths);

}  // namespace weir::source
