// A file of profiles, or whatever an engine or a profiler wrote.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gate/adapters/reading.hpp"
#include "gate/base/result.hpp"
#include "gate/observed/observed.hpp"
#include "gate/profile/profile.hpp"
#include "gate/sys/files.hpp"

namespace weir::app {

struct ProfileFile {
  std::vector<profile::Profile> profiles;
  std::optional<observed::Observed> observed;  // in their place
};

// weir.profile/1, weir.profiles/1, weir.observed/1, or text of any format that adapters read. Of
// the model that `observed` names, a path's last part stays. What has more than `most_whole` bytes
// is read piece by piece from the disk, where it begins as a Chrome trace. Fails with Code::data
// where it is none of these, naming the file, or longer and no such trace. `moments`, where given,
// is filled of a Chrome trace.
[[nodiscard]] Result<ProfileFile> read_profile_file(
    const std::string& path, const sys::Files& files,
    std::uint64_t most_whole = adapters::k_most_read, observed::ObservedMoments* moments = nullptr);

}  // namespace weir::app
