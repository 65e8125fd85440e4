#include "gate/probes/read/locate.hpp"

#include <vector>

#include "gate/base/text.hpp"
#include "gate/probes/format.h"
#include "gate/sys/paths.hpp"
#include "gate/sys/process.hpp"
#include "gate/sys/system.hpp"

namespace weir::probes {
namespace {

constexpr const char* k_vulkan_layer = "VK_LAYER_WEIR_probe";
constexpr const char* k_vulkan_manifest = "VK_LAYER_WEIR_probe.json";
constexpr const char* k_ggml_library = "libweir_ggml.so";
constexpr const char* k_opencl_library = "libweir_opencl.so";
constexpr const char* k_hip_library = "libweir_hip.so";
constexpr const char* k_preload = sys::k_on_macos ? "DYLD_INSERT_LIBRARIES" : "LD_PRELOAD";
constexpr const char* k_metal_library = "libweir_metal.dylib";
constexpr const char* k_cuda_library = "libweir_cuda.so";
constexpr const char* k_devices_program = "weir-devices";
constexpr const char* k_replay_ggml_program = "weir-replay-ggml";
constexpr const char* k_replay_vulkan_program = "weir-replay-vulkan";

void add_folders(const std::string& list, std::string_view below, std::vector<std::string>* out) {
  for (const std::string& folder : text::split(list, ':')) {
    if (!folder.empty()) out->push_back(sys::join_path(folder, below));
  }
}

// The loader's own places for explicit layers, in its order (Vulkan-Loader, "Layer Discovery").
std::vector<std::string> standard_layer_folders(const Lookup& lookup) {
  constexpr std::string_view k_below = "vulkan/explicit_layer.d";
  const auto value = [&](const char* name, const std::string& otherwise) {
    const auto found = lookup(name);
    return found && !found->empty() ? *found : otherwise;
  };
  const std::string home = value("HOME", "");
  const auto in_home = [&](const char* below) {
    return home.empty() ? std::string() : sys::join_path(home, below);
  };
  std::vector<std::string> out;
  add_folders(value("XDG_CONFIG_HOME", in_home(".config")), k_below, &out);
  add_folders(value("XDG_CONFIG_DIRS", "/etc/xdg"), k_below, &out);
  add_folders("/usr/local/etc:/etc", k_below, &out);
  add_folders(value("XDG_DATA_HOME", in_home(".local/share")), k_below, &out);
  add_folders(value("XDG_DATA_DIRS", "/usr/local/share:/usr/share"), k_below, &out);
  return out;
}

using Variables = std::map<std::string, std::string>;

Result<Variables> environment_for_vulkan(const Places& places, const std::string& folder,
                                         const sys::Files& files, const Lookup& lookup) {
  const std::string manifest = sys::join_path(places.probes, k_vulkan_manifest);
  if (files.kind(manifest) != sys::Kind::file) {
    return fail(Code::unavailable, "the vulkan probe is not installed: no {}", manifest);
  }
  if (places.probes.find(':') != std::string::npos) {
    return fail(Code::unavailable,
                "the Vulkan loader cannot find probes in {}: its lists are separated by ':'",
                places.probes);
  }
  std::string path = places.probes;
  const auto set = lookup("VK_LAYER_PATH");
  if (!set || set->empty()) {
    if (const auto added = lookup("VK_ADD_LAYER_PATH"); added && !added->empty()) {
      path += ":" + *added;  // ignored by the loader once VK_LAYER_PATH is set
    }
    for (const std::string& standard : standard_layer_folders(lookup)) path += ":" + standard;
  }
  return std::map<std::string, std::string>{
      {WEIR_PROBE_DIR_VARIABLE, folder},
      {"VK_LAYER_PATH", path},
      {"VK_INSTANCE_LAYERS", k_vulkan_layer},
  };
}

Result<Variables> environment_to_preload(std::string_view probe, const char* name,
                                         const Places& places, const std::string& folder,
                                         const sys::Files& files) {
  const std::string library = sys::join_path(places.probes, name);
  if (files.kind(library) != sys::Kind::file) {
    return fail(Code::unavailable, "the {} probe is not installed: no {}", probe, library);
  }
  if (library.find_first_of(": ") != std::string::npos) {
    return fail(Code::unavailable,
                "{} cannot be preloaded: such lists are separated by ':' and blanks", library);
  }
  return Variables{{WEIR_PROBE_DIR_VARIABLE, folder}, {k_preload, library}};
}

Result<Variables> environment_for_opencl(const Places& places, const std::string& folder,
                                         const sys::Files& files) {
  const std::string library = sys::join_path(places.probes, k_opencl_library);
  if (files.kind(library) != sys::Kind::file) {
    return fail(Code::unavailable, "the opencl probe is not installed: no {}", library);
  }
  if (library.find(':') != std::string::npos) {
    return fail(Code::unavailable,
                "the OpenCL loader cannot find {}: its lists are separated by ':'", library);
  }
  return Variables{{WEIR_PROBE_DIR_VARIABLE, folder}, {"OPENCL_LAYERS", library}};
}

Result<Variables> environment_for_cuda(const Places& places, const std::string& folder,
                                       const sys::Files& files, const Lookup& lookup) {
  const std::string library = sys::join_path(places.probes, k_cuda_library);
  if (files.kind(library) != sys::Kind::file) {
    return fail(Code::unavailable,
                "the cuda probe is not installed: no {}\n"
                "  It is built where the CUDA toolkit (12.3 or later) with CUPTI is.",
                library);
  }
  // The driver takes one library only.
  const auto set = lookup("CUDA_INJECTION64_PATH");
  if (set && !set->empty() && *set != library) {
    return fail(Code::unavailable, "CUDA_INJECTION64_PATH is taken by {}: unset it to count",
                text::printable(*set));
  }
  return Variables{{WEIR_PROBE_DIR_VARIABLE, folder}, {"CUDA_INJECTION64_PATH", library}};
}

// With the programs that lie in one of these folders, the first that has one.
Places places_in(const sys::Files& files, const std::string& probes,
                 const std::vector<std::string>& folders) {
  const auto find = [&](const char* name) -> std::string {
    for (const std::string& folder : folders) {
      std::string candidate = sys::join_path(folder, name);
      if (files.executable(candidate)) return candidate;
    }
    return "";
  };
  return {probes, find(k_devices_program), find(k_replay_ggml_program),
          find(k_replay_vulkan_program)};
}

}  // namespace

Result<Places> locate(const sys::Files& files, const std::string& program,
                      const std::optional<std::string>& probes_override) {
  if (probes_override && !probes_override->empty()) {
    const std::string folder = sys::absolute(*probes_override);
    if (files.kind(folder) != sys::Kind::folder) {
      return fail(Code::unavailable, "WEIR_PROBES: no such folder: {}", folder);
    }
    return places_in(files, folder,
                     {folder, sys::absolute(sys::join_path(folder, "../../../libexec/weir"))});
  }
  const std::string beside = sys::folder_of(program);
  std::vector<std::string> tried;
  for (const std::string& root : {beside, sys::absolute(sys::join_path(beside, ".."))}) {
    const std::string folder = sys::join_path(root, "lib/weir/probes");
    tried.push_back(folder);
    if (files.kind(folder) != sys::Kind::folder) continue;
    return places_in(files, folder, {sys::join_path(root, "libexec/weir")});
  }
  return fail(Code::unavailable, "no probes found (looked in {}); set WEIR_PROBES to their folder",
              text::join(tried));
}

Result<Places> locate(const sys::Files& files) {
  return locate(files, sys::own_program(), sys::environment_value("WEIR_PROBES"));
}

Result<std::map<std::string, std::string>> environment_for(std::string_view probe,
                                                           const Places& places,
                                                           const std::string& folder,
                                                           const sys::Files& files,
                                                           const Lookup& lookup) {
  if (sys::k_on_macos && probe != "metal" && probe != "instrument" &&
      probe_devices().count(std::string(probe)) != 0) {
    return fail(Code::unavailable, "the {} probe is not on macOS", probe);
  }
  if (probe == "vulkan") return environment_for_vulkan(places, folder, files, lookup);
  if (probe == "ggml") {
    return environment_to_preload(probe, k_ggml_library, places, folder, files);
  }
  if (probe == "cuda") return environment_for_cuda(places, folder, files, lookup);
  if (probe == "hip") return environment_to_preload(probe, k_hip_library, places, folder, files);
  if (probe == "opencl") return environment_for_opencl(places, folder, files);
  if (probe == "metal") {
    if (!sys::k_on_macos)
      return fail(Code::unavailable, "the metal probe needs macOS, as Metal does");
    return environment_to_preload(probe, k_metal_library, places, folder, files);
  }
  // Linked by the engine itself: it is switched on, not loaded.
  if (probe == "instrument") {
    return Variables{{WEIR_PROBE_DIR_VARIABLE, folder}, {"WEIR_PROFILE", "counts,ops"}};
  }
  // Counted from outside, in processes of their own: nothing is loaded into the engine.
  if (probe == "instructions") return Variables{};
  return fail(Code::config,
              "unknown probe \"{}\"\n  known here: vulkan, ggml, opencl, cuda, hip, "
              "metal, instructions, instrument",
              probe);
}

const std::map<std::string, std::vector<std::string>>& probe_devices() {
  static const std::map<std::string, std::vector<std::string>> k_devices{
      {"vulkan", {"vulkan"}},
      {"opencl", {"opencl"}},
      {"cuda", {"cuda"}},
      {"hip", {"hip"}},
      {"metal", {"metal"}},
      // It sees whatever ggml computes on, the CPU included.
      {"ggml", {"cpu", "vulkan", "opencl", "cuda", "hip", "metal"}},
      // Beside a device the processor waits by spinning, never for the same number of instructions.
      {"instructions", {"cpu"}},
      // Whatever the engine says.
      {"instrument", {"cpu", "vulkan", "opencl", "cuda", "hip", "metal"}},
  };
  return k_devices;
}

std::map<std::string, std::vector<std::string>> probe_devices_here() {
  std::map<std::string, std::vector<std::string>> devices = probe_devices();
  if (sys::k_on_macos)
    std::erase_if(
        devices, [](const auto& one) { return one.first != "metal" && one.first != "instrument"; });
  return devices;
}

}  // namespace weir::probes
