// A gate's verdict as one self-contained HTML page.
//
// Nothing is fetched and no script runs (its content security policy says so); everything from
// outside is escaped. Reads on wide and narrow screens, light and dark, and without a mouse. Pure.
#pragma once

#include <string>
#include <string_view>

#include "gate/verdict/verdict.hpp"

namespace weir::report {

[[nodiscard]] std::string html(const verdict::GateVerdict& gate);

// Hostile text inside an element or a quoted attribute.
[[nodiscard]] std::string html_text(std::string_view text);

}  // namespace weir::report
