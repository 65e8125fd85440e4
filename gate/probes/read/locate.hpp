// Finds the installed probes, and makes the environment that loads one into an engine.
//
// A build's folder and an installation's prefix contain the same tree:
//   lib/weir/probes/   the libraries and their manifests
//   libexec/weir/      weir-devices, weir-replay-ggml, weir-replay-vulkan, weir-compile-vulkan
// WEIR_PROBES names another folder of libraries; the programs may lie in it too.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "gate/base/result.hpp"
#include "gate/sys/files.hpp"

namespace weir::probes {

struct Places {
  std::string probes;  // absolute
  // Absolute; "" when not installed.
  std::string devices_program;
  std::string replay_ggml_program{}, replay_vulkan_program{}, compile_vulkan_program{};
};

// Searches below the folder of `program` (absolute path of the running program), then below the
// folder above it. Fails with Code::unavailable and the folders that were searched.
[[nodiscard]] Result<Places> locate(const sys::Files& files, const std::string& program,
                                    const std::optional<std::string>& probes_override);
// Locates probes for the running program and the variable WEIR_PROBES.
[[nodiscard]] Result<Places> locate(const sys::Files& files);

// Returns a variable's value in the environment that the engine has without the probe.
using Lookup = std::function<std::optional<std::string>(std::string_view name)>;

// Returns the variables that make `probe` ("vulkan", "opencl", …) count into `folder` (absolute).
//
// Values of VK_LAYER_PATH, VK_INSTANCE_LAYERS, OPENCL_LAYERS and LD_PRELOAD are to be added to the
// lists that are there (run::merge_environment). A set VK_LAYER_PATH hides the loader's standard
// folders, so the value contains them, unless the engine's environment sets the variable itself.
//
// Fails with Code::unavailable if the probe is not installed or not for this system, with
// Code::config for an unknown one.
[[nodiscard]] Result<std::map<std::string, std::string>> environment_for(std::string_view probe,
                                                                         const Places& places,
                                                                         const std::string& folder,
                                                                         const sys::Files& files,
                                                                         const Lookup& lookup);

// The devices (of weir.yaml) that each probe sees, by the probe's name.
[[nodiscard]] const std::map<std::string, std::vector<std::string>>& probe_devices();
// The same without probes that this system cannot have. A cell that names one of them and others is
// counted by the others.
[[nodiscard]] std::map<std::string, std::vector<std::string>> probe_devices_here();

}  // namespace weir::probes
