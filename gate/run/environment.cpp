// Builds the environment of engines: lists of libraries and layers, and variables of device twins.
#include "gate/run/environment.hpp"

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/probes/twin/blob.h"
#include "gate/probes/twin/runtime/blob.h"
#include "gate/sys/paths.hpp"

namespace weir::run {
namespace {

struct LoaderList {
  std::string_view name;
  bool in_front = false;  // new entries go first
  bool spaces = false;    // spaces separate entries too
};

// VK_DRIVER_FILES and VK_ICD_FILENAMES are not here: they choose a driver, and adding to the old
// value would bring the others back.
constexpr std::array k_lists = {
    // Search paths: the first match wins.
    LoaderList{"LD_LIBRARY_PATH", true},
    LoaderList{"DYLD_LIBRARY_PATH", true},
    LoaderList{"DYLD_FALLBACK_LIBRARY_PATH", true},
    LoaderList{"VK_LAYER_PATH", true},
    LoaderList{"VK_ADD_LAYER_PATH", true},
    LoaderList{"VK_ADD_DRIVER_FILES", true},
    // Layers and preloads: each calls the next, and the last one is next to the driver.
    LoaderList{"LD_PRELOAD", false, true},
    LoaderList{"DYLD_INSERT_LIBRARIES"},
    LoaderList{"VK_INSTANCE_LAYERS"},
    LoaderList{"OPENCL_LAYERS"},
};

std::vector<std::string> split_entries(const LoaderList& list, std::string text) {
  if (list.spaces) std::ranges::replace(text, ' ', ':');
  std::vector<std::string> parts = text::split(text, ':');
  std::erase(parts, "");
  return parts;
}

// Merges two values of a list variable such as LD_PRELOAD, each entry once. Bare names of libraries
// come behind paths: they stand in for libraries of that name, and paths are probes.
std::string extend_list(const LoaderList& list, const std::string& current,
                        const std::string& added) {
  std::vector<std::string> merged = split_entries(list, list.in_front ? added : current);
  for (std::string& entry : split_entries(list, list.in_front ? current : added)) {
    if (!holds(merged, entry)) merged.push_back(std::move(entry));
  }
  if (list.spaces) {
    std::ranges::stable_partition(
        merged, [](const std::string& entry) { return entry.find('/') != std::string::npos; });
  }
  return text::join(merged, ":");
}

}  // namespace

// Adds the variables of weir.yaml and of the probes to the inherited ones. Loader lists such as
// LD_PRELOAD are extended; all others are replaced.
sys::EnvironmentList merge_environment(const sys::EnvironmentList& inherited,
                                       const config::Environment& config,
                                       const config::Environment& probes) {
  std::map<std::string, std::string> merged;
  const auto current = [&](const std::string& name) {
    if (const auto* value = look_up(merged, name)) return *value;
    const auto* variable =
        find_first(inherited, [&](const auto& entry) { return entry.first == name; });
    return variable == nullptr ? std::string() : variable->second;
  };
  for (const config::Environment* source : {&config, &probes}) {
    for (const auto& [name, value] : *source) {
      const LoaderList* list = find_named(k_lists, name);
      merged[name] = list == nullptr ? value : extend_list(*list, current(name), value);
    }
  }
  return {merged.begin(), merged.end()};
}

std::vector<std::string> probes_own(const sys::EnvironmentList& inherited) {
  std::vector<std::string> names;
  for (const auto& [name, value] : inherited) {
    if (name == "WEIR_PROFILE" || name.starts_with("WEIR_PROBE_")) names.push_back(name);
  }
  return names;
}

std::vector<std::string> passed_variables(const PreparedCell& cell) {
  std::vector<std::string> names(cell.cell.passed_variables.begin(),
                                 cell.cell.passed_variables.end());
  const auto& server = cell.cell.engine->server;
  if (server && !server->token_env.empty()) names.push_back(server->token_env);
  return names;
}

// Returns the variables that make the engine use a device twin, a simulated GPU. `fill` is the
// number of the pattern with which the twin fills results.
config::Environment twin_environment(const DeviceTwin& twin, std::int64_t fill) {
  if (twin.runtime != nullptr) {
    config::Environment variables = {{"LD_LIBRARY_PATH", twin.driver},
                                     {WEIR_RUNTIME_TWIN_VARIABLE, twin.blob},
                                     {WEIR_RUNTIME_KERNELS_VARIABLE, twin.files.kernels},
                                     {WEIR_TWIN_FILL_VARIABLE, fmt::format("{}", fill)}};
    std::vector<std::string> preloads = twin.files.preloads;
    if (const std::string& stubs = twin.files.stubs; !stubs.empty()) {
      preloads.push_back(sys::file_name_of(stubs));
      variables["LD_LIBRARY_PATH"] += ":" + sys::folder_of(stubs);
    }
    if (!preloads.empty()) variables["LD_PRELOAD"] = text::join(preloads, ":");
    return variables;
  }
  return {{"VK_DRIVER_FILES", twin.driver},
          {"VK_ICD_FILENAMES", twin.driver},  // for older loaders
          {"VK_LOADER_DRIVERS_SELECT", "*" + sys::file_name_of(twin.driver)},
          {WEIR_TWIN_VARIABLE, twin.blob},
          {WEIR_TWIN_FILL_VARIABLE, fmt::format("{}", fill)}};
}

}  // namespace weir::run
