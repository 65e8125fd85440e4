// Lines of .gitattributes by which a checkout differs from its commit. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weir::source {

// Returns, in their order, lines with an attribute that can change contents: all but those that
// only diffs, merges, archives and code hosts use.
[[nodiscard]] std::vector<std::string> content_attributes(std::string_view text);

}  // namespace weir::source
