// A gate's verdict as JUnit XML, for CI systems that show test results.
//
// A test suite for each engine/model/backend, a test case for each judged metric of a prompt
// ("decode: dispatches/token") and one for each cell as a whole. A broken limit is a failure, what
// could not be measured an error; undecided and new are skipped (undecided is a failure where the
// gate fails by it). Always well-formed XML 1.0 in UTF-8. Pure.
#pragma once

#include <string>

#include "gate/report/document.hpp"

namespace weir::report {

[[nodiscard]] std::string junit(const Document& document);

}  // namespace weir::report
