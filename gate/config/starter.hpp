// The files that `weir init` writes: weir.yaml (presets, times at `report`, counts at `gate`), and
// for --ci a workflow for GitHub or a job for GitLab. Pure.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace weir::config {

struct StarterEngine {
  std::string name;     // a cell name is made of it: "llama.cpp"
  std::string program;  // as it shall stand in the config; "": the preset's, which runs a script
  std::string preset;   // "llama-bench"; others are left out
  bool is_installed = false;  // in a virtual environment: no build of the repository makes it
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
  std::string build{};  // command that seems to build programs here, as a YAML list; "": unknown
  // The only backend: a simulated GPU by its name, and the device that it stands for. "": none.
  std::string twin_name{}, imitated_device{};
};

// Text that parse_settings reads and expand() makes at least one cell of, for any input.
[[nodiscard]] std::string starter_config(const StarterInput& input);

// Returns `wanted` as a name of an engine or model: letters, digits, ".", "_" and "-", a letter or
// digit first. `fallback` if nothing of it remains. The name is unique and added to `used_names`.
[[nodiscard]] std::string fresh_name(std::string_view wanted, std::string_view fallback,
                                     std::set<std::string>& used_names);

struct StarterCi {
  std::string version;       // weir's
  std::string folder = ".";  // folder of weir.yaml, from the repository's root
  std::string file;          // its name there
  bool vulkan = false;       // a cell asks for Vulkan: the runner needs a loader and a device
  double minutes = 30;       // after which the job is ended
  // In the folder of weir.yaml, as words of a shell: the commands that build the engines.
  std::vector<std::string> builds{};
  bool has_counts = true;  // something counts an engine; else times alone are compared
  bool has_base = true;    // programs lie in the repository: a base has its own
  // Programs and models that are neither in git nor made by the commands above. Only their owner
  // knows how to get them.
  std::vector<std::string> programs{}, models{};
  std::vector<std::string>
      generated_models{};  // models for `weir model make`: its arguments, a line each
  bool forks = false;      // GitHub: another workflow posts, as a fork's token may not
  bool queue = false;      // GitHub: merge groups are judged as well
  bool comments = false;   // GitHub: comments waive changes, on the branch of baselines
};

// Returns true for a program that is looked up in PATH, as an interpreter is.
[[nodiscard]] bool is_looked_up(const std::string& program);

// Both compare counts, or times where there are none, with a base if there is one. They fail until
// somebody fills in how each of `programs` is built and how each of `models` is fetched.
[[nodiscard]] std::string starter_github(const StarterCi& ci);
// With ci.forks, the workflow that posts.
[[nodiscard]] std::string starter_github_post(const StarterCi& ci);
// The workflow that answers comments.
[[nodiscard]] std::string starter_github_waive();
// The workflow that measures every night, on a runner of one's own with a GPU.
[[nodiscard]] std::string starter_github_nightly(const StarterCi& ci);
[[nodiscard]] std::string starter_gitlab(const StarterCi& ci);

}  // namespace weir::config
