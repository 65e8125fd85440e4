// A gate's verdict as OpenMetrics text 1.0, for systems that compare numbers of a branch with those
// of another (GitLab: artifacts:reports:metrics) or collect them.
//
// A gauge for each metric, named "weir_" and its name (metrics of the configuration's own:
// "weir_custom_…"), with the value that was measured, in base units, labelled with the cell; a
// weir_cell_verdict for each cell and a weir_exit_code. The first line says what was not judged.
// GitLab cuts a line at '#' and splits it as a shell does: labels hold no '#', and each is quoted.
// Pure.
#pragma once

#include <string>

#include "gate/report/document.hpp"

namespace weir::report {

[[nodiscard]] std::string open_metrics(const Document& document);

}  // namespace weir::report
