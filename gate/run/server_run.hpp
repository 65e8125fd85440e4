// One step of a cell whose engine serves: starts the server, waits until it is up, sends the
// prompts, ends it, and makes the record. Or asks one that runs already.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "gate/profile/record.hpp"
#include "gate/run/plan.hpp"
#include "gate/run/runner.hpp"

namespace weir::run {

// As run_engine(), which calls it. The record's times are figures of this load alone; its counts
// are those between two readings of the probes, after the warm-up and after the last answer, so
// that start, model and warm-up are not in them. A load with any failed request measures nothing.
// Nothing of the server is left afterwards, however it ended.
[[nodiscard]] Result<std::optional<profile::RunRecord>> run_server(const Effects& effects,
                                                                   const std::string& folder,
                                                                   const PreparedCell& cell,
                                                                   const Step& step,
                                                                   std::int64_t attempt);

}  // namespace weir::run
