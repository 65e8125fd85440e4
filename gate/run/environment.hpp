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
[[nodiscard]] std::vector<std::string> handed_on(const PreparedCell& cell);

// What lets an engine see `twin` and no other device of its API, its memory read as bytes of
// `fill`.
[[nodiscard]] config::Environment twin_environment(const DeviceTwin& twin, std::int64_t fill);

// What to set on top of `inherited`. Lists of folders get the new entries in front, so that what
// the config names is found first; lists of layers and preloads behind, so that a probe stands
// next to the driver and counts what reaches it. An entry that is there already is not repeated.
[[nodiscard]] sys::EnvironmentList merge_environment(const sys::EnvironmentList& inherited,
                                                     const config::Environment& config,
                                                     const config::Environment& probes);

}  // namespace weir::run
