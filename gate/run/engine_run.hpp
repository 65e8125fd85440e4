// One step of a plan: starts the engine, reads what it printed and what the probes counted, and
// makes the record.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "gate/profile/record.hpp"
#include "gate/run/plan.hpp"
#include "gate/run/runner.hpp"

namespace weir::run {

// `folder` (absolute) is the run's: the process gets a place of its own below it, removed after.
// Nothing when a stop was requested before the engine had ended: there is no record then. Fails
// with Code::io when that place cannot be made. Thread-safe.
[[nodiscard]] Result<std::optional<profile::RunRecord>> run_engine(const Effects& effects,
                                                                   const std::string& folder,
                                                                   const PreparedCell& cell,
                                                                   const Step& step,
                                                                   std::int64_t attempt);

// Reads what an engine printed in one step, with the cell's adapter. The Error is the record's.
[[nodiscard]] Result<profile::EngineReport> read_report(const PreparedCell& cell, const Step& step,
                                                        const sys::Finished& finished);

// Keeps the code that probes recorded in `folder`, and compiles it where the cell says by what:
// costs come into `counts`.
void add_code(const Effects& effects, const PreparedCell& cell, const std::string& folder,
              std::vector<profile::ProbeCounts>& counts, std::vector<std::string>& warnings);

}  // namespace weir::run
