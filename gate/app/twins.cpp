#include "gate/app/twins.hpp"

#include "gate/base/hash.hpp"
#include "gate/probes/read/locate.hpp"
#include "gate/probes/read/twin_folder.hpp"
#include "gate/sys/paths.hpp"

namespace weir::app {
namespace {

constexpr const char* k_driver_manifest = "weir_twin.json";

Result<std::string> driver_manifest(const sys::Files& files) {
  WEIR_TRY(const probes::Places places, probes::locate(files));
  std::string manifest = sys::join_path(places.probes, k_driver_manifest);
  if (files.kind(manifest) == sys::Kind::file) return manifest;
  return fail(Code::unavailable, "the driver of device twins is not installed: no {}", manifest);
}

Result<run::DeviceTwin> make_twin(const std::string& name, const std::vector<std::string>& folders,
                                  const std::string& place, sys::Files& files) {
  run::DeviceTwin made;
  WEIR_TRY(made.driver, driver_manifest(files));
  WEIR_TRY(probes::Twin twin, probes::load_twin(files, folders, name));
  const std::string blob = probes::compile_twin(twin);
  made.title = twin.title;
  const Json* device = twin.value("VkPhysicalDeviceProperties", "deviceName");
  made.device = device != nullptr && device->is_string() ? device->get<std::string>() : twin.title;
  made.hash = hash_hex(blob);
  made.blob = sys::join_path(place, fmt::format("{}-{}.blob", name, short_hash(blob)));
  // Named by what is in it: one that is there is the same.
  if (files.kind(made.blob) != sys::Kind::file) WEIR_CHECK(files.write_atomic(made.blob, blob));
  return made;
}

}  // namespace

std::vector<std::string> known_twins(const sys::Files& files, const std::string& config_folder) {
  if (!driver_manifest(files)) return {};
  return probes::twin_names(files, probes::twin_folders(files, config_folder))
      .value_or(std::vector<std::string>());
}

Result<std::map<std::string, run::DeviceTwin>> make_twins(std::span<const config::Cell> cells,
                                                          const std::string& config_folder,
                                                          const std::string& out,
                                                          sys::Files& files) {
  std::map<std::string, run::DeviceTwin> twins;
  const auto folders = probes::twin_folders(files, config_folder);
  const std::string place = sys::absolute(sys::join_path(out, "twins"));
  for (const config::Cell& cell : cells) {
    if (!cell.twin || twins.count(*cell.twin) != 0) continue;
    WEIR_CHECK(files.make_dirs(place));
    WEIR_TRY(twins[*cell.twin], make_twin(*cell.twin, folders, place, files));
  }
  return twins;
}

}  // namespace weir::app
