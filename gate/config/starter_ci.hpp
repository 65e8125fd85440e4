// What `weir init --ci` writes: a workflow for GitHub, a job for GitLab. Pure.
#pragma once

#include <string>

namespace weir::config {

struct StarterCi {
  std::string version;       // of weir
  std::string folder = ".";  // where weir.yaml lies, from the repository's root
  std::string file;          // its name there
  bool vulkan = false;       // a cell asks for Vulkan: the runner needs a loader and a device
  bool builds = false;       // engines can be built: the base program can be had
  double minutes = 30;       // after which the job is ended
};

// Both measure counts alone, and end red until the step that builds the engine has been filled in.
[[nodiscard]] std::string starter_github(const StarterCi& found);
[[nodiscard]] std::string starter_gitlab(const StarterCi& found);

}  // namespace weir::config
