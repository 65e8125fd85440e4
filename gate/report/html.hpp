// A gate's verdict as one self-contained HTML page.
//
// Nothing is fetched, and no script runs but weir's own, which draws the figures (the content
// security policy says so); everything from outside is escaped. Words and tables say the same where
// scripts are off. Reads on wide and narrow screens, light and dark, and without a mouse. Pure.
#pragma once

#include <string>
#include <string_view>

#include "gate/report/document.hpp"

namespace weir::report {

// `figures`: gate/web's report.html, which is trusted; without it the page has no pictures.
[[nodiscard]] std::string html(const Document& document, std::string_view figures = "");

}  // namespace weir::report
