// `weir-engine --replay FILE`: the ops of a recorded step on this engine's CPU kernels, for
// `weir replay --on weir-engine` (docs/how-to/replay.md).
#pragma once

namespace weir::engine {

// All of main().
[[nodiscard]] int run_replay(int argc, char** argv);

}  // namespace weir::engine
