#include "gate/probes/read/locate.hpp"

#include <vector>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/probes/format.h"
#include "gate/probes/recorded_kernels.h"
#include "gate/sys/paths.hpp"
#include "gate/sys/process.hpp"
#include "gate/sys/system.hpp"
#include "gate/unit/device_api.hpp"

namespace weir::probes {
namespace {

using unit::DeviceApi;

constexpr const char* k_vulkan_layer = "VK_LAYER_WEIR_probe";
constexpr const char* k_ggml_library = "libweir_ggml.so";
// MiB that the code of an engine's kernels may take: some hundred kernels of llama.cpp take five.
constexpr int k_code_mib = 256;
constexpr const char* k_preload = sys::k_on_macos ? "DYLD_INSERT_LIBRARIES" : "LD_PRELOAD";

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

// What makes an engine load the probe, whose library (or layer's manifest) lies at `path`. A value
// of a list must not hold what separates its entries.
Result<Variables> variables_of(DeviceApi::Load load, const std::string& path, const Places& places,
                               const Lookup& lookup) {
  const auto refuse_in = [](const std::string& text, const char* separators, const char* before,
                            const char* after) -> Result<void> {
    if (text.find_first_of(separators) == std::string::npos) return {};
    return fail(Code::unavailable, "{}{}{}", before, text, after);
  };
  constexpr const char* k_by_colons = ": its lists are separated by ':'";
  switch (load) {
    case DeviceApi::Load::vulkan_layer: {
      WEIR_CHECK(
          refuse_in(places.probes, ":", "the Vulkan loader cannot find probes in ", k_by_colons));
      std::string folders = places.probes;
      const auto set = lookup("VK_LAYER_PATH");
      if (!set || set->empty()) {
        if (const auto added = lookup("VK_ADD_LAYER_PATH"); added && !added->empty()) {
          folders += ":" + *added;  // ignored by the loader once VK_LAYER_PATH is set
        }
        for (const std::string& standard : standard_layer_folders(lookup))
          folders += ":" + standard;
      }
      // ggml names its pipelines where it is asked to; other programs pass it by.
      return Variables{{"VK_LAYER_PATH", folders},
                       {"VK_INSTANCE_LAYERS", k_vulkan_layer},
                       {"GGML_VK_DEBUG_MARKERS", "1"}};
    }
    case DeviceApi::Load::opencl_layer:
      WEIR_CHECK(refuse_in(path, ":", "the OpenCL loader cannot find ", k_by_colons));
      return Variables{{"OPENCL_LAYERS", path}};
    case DeviceApi::Load::preload:
      break;
  }
  WEIR_CHECK(refuse_in(path, ": ", "",
                       " cannot be preloaded: such lists are separated by ':' and blanks"));
  return Variables{{k_preload, path}};
}

// Whether this system can have it at all.
bool is_here(std::string_view probe) {
  if (probe == "instrument") return true;
  const DeviceApi* api = unit::find_device_api(probe);
  return (api != nullptr && api->on_macos) == sys::k_on_macos;
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
  return {probes, find("weir-devices"), find("weir-replay-ggml"), find("weir-replay-vulkan"),
          find("weir-compile-vulkan")};
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
  if (sys::k_on_macos && probe_devices().contains(std::string(probe)) && !is_here(probe)) {
    return fail(Code::unavailable, "the {} probe is not on macOS", probe);
  }
  // Linked by the engine itself: it is switched on, not loaded.
  if (probe == "instrument") {
    return Variables{{WEIR_PROBE_DIR_VARIABLE, folder}, {"WEIR_PROFILE", "counts,ops"}};
  }
  // Counted from outside, in processes of their own: nothing is loaded into the engine.
  if (probe == "instructions" || probe == "host") return Variables{};
  const DeviceApi* api = unit::find_device_api(probe);
  if (api == nullptr && probe != "ggml") {
    auto known = weir::collect<std::string>(unit::device_apis(), &DeviceApi::name);
    known.insert(known.begin() + 1, "ggml");
    return fail(Code::config,
                "unknown probe \"{}\"\n  known here: {}, instructions, host, instrument", probe,
                text::join(known));
  }
  if (!is_here(probe)) {
    return fail(Code::unavailable, "the {} probe needs macOS, as {} does", probe, api->title);
  }
  const auto load = api == nullptr ? DeviceApi::Load::preload : api->load;
  const std::string path =
      sys::join_path(places.probes, api == nullptr ? k_ggml_library : api->library);
  if (files.kind(path) != sys::Kind::file) {
    return fail(Code::unavailable, "the {} probe is not installed: no {}", probe, path);
  }
  WEIR_TRY(Variables variables, variables_of(load, path, places, lookup));
  variables[WEIR_PROBE_DIR_VARIABLE] = folder;
  if (load == DeviceApi::Load::vulkan_layer) {
    variables[WEIR_PROBE_CODE_VARIABLE] = fmt::format("{}", k_code_mib);
  }
  if (api == nullptr || api->check.empty()) return variables;
  const std::string check = sys::join_path(places.probes, api->check_library);
  const std::string variable(api->check_variable);
  // The driver takes one library only: one that is named already stays.
  if (files.kind(check) == sys::Kind::file && lookup(variable).value_or("").empty()) {
    variables[variable] = check;
  }
  return variables;
}

const std::map<std::string, std::vector<std::string>>& probe_devices() {
  static const auto k_devices = [] {
    std::map<std::string, std::vector<std::string>> devices;
    for (const DeviceApi& api : unit::device_apis()) devices[api.name] = {api.name};
    // It sees whatever ggml computes on, the CPU included.
    devices["ggml"] = unit::device_names();
    // Beside a device the processor waits by spinning, never for the same number of instructions.
    devices["instructions"] = {"cpu"};
    devices["host"] = unit::device_names();
    devices["instrument"] = unit::device_names();  // whatever the engine says
    return devices;
  }();
  return k_devices;
}

std::map<std::string, std::vector<std::string>> probe_devices_here() {
  std::map<std::string, std::vector<std::string>> devices = probe_devices();
  if (sys::k_on_macos) std::erase_if(devices, [](const auto& one) { return !is_here(one.first); });
  return devices;
}

}  // namespace weir::probes
