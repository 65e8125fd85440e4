// A verdict as the parts of a report, in the order in which they are read. Pure.
#pragma once

#include "gate/report/document.hpp"
#include "gate/report/part.hpp"

namespace weir::report {

// Refers to the document's verdict. The headline, facts and commands are each format's own.
[[nodiscard]] Parts compose(const Document& document);

}  // namespace weir::report
