// Where descriptions of GPUs lie, and which there are. A description's name is that of its file:
// NAME.json, so that one from vulkaninfo or a database can be put there as it is.
#pragma once

#include <string>
#include <vector>

#include "gate/base/result.hpp"
#include "gate/probes/read/twins.hpp"
#include "gate/sys/files.hpp"

namespace weir::probes {

// The folders to look in, the nearer first: configs/devices in `home` (that of weir.yaml), then
// share/weir/devices beside the program and below the folder above it (`program`: its absolute
// path). Folders that are not there are left out.
[[nodiscard]] std::vector<std::string> twin_folders(const sys::Files& files,
                                                    const std::string& home,
                                                    const std::string& program);
[[nodiscard]] std::vector<std::string> twin_folders(const sys::Files& files,
                                                    const std::string& home);

struct FoundTwin {
  std::string name;  // what `twin:` takes
  std::string path;
  bool vulkan = false, cuda = false;  // what it is described for
  std::string title, source;          // "" where it could not be read
  std::string error;                  // why it could not
};

// What `twin:` may take, sorted; no description is read.
[[nodiscard]] Result<std::vector<std::string>> twin_names(const sys::Files& files,
                                                          const std::vector<std::string>& folders);

// Every description, by name; the nearer of two that have the same one. Files whose name can be no
// twin's are left out.
[[nodiscard]] Result<std::vector<FoundTwin>> list_twins(const sys::Files& files,
                                                        const std::vector<std::string>& folders);

// By name, or by the path of a file (it has a '/' or ends in ".json"). Code::config for an unknown
// name, with what may have been meant; Code::data with the path for a file that is none.
[[nodiscard]] Result<Twin> load_twin(const sys::Files& files,
                                     const std::vector<std::string>& folders,
                                     const std::string& name);

}  // namespace weir::probes
