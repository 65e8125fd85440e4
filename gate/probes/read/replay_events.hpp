// Builds a recording for `weir replay` from the events that the ggml probe writes under
// WEIR_PROBE_REPLAY.
#pragma once

#include <string>

#include "gate/base/result.hpp"
#include "gate/probes/read/timeline.hpp"
#include "gate/profile/replay.hpp"
#include "gate/sys/files.hpp"

namespace weir::probes {

// The replay of one process. Pure. Records that make no sense are left out, with a warning.
[[nodiscard]] profile::Replay make_replay(const ProbeRecord& record);

// The replay of the process in `folder` that computed longest, with a warning if there were others.
// Fails with Code::unavailable where none computed a graph with ggml.
[[nodiscard]] Result<profile::Replay> collect_replay(const sys::Files& files,
                                                     const std::string& folder);

}  // namespace weir::probes
