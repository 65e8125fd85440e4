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
  std::string what;                               // a recording, or a folder of the probe's files
  std::string record;                             // the file or folder to record into
  std::vector<std::string> trailing_arguments{};  // a program after "--"
  std::optional<double> seconds;                  // for each op (0.2) or kernel (1)
  std::int64_t memory_mib = 2048;                 // for each op or kernel
  std::size_t top = 20;
  double timeout = 600;              // seconds, for the recorded program
  std::vector<std::string> given{};  // named options that only some kinds of work take

  std::vector<std::string> ops;  // patterns; empty: all ops
  std::string engine;
  std::string on;            // "": the place where each op ran
  std::int64_t threads = 0;  // 0: as recorded
  std::int64_t step = 0;     // from 1; 0: that of decoding
  bool any_op = false, any_version = false;
  bool peak = false;  // large matrix multiplications in place of the step's ops

  bool kernels = false;  // work on kernels; record into the folder `record`
  std::string device;    // part of a name, or a number; "": the first
  std::int64_t runs = 30;
  std::optional<std::int64_t> tokens;
  std::int64_t file_mib = 256;  // limit for the recording of each process
};

// Records or replays, ops or kernels, depending on the options and the files that they name.
[[nodiscard]] Result<Answer> replay(const Job& job, const ReplayOptions& options);
// Replays recorded kernels. A kernel that ends the program is left out with the reason, and the
// next ones run. Code::unavailable if nothing can run at all, Code::data for an empty recording.
[[nodiscard]] Result<Answer> replay_kernels(const Job& job, const ReplayOptions& options);
// Records the kernels of a program with the probe. The recording stays however the program ends.
[[nodiscard]] Result<Answer> record_kernels(const Job& job, const ReplayOptions& options);

}  // namespace weir::flow
