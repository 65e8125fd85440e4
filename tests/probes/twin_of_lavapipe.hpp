// lavapipe, and twins that are made of its own description: the same kernels, and nothing is
// computed.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "gate/base/text.hpp"

#include "tests/probes/support.hpp"

namespace weir::probes {

using Environment = std::map<std::string, std::string>;

inline const std::string k_twin_driver = WEIR_BINARY_DIR "/lib/weir/probes/weir_twin.json";
#ifdef __aarch64__
inline const std::string k_lavapipe = "/usr/share/vulkan/icd.d/lvp_icd.aarch64.json";
#else
inline const std::string k_lavapipe = "/usr/share/vulkan/icd.d/lvp_icd.x86_64.json";
#endif

inline Environment driver(const std::string& manifest) {
  return {{"VK_DRIVER_FILES", manifest}, {"VK_ICD_FILENAMES", manifest}};
}

// lavapipe's own description, or as another kind of device, written once.
inline std::string description(const std::string& name) {
  static const Folder folder;
  const std::string path = folder.path() + "/" + name;
  if (!std::filesystem::exists(path)) {
    const Ran ran = run({WEIR_TWIN_PROGRAM, "record", name, path}, driver(k_lavapipe));
    EXPECT_EQ(ran.status, 0) << ran.err;
  }
  return path;
}

// Twins of the descriptions in `names`, which are separated by colons.
inline Environment twin(const std::string& names, const std::string& manifest = k_twin_driver) {
  Environment out = driver(manifest);
  for (const std::string& name : text::split(names, ':')) {
    out["WEIR_TWIN"] += (out["WEIR_TWIN"].empty() ? "" : ":") + description(name);
  }
  return out;
}

}  // namespace weir::probes
