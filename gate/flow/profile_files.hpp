// A file of profiles, or whatever an engine or a profiler wrote.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gate/adapters/format.hpp"
#include "gate/flow/job.hpp"
#include "gate/flow/measure.hpp"
#include "gate/observed/observed.hpp"

namespace weir::flow {
struct ProfileFile {
  std::vector<profile::Profile> profiles;
  std::optional<observed::Observed> observed;  // set if there are no profiles
};

// Reads weir.profile/1, weir.profiles/1, weir.observed/1, or text of any format that adapters read,
// also packed with gzip. Removes the folder from the model's path. Limits count unpacked bytes: a
// file of more than `max_whole_bytes` must be a Chrome trace, which is read in pieces. Code::data
// names a file of another kind. `moments` (if not null) is filled from a Chrome trace.
[[nodiscard]] Result<ProfileFile> read_profile_file(
    const std::string& path, const sys::Files& files,
    std::uint64_t max_whole_bytes = adapters::k_max_read_bytes,
    observed::ObservedMoments* moments = nullptr);

// Reads the output of a program, in any format that adapters read; else Code::data.
[[nodiscard]] Result<observed::Observed> read_printed(const std::string& out,
                                                      const std::string& err);

// Returns true for a run's folder or journal. Other folders and other .jsonl files are no runs.
[[nodiscard]] bool holds_run(const std::string& path, const sys::Files& files);

// Reads profiles from a run, a folder of probe files, or a file. For a run it hides private names
// and puts the run into `measured`.
[[nodiscard]] Result<ProfileFile> read_profiles(const Job& job, const std::string& path,
                                                std::optional<MeasuredRun>& measured);

// Pairs the cells of equal names; if both sides have one cell each, pairs these two. Pointers into
// `a` and `b`.
using CellPairs = std::vector<std::pair<const profile::Profile*, const profile::Profile*>>;
[[nodiscard]] CellPairs cell_pairs(const ProfileFile& a, const ProfileFile& b, const Job& job);

}  // namespace weir::flow
