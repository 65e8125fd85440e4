// What recorded kernels took when each was run again alone: as text, and as what `weir profile`,
// `weir compare` and a gate read. Judges nothing. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gate/observed/observed.hpp"
#include "gate/report/replay_text.hpp"

namespace weir::report {

// One kernel at one size, with the same push constants and the same bytes bound.
struct ReplayedKernel {
  std::string name;
  std::array<std::uint32_t, 3> groups{};
  std::uint64_t count = 0;      // how often the program dispatched it
  std::uint64_t bytes = 0;      // of all buffers bound
  std::vector<double> seconds;  // of each run alone
  std::string left_out;         // why there are none
};

struct ReplayedKernels {
  std::string device, driver;  // that it ran on
  std::vector<ReplayedKernel> kernels;
  std::map<std::string, std::uint64_t> left_out;  // why the recording lacks dispatches -> how many
  std::optional<std::int64_t> tokens;             // that the program generated, where told
  std::vector<std::string> warnings;
};

// Of one kernel's runs; nothing without any.
struct RunTimes {
  double median = 0, least = 0, most = 0;
  double deviation = 0;  // median distance from the median
};
[[nodiscard]] std::optional<RunTimes> times_of(const ReplayedKernel& kernel);

// Dispatches in all, and what became of them.
struct ReplayedSums {
  std::uint64_t recorded = 0, replayed = 0;  // dispatches
  double seconds = 0;  // of those replayed: each its median as often as it was dispatched
};
[[nodiscard]] ReplayedSums sums_of(const ReplayedKernels& all);

// Most time first. Names are hostile.
[[nodiscard]] std::string replayed_text(const ReplayedKernels& all, const ReplayStyle& style);

// Kernels with their times as often as they were dispatched, of one size a row; as cases the times
// of each run. With `tokens` they are work of decoding, so that a gate may limit `kernel:NAME` a
// token.
[[nodiscard]] observed::Observed observed_of(const ReplayedKernels& all);

}  // namespace weir::report
