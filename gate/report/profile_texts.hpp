// Profiles and recordings as text, JSON and traces. Pure; names from outside are made inert.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gate/base/json.hpp"
#include "gate/observed/observed.hpp"
#include "gate/observed/replayed.hpp"
#include "gate/observed/timeline.hpp"
#include "gate/observed/totals.hpp"
#include "gate/profile/profile.hpp"

namespace weir::report {

// Measured profiles as text: what `weir run` shows. Judges nothing. Pure.

struct ProfileStyle {
  int width = 80;
  bool verbose = false;  // also kernels, what servers say of themselves, every metric
};

// One cell: its metrics with value, spread and source, then errors and doubts.
[[nodiscard]] std::string profile_text(const profile::Profile& profile, const ProfileStyle& style);
// Several, one after the other, and one line about all of them.
[[nodiscard]] std::string profiles_text(std::span<const profile::Profile> profiles,
                                        const ProfileStyle& style);

// What an engine or a profiler wrote, as text: what it is of, its times and counts, and a table of
// its ops. Judges nothing. Pure.

// What the table of it is of.
enum class ObservedList {
  ops,      // grouped
  tokens,   // work of one token
  steps,    // tokens or graphs, in order
  buffers,  // command buffers, in order
  splits,
};

struct ObservedStyle {
  std::size_t width = 80;
  std::size_t most_rows = 20;  // of each table
  observed::GroupBy by = observed::GroupBy::kernel;
  ObservedList list = ObservedList::ops;
};

// The words of --by, in the order of a help text, and what each means.
[[nodiscard]] const std::vector<std::string>& observed_groupings();
// Sets `by` and `list`; false where the word is none of them.
[[nodiscard]] bool set_grouping(ObservedStyle& style, std::string_view word);

[[nodiscard]] std::string observed_text(const observed::Observed& observed,
                                        const ObservedStyle& style);
// Its one table alone.
[[nodiscard]] std::string observed_rows(const observed::Observed& observed,
                                        const ObservedStyle& style);

// A timeline as text: what `weir profile` shows. Pure.

struct TimelineStyle {
  int width = 80;
  std::size_t most_rows = 20;                // of each table; what is left out is told
  std::string by = "kernel";                 // one of observed_groupings()
  const observed::Observed* peak = nullptr;  // what ops are compared with
};

// What ran where and how long, most time first; what the CPU waited for; doubts. Names are hostile.
[[nodiscard]] std::string timeline_text(const observed::Timeline& timeline,
                                        const TimelineStyle& style);

// The same for machines: weir.timeline/1. Times are seconds.
[[nodiscard]] Json timeline_json(const observed::Timeline& timeline);

// A timeline as a Chrome trace (JSON, "Trace Event Format"): what Perfetto and chrome://tracing
// open. Pure.
//
// One process for each of the timeline's; in it a track for each thread (graphs, submissions,
// waits, transfers), for each device queue, and for the copies on it. Names are the program's:
// hostile text, escaped by JSON. Times are microseconds from the timeline's start.

[[nodiscard]] std::string chrome_trace(const observed::Timeline& timeline);

// What weir replay found, as text. Pure.

struct ReplayStyle {
  int width = 80;
  std::size_t most_rows = 20;
  bool whole = true;  // all ops of the step were asked for: their sum is held against it
};

[[nodiscard]] std::string replay_text(const profile::Replay& replay,
                                      const profile::ReplayStep& step,
                                      const observed::Replayed& replayed, const ReplayStyle& style);

// What was recorded: "3 kinds of steps; 1 token: 65 ops (12 different), 3.94 ms".
[[nodiscard]] std::string recording_text(const profile::Replay& replay, int width);

// What recorded kernels took when each was run again alone: as text, and as what `weir profile`,
// `weir compare` and a gate read. Judges nothing. Pure.

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
