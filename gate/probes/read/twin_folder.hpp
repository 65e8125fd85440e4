// Finds descriptions of GPUs in folders. A description is named by its file, NAME.json, so that one
// from vulkaninfo or a database can be used unchanged.
#pragma once

#include <string>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/probes/read/twins.hpp"
#include "gate/sys/files.hpp"

namespace weir::probes {

// The folders to search, in order: configs/devices in `home` (the folder of weir.yaml), then
// share/weir/devices in the program's folder and in the one above it (`program`: its absolute
// path). Missing folders are left out.
[[nodiscard]] std::vector<std::string> twin_folders(const sys::Files& files,
                                                    const std::string& home,
                                                    const std::string& program);
[[nodiscard]] std::vector<std::string> twin_folders(const sys::Files& files,
                                                    const std::string& home);

struct TwinEntry {
  std::string name;  // for `twin:`
  std::string path;
  std::vector<std::string> apis;  // that the description covers: "vulkan", "cuda", "hip"
  std::string title, source;      // "" if the file could not be read
  std::string error;              // the reason why not; else ""
};

// The names that `twin:` accepts, sorted. Reads no description.
[[nodiscard]] Result<std::vector<std::string>> twin_names(const sys::Files& files,
                                                          const std::vector<std::string>& folders);

// Every description, sorted by name. Of two with the same name, the one in the earlier folder
// counts. Files whose names are no twin names are left out.
[[nodiscard]] Result<std::vector<TwinEntry>> list_twins(const sys::Files& files,
                                                        const std::vector<std::string>& folders);

// Loads a description by name, or by the path of a file (with a '/' or ".json"). Fails with
// Code::config for an unknown name, with suggestions, and with Code::data for an invalid file.
[[nodiscard]] Result<Twin> load_twin(const sys::Files& files,
                                     const std::vector<std::string>& folders,
                                     const std::string& name);

}  // namespace weir::probes
