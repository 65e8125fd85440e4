// Opens a device with the features and extensions of a recorded one, as far as it has them.
#include <algorithm>
#include <cstring>
#include <span>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/probes/twin/structs.h"

#include "tools/replay/vulkan/vulkan.hpp"

namespace weir::replay {
namespace {

// Picks the device by its number, or by a part of its name, and fills in its properties.
Result<void> pick(const std::vector<VkPhysicalDevice>& all, const std::string& wanted,
                  Device& device) {
  std::vector<std::string> names;
  const auto number = text::to_int(wanted);
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto subgroups = of_type<vk::PhysicalDeviceSubgroupSizeControlProperties>();
    auto driver = of_type<vk::PhysicalDeviceDriverProperties>();
    driver.pNext = &subgroups;
    auto properties = of_type<vk::PhysicalDeviceProperties2>();
    properties.pNext = &driver;
    device.call.vkGetPhysicalDeviceProperties2(all[i], &properties);
    names.emplace_back(text::printable(properties.properties.deviceName));
    const bool fits = number ? *number == static_cast<long long>(i)
                             : names.back().find(wanted) != std::string::npos;
    if (!fits) continue;
    device.physical = all[i];
    device.limits = properties.properties.limits;
    device.name = names.back();
    device.driver_info = text::printable(driver.driverInfo);
    device.driver = text::printable(fmt::format("{} {}", driver.driverName, driver.driverInfo));
    device.min_subgroup = subgroups.minSubgroupSize;
    device.max_subgroup = subgroups.maxSubgroupSize;
    return {};
  }
  if (names.empty()) return left_out_error("no Vulkan device");
  return left_out_error("no device \"{}\"; there are: {}", wanted, text::join(names));
}

// A chain of Vulkan's feature structs with recorded values.
class Chain {
 public:
  struct Link {
    const weir_struct* type_info;  // null: VkPhysicalDeviceFeatures2
    std::vector<std::uint64_t> bytes;
    [[nodiscard]] VkBaseOutStructure* head() {
      return reinterpret_cast<VkBaseOutStructure*>(bytes.data());
    }
    [[nodiscard]] std::uint32_t* values() { return reinterpret_cast<std::uint32_t*>(head() + 1); }
    [[nodiscard]] std::size_t count() const {
      const std::size_t size =
          type_info == nullptr ? sizeof(VkPhysicalDeviceFeatures2) : type_info->size;
      return (size - sizeof(VkBaseOutStructure)) / sizeof(VkBool32);
    }
  };

  // Takes the recorded structs that weir has a description of; the core features always.
  explicit Chain(const std::vector<probes::RecordedFeatures>& recorded) {
    constexpr std::uint32_t k_core = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    add(k_core, nullptr, sizeof(VkPhysicalDeviceFeatures2));
    const std::span all(weir_structs, weir_struct_count);
    for (const auto& features : recorded) {
      const weir_struct* type_info = find_first(all, [&](const weir_struct& each) {
        return each.chain == WEIR_CHAIN_FEATURES && each.type == features.type;
      });
      const bool is_core = features.type == k_core;
      if (!is_core && type_info == nullptr) continue;
      Link& link = is_core ? links_.front() : add(features.type, type_info, type_info->size);
      std::memcpy(link.values(), features.values.data(),
                  std::min(features.values.size(), link.count() * 4));
    }
  }
  [[nodiscard]] std::vector<Link>& links() { return links_; }
  // Links the structs and returns the address of the first.
  void* link() {
    for (std::size_t i = 0; i < links_.size(); ++i) {
      links_[i].head()->pNext = i + 1 < links_.size() ? links_[i + 1].head() : nullptr;
    }
    return links_.front().head();
  }

 private:
  Link& add(std::uint32_t type, const weir_struct* type_info, std::size_t size) {
    Link& link = links_.emplace_back(Link{type_info, std::vector<std::uint64_t>((size + 7) / 8)});
    link.head()->sType = static_cast<VkStructureType>(type);
    return link;
  }
  std::vector<Link> links_;
};

// Returns the name of the feature in the struct's flag number `word`. Without a struct, that of a
// core feature.
std::string field_name(const weir_struct* type_info, std::size_t word) {
  std::size_t begin = sizeof(VkBaseOutStructure);
  if (type_info == nullptr) {
    const std::span all(weir_structs, weir_struct_count);
    type_info = find_named(all, std::string_view("VkPhysicalDeviceFeatures"));
    begin = 0;
  }
  if (type_info == nullptr) return fmt::format("core feature {}", word);
  for (std::uint16_t i = 0; i < type_info->field_count; ++i) {
    if (type_info->fields[i].offset == begin + word * 4) return type_info->fields[i].name;
  }
  return fmt::format("{} {}", type_info->name, word);
}

// Returns the recorded features that this device has, and adds the others to device.lacks.
Chain choose_features(const probes::RecordedDevice& recorded, Device& device) {
  Chain wanted(recorded.features);
  Chain available(recorded.features);
  // A driver does not write structs that it does not know.
  for (auto& link : available.links()) std::fill_n(link.values(), link.count(), 0U);
  device.call.vkGetPhysicalDeviceFeatures2(
      device.physical, static_cast<VkPhysicalDeviceFeatures2*>(available.link()));
  for (std::size_t i = 0; i < wanted.links().size(); ++i) {
    auto& link = wanted.links()[i];
    const std::uint32_t* supported = available.links()[i].values();
    for (std::size_t word = 0; word < link.count(); ++word) {
      std::uint32_t& value = link.values()[word];
      if (value == 0) continue;
      value = supported[word] != 0 ? VK_TRUE : VK_FALSE;
      if (value == 0) device.lacks.push_back(field_name(link.type_info, word));
    }
  }
  // A struct without a wanted feature may belong to an extension that the device lacks.
  std::erase_if(wanted.links(), [](Chain::Link& link) {
    return link.type_info != nullptr && std::all_of(link.values(), link.values() + link.count(),
                                                    [](std::uint32_t value) { return value == 0; });
  });
  if (!device.lacks.empty()) {
    device.warnings.push_back("without features that were on: " + text::join(device.lacks));
  }
  return wanted;
}

// Returns true for extensions that serve windows.
bool is_for_windows(const std::string& extension) {
  return extension.find("swapchain") != std::string::npos ||
         extension.find("display") != std::string::npos ||
         extension.find("present") != std::string::npos;
}

// Returns the recorded device's extensions that this one has, too. Warns about the others.
Result<std::vector<std::string>> choose_extensions(const probes::RecordedDevice& recorded,
                                                   Device& device) {
  std::uint32_t count = 0;
  WEIR_CHECK(WEIR_REPLAY_CALL(device.call, EnumerateDeviceExtensionProperties, device.physical,
                              nullptr, &count, nullptr));
  std::vector<VkExtensionProperties> properties(count);
  WEIR_CHECK(WEIR_REPLAY_CALL(device.call, EnumerateDeviceExtensionProperties, device.physical,
                              nullptr, &count, properties.data()));
  for (const auto& extension : properties) device.extensions.emplace_back(extension.extensionName);
  std::vector<std::string> names, missing;
  for (const std::string& name : recorded.extensions) {
    if (is_for_windows(name)) continue;
    if (holds(device.extensions, name)) {
      names.push_back(name);
    } else {
      missing.push_back(name);
    }
  }
  if (!missing.empty()) {
    device.warnings.push_back("without extensions that were on: " + text::join(missing));
  }
  return names;
}

// Picks the first family of queues that can compute, and has timestamps if `timed`.
Result<void> pick_family(bool needs_timestamps, Device& device) {
  VkQueueFamilyProperties families[32];
  std::uint32_t count = 32;
  device.call.vkGetPhysicalDeviceQueueFamilyProperties(device.physical, &count, families);
  for (std::uint32_t i = 0; i < count; ++i) {
    if ((families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) continue;
    if (needs_timestamps && families[i].timestampValidBits == 0) continue;
    device.stamp_bits = families[i].timestampValidBits;
    device.family = i;
    return {};
  }
  return left_out_error("{} has no queue that computes{}", device.name,
                        needs_timestamps ? " and has timestamps" : "");
}

// Creates the device with the recorded extensions and features, as far as it has them.
Result<void> make_device(const probes::RecordedDevice& recorded, Device& device) {
  WEIR_TRY(const std::vector<std::string> extensions, choose_extensions(recorded, device));
  std::vector<const char*> names;
  names.reserve(extensions.size());
  for (const std::string& name : extensions) names.push_back(name.c_str());
  Chain features = choose_features(recorded, device);
  const float priority = 1;
  const auto queue = of_type<vk::DeviceQueueCreateInfo>(0U, device.family, 1U, &priority);
  auto info = of_type<vk::DeviceCreateInfo>(
      0U, 1U, &queue, 0U, nullptr, static_cast<std::uint32_t>(names.size()), names.data(), nullptr);
  info.pNext = features.link();
  WEIR_CHECK(
      WEIR_REPLAY_CALL(device.call, CreateDevice, device.physical, &info, nullptr, &device.handle));
  device.call.init(vk::Device(device.handle));
  device.call.vkGetDeviceQueue(device.handle, device.family, 0, &device.queue);
  return {};
}

}  // namespace

// Opens Vulkan and picks a device by `wanted`, a number or a part of its name.
Result<Device> pick_device(std::uint32_t api_version, const std::string& wanted,
                           const char* program) {
  Device device;
  WEIR_TRY(const probes::VulkanDevices all,
           probes::open_vulkan(program, std::max<std::uint32_t>(api_version, VK_API_VERSION_1_1)));
  device.call = all.call;
  if (device.call.vkGetPhysicalDeviceProperties2 == nullptr) {
    return left_out_error("the Vulkan loader is too old: 1.1 is needed");
  }
  WEIR_CHECK(pick(all.devices, wanted, device));
  return device;
}

Result<Device> open_device(const probes::RecordedDevice& recorded, const std::string& wanted,
                           const char* program, bool timed) {
  WEIR_TRY(Device device, pick_device(recorded.api_version, wanted, program));
  device.call.vkGetPhysicalDeviceMemoryProperties(device.physical, &device.memory);
  WEIR_CHECK(pick_family(timed, device));
  WEIR_CHECK(make_device(recorded, device));
  return device;
}

}  // namespace weir::replay
