// What the ggml probe told of graphs' nodes under WEIR_PROBE_REPLAY -> a recording for weir replay.
#pragma once

#include <string>

#include "gate/base/result.hpp"
#include "gate/probes/read/timeline.hpp"
#include "gate/profile/replay.hpp"
#include "gate/sys/files.hpp"

namespace weir::probes {

// Of one process. Pure; records that make no sense are left out and told as a warning.
[[nodiscard]] profile::Replay make_replay(const ProbeRecord& record);

// Of all probe files in `folder`: the process that computed longest; others are told as a warning.
// Code::unavailable where none computed a graph with ggml.
[[nodiscard]] Result<profile::Replay> collect_replay(const sys::Files& files,
                                                     const std::string& folder);

}  // namespace weir::probes
