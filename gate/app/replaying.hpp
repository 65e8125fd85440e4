// weir-replay-ggml, which runs an engine's kernels so that weir need not, and which ops it runs
// where.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "gate/base/result.hpp"
#include "gate/observed/replayed.hpp"
#include "gate/sys/files.hpp"
#include "gate/sys/interrupts.hpp"

namespace weir::app {

struct ReplayAsk {
  std::string engine;  // folder of its libraries, or weir-engine itself; absolute
  std::string on;      // as --on says it: "cpu", "vulkan", "vulkan1", k_on_weir_engine; "": where
                       // each op ran
  std::int64_t threads = 1;
  std::int64_t memory_mib = 2048;
  double seconds = 0.2;             // of each op
  std::int64_t constant_bytes = 0;  // weights and caches of the whole step
  bool any_op = false, any_version = false;
  std::string folder;  // for files of the moment; exists
};

inline constexpr const char* k_on_weir_engine = "weir-engine";

// "" where --on may say so, else what it may say.
[[nodiscard]] std::string on_problem(const std::string& on);

// Computes the nodes of `step`, a step of `replay`, and says in the `backend` of each where that
// was. A node that ends the program is left out, with why, and those behind it go on; so are those
// of a device that is not there, where others are. Code::unavailable where nothing can be computed
// at all.
[[nodiscard]] Result<observed::Replayed> replay_step(const profile::Replay& replay,
                                                     profile::ReplayStep& step,
                                                     const ReplayAsk& ask, sys::Files& files,
                                                     const sys::Stop& stop);

}  // namespace weir::app
