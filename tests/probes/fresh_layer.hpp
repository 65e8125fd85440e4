// The Vulkan layer loaded once more, from a file of its own: a process asks for events once.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "gate/probes/read/timeline.hpp"
#include "gate/sys/files.hpp"

#include "tests/probes/support.hpp"

namespace weir::probes {

// Its variables stand in this process's environment until the next one is made.
class FreshLayer {
 public:
  // `timing`: "none" for counts alone, "off" for events without times, "batched", "serialized".
  FreshLayer(const std::string& library, const std::string& timing) {
    std::filesystem::create_directory(counted());
    std::filesystem::copy_file(library, this->library());
    setenv("WEIR_PROBE_DIR", counted().c_str(), 1);
    unsetenv("WEIR_PROBE_EVENTS");
    unsetenv("WEIR_PROBE_TIMING");
    if (timing != "none") setenv("WEIR_PROBE_EVENTS", "256", 1);
    if (timing != "none" && timing != "off") setenv("WEIR_PROBE_TIMING", timing.c_str(), 1);
  }
  [[nodiscard]] std::string library() const { return folder_.path() + "/layer.so"; }
  [[nodiscard]] profile::ProbeCounts counts() const {
    return merge("vulkan", probe_files(counted()));
  }
  [[nodiscard]] Result<observed::Timeline> timeline() const {
    const sys::RealFiles files;
    return collect_timeline(files, counted());
  }

 private:
  [[nodiscard]] std::string counted() const { return folder_.path() + "/counted"; }
  Folder folder_;
};

}  // namespace weir::probes
