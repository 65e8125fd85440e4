// Finds the installed probes, and makes the environment that loads one into an engine.
#include "gate/probes/read/locate.hpp"

#include <vector>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/probes/format.h"
#include "gate/probes/recorded_kernels.h"
#include "gate/profile/counts.hpp"
#include "gate/sys/paths.hpp"
#include "gate/sys/process.hpp"
#include "gate/sys/system.hpp"
#include "gate/unit/device_api.hpp"

namespace weir::probes {
namespace {

using unit::DeviceApi;

constexpr const char* k_vulkan_layer = "VK_LAYER_WEIR_probe";
// Libraries of probes that belong to no API.
constexpr std::pair<std::string_view, std::string_view> k_libraries[] = {
    {"ggml", "libweir_ggml.so"}, {profile::k_python, "libweir_python.so"}};
// MiB for the code of an engine's kernels; some hundred kernels of llama.cpp take five.
constexpr int k_code_mib = 256;
constexpr const char* k_preload = sys::k_on_macos ? "DYLD_INSERT_LIBRARIES" : "LD_PRELOAD";

// Appends the subfolder `below` of each folder in a list like "/usr/local/etc:/etc".
void add_folders(const std::string& list, std::string_view below, std::vector<std::string>* out) {
  for (const std::string& folder : text::split(list, ':')) {
    if (!folder.empty()) out->push_back(sys::join_path(folder, below));
  }
}

// Returns the folders where the Vulkan loader looks for explicit layers, in its order ("Layer
// Discovery" in Vulkan-Loader).
std::vector<std::string> standard_layer_folders(const Lookup& lookup) {
  constexpr std::string_view k_below = "vulkan/explicit_layer.d";
  const auto value_or = [&](const char* name, const std::string& otherwise) {
    const auto value = lookup(name);
    return value && !value->empty() ? *value : otherwise;
  };
  const std::string home = value_or("HOME", "");
  const auto in_home = [&](const char* below) {
    return home.empty() ? std::string() : sys::join_path(home, below);
  };
  std::vector<std::string> out;
  add_folders(value_or("XDG_CONFIG_HOME", in_home(".config")), k_below, &out);
  add_folders(value_or("XDG_CONFIG_DIRS", "/etc/xdg"), k_below, &out);
  add_folders("/usr/local/etc:/etc", k_below, &out);
  add_folders(value_or("XDG_DATA_HOME", in_home(".local/share")), k_below, &out);
  add_folders(value_or("XDG_DATA_DIRS", "/usr/local/share:/usr/share"), k_below, &out);
  return out;
}

using Variables = std::map<std::string, std::string>;

bool has_any(const std::string& text, const char* characters) {
  return text.find_first_of(characters) != std::string::npos;
}

// Returns the environment variables that load a probe from `path`: its library, or its layer's
// manifest. Most are lists, so a path must not contain their separator.
Result<Variables> loading_variables(DeviceApi::Load load, const std::string& path,
                                    const Places& places, const Lookup& lookup) {
  switch (load) {
    case DeviceApi::Load::vulkan_layer: {
      if (has_any(places.probes, ":")) {
        return fail(Code::unavailable,
                    "the Vulkan loader cannot find probes in {}: its lists are separated by ':'",
                    places.probes);
      }
      std::string folders = places.probes;
      const auto layer_path = lookup("VK_LAYER_PATH");
      if (!layer_path || layer_path->empty()) {
        if (const auto added = lookup("VK_ADD_LAYER_PATH"); added && !added->empty()) {
          folders += ":" + *added;  // ignored by the loader once VK_LAYER_PATH is set
        }
        for (const std::string& standard : standard_layer_folders(lookup))
          folders += ":" + standard;
      }
      // The last one makes ggml name its pipelines; other programs ignore it.
      return Variables{{"VK_LAYER_PATH", folders},
                       {"VK_INSTANCE_LAYERS", k_vulkan_layer},
                       {"GGML_VK_DEBUG_MARKERS", "1"}};
    }
    case DeviceApi::Load::opencl_layer:
      if (has_any(path, ":")) {
        return fail(Code::unavailable,
                    "the OpenCL loader cannot find {}: its lists are separated by ':'", path);
      }
      return Variables{{"OPENCL_LAYERS", path}};
    case DeviceApi::Load::preload:
      break;
  }
  if (has_any(path, ": ")) {
    return fail(Code::unavailable,
                "{} cannot be preloaded: such lists are separated by ':' and blanks", path);
  }
  return Variables{{k_preload, path}};
}

// Returns true if the probe exists for this operating system.
bool exists_here(std::string_view probe) {
  if (probe == "instrument") return true;
  const DeviceApi* api = unit::find_device_api(probe);
  return (api != nullptr && api->on_macos) == sys::k_on_macos;
}

// Returns the folder of probes, and where weir's helper programs are: each in the first of
// `folders` that has it.
Places find_programs(const sys::Files& files, const std::string& probes,
                     const std::vector<std::string>& folders) {
  const auto find = [&](const char* name) -> std::string {
    for (const std::string& folder : folders) {
      std::string candidate = sys::join_path(folder, name);
      if (files.executable(candidate)) return candidate;
    }
    return "";
  };
  return {probes, find("weir-devices"), find("weir-replay-ggml"), find("weir-replay-vulkan"),
          find("weir-compile-vulkan")};
}

}  // namespace

// Finds the folder of probes: WEIR_PROBES if it is set, else below the folder of weir's program or
// the one above it.
Result<Places> locate(const sys::Files& files, const std::string& program,
                      const std::optional<std::string>& probes_override) {
  if (probes_override && !probes_override->empty()) {
    const std::string folder = sys::absolute(*probes_override);
    if (files.kind(folder) != sys::Kind::folder) {
      return fail(Code::unavailable, "WEIR_PROBES: no such folder: {}", folder);
    }
    return find_programs(files, folder,
                         {folder, sys::absolute(sys::join_path(folder, "../../../libexec/weir"))});
  }
  const std::string program_folder = sys::folder_of(program);
  std::vector<std::string> searched;
  for (const std::string& root :
       {program_folder, sys::absolute(sys::join_path(program_folder, ".."))}) {
    const std::string folder = sys::join_path(root, "lib/weir/probes");
    searched.push_back(folder);
    if (files.kind(folder) != sys::Kind::folder) continue;
    return find_programs(files, folder, {sys::join_path(root, "libexec/weir")});
  }
  return fail(Code::unavailable, "no probes found (looked in {}); set WEIR_PROBES to their folder",
              text::join(searched));
}

Result<Places> locate(const sys::Files& files) {
  return locate(files, sys::own_program_path(), sys::environment_value("WEIR_PROBES"));
}

// Returns the variables that make a probe count into `folder`. Fails for an unknown probe, and one
// that is not installed or not for this system.
Result<std::map<std::string, std::string>> environment_for(std::string_view probe,
                                                           const Places& places,
                                                           const std::string& folder,
                                                           const sys::Files& files,
                                                           const Lookup& lookup) {
  if (sys::k_on_macos && probe_devices().contains(std::string(probe)) && !exists_here(probe)) {
    return fail(Code::unavailable, "the {} probe is not on macOS", probe);
  }
  // The engine itself is linked with the instrument library: variables only switch it on.
  if (probe == "instrument") {
    return Variables{{WEIR_PROBE_DIR_VARIABLE, folder}, {"WEIR_PROFILE", "counts,ops"}};
  }
  // These count from outside the engine, in processes of their own: nothing is loaded.
  if (probe == "instructions" || probe == "host") return Variables{};
  const DeviceApi* api = unit::find_device_api(probe);
  const auto* library =
      find_first(k_libraries, [&](const auto& entry) { return entry.first == probe; });
  if (api == nullptr && library == nullptr) {
    auto names = weir::collect<std::string>(unit::device_apis(), &DeviceApi::name);
    names.insert(names.begin() + 1, "ggml");
    return fail(Code::config,
                "unknown probe \"{}\"\n  known here: {}, instructions, host, python, instrument",
                probe, text::join(names));
  }
  if (!exists_here(probe)) {
    return fail(Code::unavailable, "the {} probe needs macOS, as {} does", probe, api->title);
  }
  const auto load = api == nullptr ? DeviceApi::Load::preload : api->load;
  const std::string path =
      sys::join_path(places.probes, api == nullptr ? library->second : api->library);
  if (files.kind(path) != sys::Kind::file) {
    return fail(Code::unavailable, "the {} probe is not installed: no {}", probe, path);
  }
  WEIR_TRY(Variables variables, loading_variables(load, path, places, lookup));
  variables[WEIR_PROBE_DIR_VARIABLE] = folder;
  if (load == DeviceApi::Load::vulkan_layer) {
    variables[WEIR_PROBE_CODE_VARIABLE] = fmt::format("{}", k_code_mib);
  }
  if (api == nullptr || api->check.empty()) return variables;
  const std::string check = sys::join_path(places.probes, api->check_library);
  const std::string variable(api->check_variable);
  // The driver loads only one library: one that the engine's environment names stays.
  if (files.kind(check) == sys::Kind::file && lookup(variable).value_or("").empty()) {
    variables[variable] = check;
  }
  return variables;
}

// Returns which devices of weir.yaml each probe can see, by the probe's name.
const std::map<std::string, std::vector<std::string>>& probe_devices() {
  static const auto k_devices = [] {
    std::map<std::string, std::vector<std::string>> devices;
    for (const DeviceApi& api : unit::device_apis()) devices[api.name] = {api.name};
    // ggml computes on every device, also on the CPU.
    devices["ggml"] = unit::device_names();
    // An engine that waits for a GPU spins: its number of instructions varies.
    devices["instructions"] = {"cpu"};
    devices["host"] = unit::device_names();
    devices[profile::k_python] = unit::device_names();
    devices["instrument"] = unit::device_names();  // an engine may mark any device
    return devices;
  }();
  return k_devices;
}

std::map<std::string, std::vector<std::string>> probe_devices_here() {
  std::map<std::string, std::vector<std::string>> devices = probe_devices();
  if (sys::k_on_macos) {
    std::erase_if(devices, [](const auto& entry) { return !exists_here(entry.first); });
  }
  return devices;
}

}  // namespace weir::probes
