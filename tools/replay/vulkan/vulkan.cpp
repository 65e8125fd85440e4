// weir-replay-vulkan FILE: runs each recorded kernel alone (docs/how-to/replay-kernels.md).
//
//   --device NAME|NUMBER   which device (default: the first one)
//   --runs N --seconds S   timed runs of each, fewer where they would take longer than S
//   --memory MIB           what one of them may take
//   --from N               begin with this one
//
// A program of its own, so that a driver that crashes takes only this down: before each work a line
// says which one it is, so whoever started this knows where to go on. JSON lines on standard
// output. Exit 0 when it came to the end, 1 with an error on standard error, 2 for wrong arguments,
// 3 when the device is lost: `--from` goes on behind it.
#include "tools/replay/vulkan/vulkan.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <span>
#include <string_view>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/probes/twin/structs.h"
#include "gate/sys/files.hpp"

namespace weir::replay {
namespace {

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
    device.driver = text::printable(fmt::format("{} {}", driver.driverName, driver.driverInfo));
    device.least_subgroup = subgroups.minSubgroupSize;
    device.most_subgroup = subgroups.maxSubgroupSize;
    return {};
  }
  if (names.empty()) return left_out("no Vulkan device");
  return left_out("no device \"{}\"; there are: {}", wanted, text::join(names));
}

// A chain of structs as Vulkan wants them, from the values of recorded ones.
class Chain {
 public:
  struct Link {
    const weir_struct* known;  // null: VkPhysicalDeviceFeatures2
    std::vector<std::uint64_t> bytes;
    [[nodiscard]] VkBaseOutStructure* head() {
      return reinterpret_cast<VkBaseOutStructure*>(bytes.data());
    }
    [[nodiscard]] std::uint32_t* values() { return reinterpret_cast<std::uint32_t*>(head() + 1); }
    [[nodiscard]] std::size_t count() const {
      const std::size_t size = known == nullptr ? sizeof(VkPhysicalDeviceFeatures2) : known->size;
      return (size - sizeof(VkBaseOutStructure)) / sizeof(VkBool32);
    }
  };

  // Those that are known, of the recorded size; the core features always.
  explicit Chain(const std::vector<probes::RecordedFeatures>& recorded) {
    constexpr std::uint32_t k_core = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    add(k_core, nullptr, sizeof(VkPhysicalDeviceFeatures2));
    const std::span all(weir_structs, weir_struct_count);
    for (const auto& one : recorded) {
      const weir_struct* known = first_of(all, [&](const weir_struct& each) {
        return each.chain == WEIR_CHAIN_FEATURES && each.type == one.type;
      });
      if (one.type != k_core && known == nullptr) continue;
      Link& link = one.type == k_core ? links_.front() : add(one.type, known, known->size);
      std::memcpy(link.values(), one.values.data(), std::min(one.values.size(), link.count() * 4));
    }
  }
  [[nodiscard]] std::vector<Link>& links() { return links_; }
  // In order; the first one's address.
  void* linked() {
    for (std::size_t i = 0; i < links_.size(); ++i) {
      links_[i].head()->pNext = i + 1 < links_.size() ? links_[i + 1].head() : nullptr;
    }
    return links_.front().head();
  }

 private:
  Link& add(std::uint32_t type, const weir_struct* known, std::size_t size) {
    Link& link = links_.emplace_back(Link{known, std::vector<std::uint64_t>((size + 7) / 8)});
    link.head()->sType = static_cast<VkStructureType>(type);
    return link;
  }
  std::vector<Link> links_;
};

std::string field_name(const weir_struct* known, std::size_t word) {
  if (known == nullptr) return fmt::format("core feature {}", word);
  for (std::uint16_t i = 0; i < known->field_count; ++i) {
    if (known->fields[i].offset == sizeof(VkBaseOutStructure) + word * 4) {
      return known->fields[i].name;
    }
  }
  return fmt::format("{} {}", known->name, word);
}

// What was recorded, without what this device lacks.
Chain features_of(const probes::RecordedDevice& recorded, Device& device) {
  Chain wanted(recorded.features);
  Chain there(recorded.features);
  // A driver leaves alone what it does not know.
  for (auto& link : there.links()) std::fill_n(link.values(), link.count(), 0U);
  device.call.vkGetPhysicalDeviceFeatures2(device.physical,
                                           static_cast<VkPhysicalDeviceFeatures2*>(there.linked()));
  std::vector<std::string> lost;
  for (std::size_t i = 0; i < wanted.links().size(); ++i) {
    auto& link = wanted.links()[i];
    const std::uint32_t* supported = there.links()[i].values();
    for (std::size_t word = 0; word < link.count(); ++word) {
      std::uint32_t& value = link.values()[word];
      if (value == 0) continue;
      value = supported[word] != 0 ? VK_TRUE : VK_FALSE;
      if (value == 0) lost.push_back(field_name(link.known, word));
    }
  }
  // A struct of which nothing is asked for may belong to an extension that is not there.
  std::erase_if(wanted.links(), [](Chain::Link& link) {
    return link.known != nullptr && std::all_of(link.values(), link.values() + link.count(),
                                                [](std::uint32_t value) { return value == 0; });
  });
  if (!lost.empty()) {
    device.warnings.push_back("without features that were on: " + text::join(lost));
  }
  return wanted;
}

// What needs a window is not needed here.
bool shows_pictures(const std::string& extension) {
  return extension.find("swapchain") != std::string::npos ||
         extension.find("display") != std::string::npos ||
         extension.find("present") != std::string::npos;
}

Result<std::vector<std::string>> extensions_of(const probes::RecordedDevice& recorded,
                                               Device& device) {
  std::uint32_t count = 0;
  std::vector<VkExtensionProperties> there;
  for (int round = 0; round < 2; ++round) {  // how many, then which
    there.resize(count);
    WEIR_CHECK(WEIR_REPLAY_CALL(device.call, EnumerateDeviceExtensionProperties, device.physical,
                                nullptr, &count, round == 0 ? nullptr : there.data()));
  }
  std::vector<std::string> out, lost;
  for (const std::string& name : recorded.extensions) {
    if (shows_pictures(name)) continue;
    const bool found = std::any_of(there.begin(), there.end(),
                                   [&](const auto& one) { return name == one.extensionName; });
    (found ? out : lost).push_back(name);
  }
  if (!lost.empty()) {
    device.warnings.push_back("without extensions that were on: " + text::join(lost));
  }
  return out;
}

Result<std::uint32_t> family_of(Device& device) {
  VkQueueFamilyProperties families[32];
  std::uint32_t count = 32;
  device.call.vkGetPhysicalDeviceQueueFamilyProperties(device.physical, &count, families);
  for (std::uint32_t i = 0; i < count; ++i) {
    if ((families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) continue;
    if (families[i].timestampValidBits == 0) continue;
    device.stamp_bits = families[i].timestampValidBits;
    return i;
  }
  return left_out("{} has no queue that computes and has timestamps", device.name);
}

Result<void> make_device(const probes::RecordedDevice& recorded, std::uint32_t family,
                         Device& device) {
  WEIR_TRY(const std::vector<std::string> extensions, extensions_of(recorded, device));
  std::vector<const char*> names;
  for (const std::string& name : extensions) names.push_back(name.c_str());
  Chain features = features_of(recorded, device);
  const float priority = 1;
  const auto queue = of_type<vk::DeviceQueueCreateInfo>(0U, family, 1U, &priority);
  auto info = of_type<vk::DeviceCreateInfo>(
      0U, 1U, &queue, 0U, nullptr, static_cast<std::uint32_t>(names.size()), names.data(), nullptr);
  info.pNext = features.linked();
  WEIR_CHECK(
      WEIR_REPLAY_CALL(device.call, CreateDevice, device.physical, &info, nullptr, &device.handle));
  device.call.init(vk::Device(device.handle));
  device.call.vkGetDeviceQueue(device.handle, family, 0, &device.queue);
  return {};
}

Result<void> make_tools(std::uint32_t family, Device& device) {
  const auto pool =
      of_type<vk::CommandPoolCreateInfo>(VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT, family);
  VkCommandPool command_pool = VK_NULL_HANDLE;
  WEIR_CHECK(WEIR_REPLAY_MAKE(device, CreateCommandPool, &pool, &command_pool));
  const auto commands =
      of_type<vk::CommandBufferAllocateInfo>(command_pool, VK_COMMAND_BUFFER_LEVEL_PRIMARY, 1U);
  WEIR_CHECK(WEIR_REPLAY_CALL(device.call, AllocateCommandBuffers, device.handle, &commands,
                              &device.commands));
  const auto queries = of_type<vk::QueryPoolCreateInfo>(0U, VK_QUERY_TYPE_TIMESTAMP, k_queries, 0U);
  WEIR_CHECK(WEIR_REPLAY_MAKE(device, CreateQueryPool, &queries, &device.queries));
  const auto fence = of_type<vk::FenceCreateInfo>();
  return WEIR_REPLAY_MAKE(device, CreateFence, &fence, &device.fence);
}

// `wanted`: the part of a name, or a number; "": the first one. Code::unavailable where there is
// none, or none that can time.
Result<Device> open_device(const probes::RecordedDevice& recorded, const std::string& wanted) {
  Device device;
  WEIR_TRY(const probes::VulkanDevices all,
           probes::open_vulkan("weir-replay-vulkan",
                               std::max<std::uint32_t>(recorded.api_version, VK_API_VERSION_1_1)));
  device.call = all.call;
  if (device.call.vkGetPhysicalDeviceProperties2 == nullptr) {
    return left_out("the Vulkan loader is too old: 1.1 is needed");
  }
  WEIR_CHECK(pick(all.devices, wanted, device));
  device.call.vkGetPhysicalDeviceMemoryProperties(device.physical, &device.memory);
  WEIR_TRY(const std::uint32_t family, family_of(device));
  WEIR_CHECK(make_device(recorded, family, device));
  WEIR_CHECK(make_tools(family, device));
  return device;
}

struct Arguments {
  std::string file, device;
  std::uint64_t from = 0;
  Wishes wishes;
};

bool take(std::string_view name, const std::string& value, Arguments& out) {
  if (name == "--device") {
    out.device = value;
    return true;
  }
  if (name == "--seconds") {
    const auto seconds = text::to_double(value);
    if (!seconds || *seconds < 0 || *seconds > 3600) return false;
    out.wishes.seconds = *seconds;
    return true;
  }
  const auto number = text::to_int(value);
  if (!number || *number < 0 || *number > 1LL << 32) return false;
  const auto whole = static_cast<std::uint64_t>(*number);
  if (name == "--from") out.from = whole;
  if (name == "--memory") out.wishes.memory = whole << 20;
  if (name == "--runs") {
    out.wishes.runs = static_cast<std::uint32_t>(std::min<std::uint64_t>(whole, k_most_runs));
  }
  return name == "--from" || name == "--memory" || name == "--runs";
}

// The exit code.
Result<int> replay_all(const Arguments& arguments) {
  const auto bytes = sys::RealFiles().read(arguments.file, probes::k_most_kernels_mib << 20);
  const auto recorded =
      bytes ? probes::read_recorded_kernels(*bytes) : tl::unexpected(bytes.error());
  if (!recorded) return tl::unexpected(with_context(arguments.file, recorded.error()));
  // A program with several devices: each work runs on one made as its own was, opened when it
  // comes.
  std::map<std::uint32_t, Device> devices;
  for (std::size_t i = arguments.from; i < recorded->works.size(); ++i) {
    const auto& work = recorded->works[i];
    const std::uint32_t made_on = recorded->pipelines[work.pipeline].head.device;
    if (!devices.contains(made_on)) {
      WEIR_TRY(Device fresh, open_device(recorded->devices[made_on], arguments.device));
      print({{"device", fresh.name}, {"driver", fresh.driver}, {"warnings", fresh.warnings}});
      devices.emplace(made_on, std::move(fresh));
    }
    print({{"begins", i}});
    const auto outcome = replay(devices.at(made_on), *recorded, work, arguments.wishes);
    Json line = {{"work", i}, {"seconds", outcome.seconds}};
    if (!outcome.left_out.empty()) line = {{"work", i}, {"left_out", outcome.left_out}};
    print(line);
    if (outcome.lost) return 3;
  }
  print({{"ends", recorded->works.size()}});
  return 0;
}

}  // namespace
}  // namespace weir::replay

int main(int count, char** values) {
  using namespace weir::replay;
  Arguments arguments;
  for (int i = 1; i < count; ++i) {
    const std::string_view name = values[i];
    if (!name.starts_with("--") && arguments.file.empty()) {
      arguments.file = name;
    } else if (i + 1 == count || !take(name, values[++i], arguments)) {
      std::fprintf(stderr, "weir-replay-vulkan: what is %s for?\n",
                   values[i < count ? i : count - 1]);
      return 2;
    }
  }
  if (arguments.file.empty()) {
    std::fputs("weir-replay-vulkan: no file\n", stderr);
    return 2;
  }
  const auto status = replay_all(arguments);
  if (!status) std::fprintf(stderr, "weir-replay-vulkan: %s\n", status.error().message.c_str());
  std::fflush(stdout);
  std::_Exit(status.value_or(1));  // no driver's destructors
}
