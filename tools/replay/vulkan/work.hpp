// One recorded work on a device: made, run, timed, taken away.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gate/probes/read/read_kernels.hpp"

#include "tools/replay/vulkan/vulkan.hpp"

namespace weir::replay {

struct Wishes {
  std::uint32_t runs = 30;            // timed ones, at most k_most_runs
  double seconds = 1;                 // for the runs of one work; fewer runs where it takes longer
  std::uint64_t memory = 2ULL << 30;  // bytes that one work may take
};

struct Outcome {
  std::vector<double> seconds;  // of each run
  std::string left_out;         // why there are none
  bool lost = false;            // the device can not be used any more
};

// Buffers hold zeros in every byte before the first run, what the kernel wrote itself after it. One
// run comes first that is not in the answer.
[[nodiscard]] Outcome replay(const Device& device, const probes::RecordedKernels& recorded,
                             const probes::RecordedWork& work, const Wishes& wishes);

}  // namespace weir::replay
