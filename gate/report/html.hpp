// A gate's verdict as one self-contained HTML page.
//
// Nothing is fetched and no script runs (its content security policy says so); everything from
// outside is escaped. Reads on wide and narrow screens, light and dark, and without a mouse. Pure.
#pragma once

#include <string>

#include "gate/report/document.hpp"

namespace weir::report {

[[nodiscard]] std::string html(const Document& document);

}  // namespace weir::report
