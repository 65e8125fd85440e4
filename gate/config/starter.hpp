// What `weir init` writes: weir.yaml (presets, times at `report`, counts at `gate`), and for --ci
// a workflow for GitHub or a job for GitLab. Pure.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace weir::config {

struct StarterEngine {
  std::string name;     // a cell name is made of it: "llama.cpp"
  std::string program;  // as it shall stand in the config
  std::string preset;   // "llama-bench"; others are left out
};
struct StarterModel {
  std::string name;     // made a valid name where it is none
  std::string path;     // as it shall stand in the config
  bool folder = false;  // with config.json and safetensors; else a GGUF file
};
struct StarterInput {
  std::vector<StarterEngine> engines;  // none: an example to fill in
  std::vector<StarterModel> models;    // none: an example to fill in
  bool has_vulkan = false;             // a Vulkan device is here
  bool has_probes = true;              // weir's probes lie where this program finds them
};

// Text that parse_settings reads and expand() makes at least one cell of, for any input.
[[nodiscard]] std::string starter_config(const StarterInput& found);

// `wanted` as a name of an engine or model: letters, digits, ".", "_" and "-", a letter or digit
// first, not yet in `taken`. `fallback` where nothing of it is left.
[[nodiscard]] std::string fresh_name(std::string_view wanted, std::string_view fallback,
                                     std::set<std::string>& taken);

// `text` as a scalar: double quotes take any, paths may hold blanks, quotes and what YAML means
// something by.
[[nodiscard]] std::string yaml_quoted(std::string_view text);

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
