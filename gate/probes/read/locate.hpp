// Where the probes lie, and what the environment of an engine must hold so that one is loaded.
//
// The same tree below the folder of the build and below an installation's prefix:
//   lib/weir/probes/   the libraries and their manifests
//   libexec/weir/      weir-devices, weir-replay-ggml, weir-replay-vulkan, weir-compile-vulkan
// WEIR_PROBES names another folder of libraries; the programs then may lie beside them.
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
  // Absolute; "" when it is not there.
  std::string devices_program;
  std::string replay_ggml_program{}, replay_vulkan_program{}, compile_vulkan_program{};
};

// Looks beside `program` (absolute path of the running program), then below the folder above it.
// Code::unavailable with the places looked at.
[[nodiscard]] Result<Places> locate(const sys::Files& files, const std::string& program,
                                    const std::optional<std::string>& probes_override);
// The same for the running program and the variable WEIR_PROBES.
[[nodiscard]] Result<Places> locate(const sys::Files& files);

// The value of a variable in the environment that the engine would have without the probe.
using Lookup = std::function<std::optional<std::string>(std::string_view name)>;

// What to add to that environment so that `probe` ("vulkan", "opencl", …) counts into
// `folder` (absolute). VK_LAYER_PATH, VK_INSTANCE_LAYERS, OPENCL_LAYERS and LD_PRELOAD hold only
// what is to be added: the caller keeps what is there (run::merge_environment). Since a set
// VK_LAYER_PATH hides the loader's own places from it, they are in the value unless the engine's
// environment sets it anyway. Code::unavailable when the probe is not among those installed or not
// on this system, Code::config for an unknown one.
[[nodiscard]] Result<std::map<std::string, std::string>> environment_for(std::string_view probe,
                                                                         const Places& places,
                                                                         const std::string& folder,
                                                                         const sys::Files& files,
                                                                         const Lookup& lookup);

// Name of a probe -> the devices (of weir.yaml) that it sees.
[[nodiscard]] const std::map<std::string, std::vector<std::string>>& probe_devices();
// Without those that this system cannot have: a cell that names others besides is counted by what
// is left.
[[nodiscard]] std::map<std::string, std::vector<std::string>> probe_devices_here();

}  // namespace weir::probes
