// The environment of an engine: what weir inherited, and what config and probes put on top. Pure.
#pragma once

#include <vector>

#include "gate/config/settings.hpp"
#include "gate/run/prepare.hpp"
#include "gate/sys/process.hpp"

namespace weir::run {

// Names by which probes and marks are switched on. An engine gets those that weir sets for it and
// none of weir's own surroundings: timed while it marks its work, it would be another engine.
[[nodiscard]] std::vector<std::string> probes_own(const sys::EnvironmentList& inherited);

// Variables of weir's own environment that the cell's engine gets by name.
[[nodiscard]] std::vector<std::string> passed_variables(const PreparedCell& cell);

// Variables that show an engine `twin` as the only device of its API. Its memory reads as bytes of
// `fill`.
[[nodiscard]] config::Environment twin_environment(const DeviceTwin& twin, std::int64_t fill);

// Variables to set on top of `inherited`. Lists of folders get new entries in front, so that the
// config's are found first. Lists of layers and preloads get them at the end, so that a probe is
// next to the driver and counts what reaches it; preloads by a bare name come last. Entries are not
// repeated.
[[nodiscard]] sys::EnvironmentList merge_environment(const sys::EnvironmentList& inherited,
                                                     const config::Environment& config,
                                                     const config::Environment& probes);

}  // namespace weir::run
