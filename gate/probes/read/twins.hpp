// Descriptions of GPUs, for device twins: reads JSON text and compiles it to the bytes that the
// twin driver maps (gate/probes/twin/blob.h). Pure.
//
// A description is a Khronos profiles document ("capabilities", "profiles"), as vulkaninfo --json
// and public databases write it. The key "weir" holds values that the format lacks
// (docs/reference/devices.md). The older form of vulkaninfo (structs at the top of the document) is
// read too.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "gate/base/json.hpp"
#include "gate/base/result.hpp"

namespace weir::probes {

// A described GPU. Structs have the names of the table (gate/probes/twin/structs.h), aliases
// resolved; fields have the names of the text. Structs of a version of Vulkan
// (VkPhysicalDeviceVulkan12Features, …) agree with the single structs that they absorbed. Missing
// values that programs need have defaults.
struct Twin {
  std::string name;                  // used in `twin:`; see is_twin_name()
  std::string title;                 // for people, one line
  std::string source;                // origin of the values; "" when unknown
  std::vector<std::string> assumed;  // values that are guesses, in words
  std::string compile;  // driver that compiles for it without the device: "radv-navi31"; or ""
  std::map<std::string, Json> structs;
  Json memory;                                      // VkPhysicalDeviceMemoryProperties
  std::vector<Json> queue_families;                 // VkQueueFamilyProperties; never empty
  std::map<std::string, std::uint32_t> extensions;  // the device's, with revisions
  std::map<std::string, Json> formats;              // VkFormat -> VkFormatProperties
  std::vector<Json> cooperative_matrices;           // VkCooperativeMatrixPropertiesKHR
  std::vector<Json> flexible_matrices;  // VkCooperativeMatrixFlexibleDimensionsPropertiesNV
  // Sections of APIs (runtime_twin.hpp), or null; with one, Vulkan's values may be left out.
  Json cuda, hip;
  // Unknown names, values that do not fit, defaults that were used. At most 100, and a last line
  // if there were more.
  std::vector<std::string> warnings;

  [[nodiscard]] bool has_vulkan() const { return !structs.empty(); }
  // The devices of weir.yaml that it describes: "vulkan", "cuda", "hip".
  [[nodiscard]] std::vector<std::string> apis() const;
  // A field of a struct; nullptr where it is not described. `field` may hold one '.', as in
  // "limits.maxPushConstantsSize".
  [[nodiscard]] const Json* value(const std::string& struct_name, const std::string& field) const;
};

// True for 1 to 63 lower-case letters and digits; after the first character also "-._".
[[nodiscard]] bool is_twin_name(std::string_view name);

// Reads a description: hostile text of at most 8 MiB. Fails with Code::data where it is none.
[[nodiscard]] Result<Twin> read_twin(std::string_view text);

// Returns the bytes that the twin driver maps, for a twin with Vulkan. Values that do not fit their
// field stay 0, with a warning in `twin`.
[[nodiscard]] std::string compile_twin(Twin& twin);

// The most entries that a list of a description may have; more are left out with a warning.
constexpr std::size_t k_max_twin_entries = 4096;

}  // namespace weir::probes
