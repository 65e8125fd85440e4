// Kernels that the Vulkan probe recorded, each run again alone: by weir-replay-vulkan, which loads
// the drivers of GPUs so that weir need not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/report/profile_texts.hpp"
#include "gate/sys/files.hpp"
#include "gate/sys/interrupts.hpp"

namespace weir::app {

struct ReplayKernelsAsk {
  std::string folder;  // of files as the probe writes them
  std::string device;  // part of a name, or a number; "": the first
  std::int64_t runs = 30;
  double seconds = 1;  // of each kernel
  std::int64_t memory_mib = 2048;
  std::optional<std::int64_t> tokens;
};

// A kernel that ends the program is left out, with why, and those behind it go on.
// Code::unavailable where nothing can be run at all, Code::data where nothing was recorded.
[[nodiscard]] Result<report::ReplayedKernels> replay_kernels(const ReplayKernelsAsk& ask,
                                                             const sys::Files& files,
                                                             const sys::Stop& stop);

struct RecordKernelsAsk {
  std::vector<std::string> command;  // a program and its arguments
  std::string folder;                // made where it is not there
  double timeout_seconds = 600;
  std::int64_t file_mib = 256;  // that the recording of a process may take
};

// Runs the program with the probe. What it wrote lies in the folder however it ended; the answer is
// what there is to say of that, "" when it exited with 0.
[[nodiscard]] Result<std::string> record_kernels(const RecordKernelsAsk& ask, sys::Files& files,
                                                 const sys::Stop& stop);

}  // namespace weir::app
