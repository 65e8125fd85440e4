// Descriptions of GPUs, for device twins: JSON text -> what is known of the device -> the bytes
// that the twin driver maps (gate/probes/twin/blob.h). Pure.
//
// A description is a Khronos profiles document ("capabilities", "profiles"), as vulkaninfo --json
// and public databases write it, with what that format lacks under "weir"
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

// What is described. Structs by the names of the table (gate/probes/twin/structs.h), aliases
// resolved; fields by name, as they stand in the text. Those of a version of Vulkan
// (VkPhysicalDeviceVulkan12Features, …) and the single ones they took up agree. What is needed and
// missing has its default.
struct Twin {
  std::string name;   // what `twin:` takes: [a-z0-9] and, after the first, also ". _ -"; at most 63
  std::string title;  // for people, one line
  std::string source;                // where the values come from; "" when it does not say
  std::vector<std::string> assumed;  // what is a guess, in words
  std::string compile;  // what compiles for it without it: "radv-navi31"; "": nothing known
  std::map<std::string, Json> structs;
  Json memory;                                      // VkPhysicalDeviceMemoryProperties
  std::vector<Json> queue_families;                 // VkQueueFamilyProperties; never empty
  std::map<std::string, std::uint32_t> extensions;  // of the device, with their revisions
  std::map<std::string, Json> formats;              // VkFormat -> VkFormatProperties
  std::vector<Json> cooperative_matrices;           // VkCooperativeMatrixPropertiesKHR
  std::vector<Json> flexible_matrices;  // VkCooperativeMatrixFlexibleDimensionsPropertiesNV
  Json cuda;  // of a CUDA twin (cuda_twin.hpp); null where it has none. Then Vulkan's may be empty
  // Doubts: names that weir does not know, values that do not fit, defaults that stand in. At most
  // 100 and a last line that tells of more.
  std::vector<std::string> warnings;

  [[nodiscard]] bool has_vulkan() const { return !structs.empty(); }
  // A field of a struct, as it was described; nullptr when it was not. `field` may hold one '.', as
  // in "limits.maxPushConstantsSize".
  [[nodiscard]] const Json* value(const std::string& of_struct, const std::string& field) const;
};

// Small letters, digits and, after the first, "-._"; 63 at most.
[[nodiscard]] bool is_twin_name(std::string_view name);

// Hostile text of at most 8 MiB. Code::data where it is no description at all.
[[nodiscard]] Result<Twin> read_twin(std::string_view text);

// The blob; of a twin that has Vulkan. Values that do not fit their place are left 0 with a warning
// in `twin`.
[[nodiscard]] std::string compile_twin(Twin& twin);

// How many heaps, types, … a description may have; more are left out with a warning.
constexpr std::size_t k_most_twin_entries = 4096;

}  // namespace weir::probes
