// weir replay: the ops of an engine's steps computed alone, at their exact shapes, and the Vulkan
// kernels that the probe recorded, each run again alone. Judges nothing.
//
// Engines' kernels and drivers of GPUs are loaded by programs of their own (weir-replay-ggml,
// weir-replay-vulkan), so that weir need not.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gate/flow/job.hpp"

namespace weir::flow {

struct ReplayOptions {
  std::string what;                  // a recording, or a folder of the probe's files
  std::string record;                // where a recording goes
  std::vector<std::string> words{};  // after "--": a program
  std::optional<double> seconds;     // of each op (0.2) or kernel (1)
  std::int64_t memory_mib = 2048;    // of each
  std::size_t top = 20;
  double timeout = 600;              // seconds, of the recorded program
  std::vector<std::string> given{};  // of the options that are not for all of it, the named ones

  std::vector<std::string> ops;  // of which alone
  std::string engine;
  std::string on;            // "": where each op ran
  std::int64_t threads = 0;  // 0: as recorded
  std::int64_t step = 0;     // from 1; 0: that of decoding
  bool any_op = false, any_version = false;
  bool peak = false;  // products of large matrices in place of the step's ops

  bool kernels = false;  // record these, into the folder `record`
  std::string device;    // part of a name, or a number; "": the first
  std::int64_t runs = 30;
  std::optional<std::int64_t> tokens;
  std::int64_t file_mib = 256;  // that the recording of a process may take
};

// What the options are for is found out from what they name.
[[nodiscard]] Result<Answer> replay(const Job& job, const ReplayOptions& options);
// A kernel that ends the program is left out, with why, and those behind it go on.
// Code::unavailable where nothing can be run at all, Code::data where nothing was recorded.
[[nodiscard]] Result<Answer> replay_kernels(const Job& job, const ReplayOptions& options);
// Runs the program with the probe. What it wrote lies in the folder however it ended.
[[nodiscard]] Result<Answer> record_kernels(const Job& job, const ReplayOptions& options);

}  // namespace weir::flow
