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
  std::optional<observed::Observed> observed;  // in their place
};

// weir.profile/1, weir.profiles/1, weir.observed/1, or text of any format that adapters read; also
// packed with gzip, whose unpacked bytes are then those that limits count. Of
// the model that `observed` names, a path's last part stays. What has more than `most_whole` bytes
// is read piece by piece from the disk, where it begins as a Chrome trace. Fails with Code::data
// where it is none of these, naming the file, or longer and no such trace. `moments`, where given,
// is filled of a Chrome trace.
[[nodiscard]] Result<ProfileFile> read_profile_file(
    const std::string& path, const sys::Files& files,
    std::uint64_t most_whole = adapters::k_most_read, observed::ObservedMoments* moments = nullptr);

// What a program printed, of any format that adapters read. Fails with Code::data where it is none.
[[nodiscard]] Result<observed::Observed> read_printed(const std::string& out,
                                                      const std::string& err);

// Two things that hold profiles, beside each other: runs, files of profiles, folders of a profile's
// probe files, and what engines and profilers wrote.
// A run's folder or its journal. Other folders, and other files that end in .jsonl, are none.
[[nodiscard]] bool holds_run(const std::string& path, const sys::Files& files);

// Of a run also its profiles with private names hidden, and the run itself into `measured`. A
// folder of probe files is what was observed.
[[nodiscard]] Result<ProfileFile> read_profiles(const Job& job, const std::string& path,
                                                std::optional<Measured>& measured);

// Cells of one name; where both sides have one cell each, these two whatever their names. Pointers
// into `a` and `b`.
using CellPairs = std::vector<std::pair<const profile::Profile*, const profile::Profile*>>;
[[nodiscard]] CellPairs cell_pairs(const ProfileFile& a, const ProfileFile& b, const Job& job);

}  // namespace weir::flow
