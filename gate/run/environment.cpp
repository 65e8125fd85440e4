#include "gate/run/environment.hpp"

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/probes/twin/blob.h"
#include "gate/probes/twin/cuda/blob.h"
#include "gate/sys/paths.hpp"

namespace weir::run {
namespace {

struct LoaderList {
  std::string_view name;
  bool in_front = false;  // goes what is added
  bool spaces = false;    // blanks separate too
};

// Not here: VK_DRIVER_FILES and VK_ICD_FILENAMES. Who sets them chooses a driver; adding to what is
// there would bring the others back.
constexpr std::array k_lists = {
    // Folders and files to look in: the first that has it wins.
    LoaderList{"LD_LIBRARY_PATH", true},
    LoaderList{"DYLD_LIBRARY_PATH", true},
    LoaderList{"DYLD_FALLBACK_LIBRARY_PATH", true},
    LoaderList{"VK_LAYER_PATH", true},
    LoaderList{"VK_ADD_LAYER_PATH", true},
    LoaderList{"VK_ADD_DRIVER_FILES", true},
    // Layers and preloads: each calls the next, the last stands next to the driver.
    LoaderList{"LD_PRELOAD", false, true},
    LoaderList{"DYLD_INSERT_LIBRARIES"},
    LoaderList{"VK_INSTANCE_LAYERS"},
    LoaderList{"OPENCL_LAYERS"},
};

std::vector<std::string> entries(const LoaderList& list, std::string text) {
  if (list.spaces) std::ranges::replace(text, ' ', ':');
  std::vector<std::string> all = text::split(text, ':');
  std::erase(all, "");
  return all;
}

std::string added_to(const LoaderList& list, const std::string& there, const std::string& more) {
  std::vector<std::string> first = entries(list, list.in_front ? more : there);
  for (std::string& entry : entries(list, list.in_front ? there : more)) {
    if (!holds(first, entry)) first.push_back(std::move(entry));
  }
  return text::join(first, ":");
}

}  // namespace

sys::EnvironmentList merge_environment(const sys::EnvironmentList& inherited,
                                       const config::Environment& config,
                                       const config::Environment& probes) {
  std::map<std::string, std::string> set;
  const auto current = [&](const std::string& name) {
    if (const auto* found = look_up(set, name)) return *found;
    const auto* there = first_of(inherited, [&](const auto& one) { return one.first == name; });
    return there == nullptr ? std::string() : there->second;
  };
  for (const config::Environment* source : {&config, &probes}) {
    for (const auto& [name, value] : *source) {
      const LoaderList* list = find_named(k_lists, name);
      set[name] = list == nullptr ? value : added_to(*list, current(name), value);
    }
  }
  return {set.begin(), set.end()};
}

std::vector<std::string> probes_own(const sys::EnvironmentList& inherited) {
  std::vector<std::string> names;
  for (const auto& [name, value] : inherited) {
    if (name == "WEIR_PROFILE" || name.starts_with("WEIR_PROBE_")) names.push_back(name);
  }
  return names;
}

std::vector<std::string> handed_on(const PreparedCell& cell) {
  std::vector<std::string> names(cell.cell.passed.begin(), cell.cell.passed.end());
  const auto& server = cell.cell.engine->server;
  if (server && !server->token_env.empty()) names.push_back(server->token_env);
  return names;
}

config::Environment twin_environment(const DeviceTwin& twin, std::int64_t fill) {
  if (twin.cuda) {
    return {{"LD_LIBRARY_PATH", twin.driver},
            {WEIR_CUDA_TWIN_VARIABLE, twin.blob},
            {WEIR_CUDA_KERNELS_VARIABLE, twin.kernels},
            {WEIR_TWIN_FILL_VARIABLE, fmt::format("{}", fill)}};
  }
  return {{"VK_DRIVER_FILES", twin.driver},
          {"VK_ICD_FILENAMES", twin.driver},  // what older loaders read
          {"VK_LOADER_DRIVERS_SELECT", "*" + sys::file_name_of(twin.driver)},
          {WEIR_TWIN_VARIABLE, twin.blob},
          {WEIR_TWIN_FILL_VARIABLE, fmt::format("{}", fill)}};
}

}  // namespace weir::run
