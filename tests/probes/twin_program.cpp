// Plays what a twin must bear, for twin_driver_test.cpp. Exit 1 with a line where it does not.
//
//   twin_program record NAME PATH     describes the first device; "discrete": as a card of 16 GiB,
//                                     "open": one whose memory is open to the host
//   twin_program random FIRST COUNT   that many random sequences, in three threads
//   twin_program SCENE
#include <map>
#include <string>

#include "tests/probes/twin_blob.hpp"
#include "tests/probes/twin_random.hpp"
#include "tests/probes/vulkan_program.hpp"

// Programs end without destroying what they made, and so do lavapipe and this one: leaks are not
// what is looked for here.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }

namespace weir::probes {
namespace {

constexpr VkDeviceSize k_gib = VkDeviceSize{1} << 30;

void require(bool holds, const char* what) {
  if (!holds) fail(what);
}
#define REQUIRE(holds) require(holds, #holds)

// Memory of its own and the host's, as cards have it, and several queues.
void make_card(const Change& change, bool open) {
  constexpr VkMemoryPropertyFlags k_host =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  change.properties->deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
  std::strcpy(change.properties->deviceName, "Twin of a card");
  (*change.families)[0].queueCount = 8;
  VkPhysicalDeviceMemoryProperties& memory = *change.memory;
  memory = {};
  memory.memoryHeapCount = 2;
  memory.memoryHeaps[0] = {16 * k_gib, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT};
  memory.memoryHeaps[1] = {8 * k_gib, 0};
  memory.memoryTypeCount = 3;
  memory.memoryTypes[0] = {VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0};
  memory.memoryTypes[1] = {k_host, 1};
  memory.memoryTypes[2] = {k_host | VK_MEMORY_PROPERTY_HOST_CACHED_BIT, 1};
  if (open) {
    memory.memoryTypeCount = 4;
    memory.memoryTypes[3] = {k_host | VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0};
  }
}

void record(const std::string& name, const std::string& path) {
  const Vulkan vk;
  const std::string blob = describe(vk.physical, name, [&](const Change& change) {
    if (name == "discrete" || name == "open") make_card(change, name == "open");
  });
  std::ofstream(path, std::ios::binary) << blob;
}

uint8_t fill_byte() {
  const char* fill = std::getenv(WEIR_TWIN_FILL_VARIABLE);
  return static_cast<uint8_t>(fill == nullptr ? 0 : std::atoi(fill));
}

void random(uint64_t first, uint64_t count) {
  constexpr uint32_t k_threads = 3;
  const Vulkan vk(VK_API_VERSION_1_3, 2 * k_threads);
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < k_threads; ++t) {
    threads.emplace_back([&, t] {
      VkQueue queue, second_queue;
      vkGetDeviceQueue(vk.device, 0, 2 * t, &queue);
      vkGetDeviceQueue(vk.device, 0, 2 * t + 1, &second_queue);
      for (uint64_t seed = first + t; seed < first + count; seed += k_threads) {
        Sequence(vk, queue, second_queue, seed, fill_byte()).play();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  vk.destroy();
}

VkResult allocate(const Vulkan& vk, VkDeviceSize size, uint32_t type, VkDeviceMemory* out) {
  VkMemoryAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  info.allocationSize = size;
  info.memoryTypeIndex = type;
  return vkAllocateMemory(vk.device, &info, nullptr, out);
}

VkDeviceSize used(const Vulkan& vk, uint32_t heap) {
  VkPhysicalDeviceMemoryBudgetPropertiesEXT budget{};
  budget.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT;
  VkPhysicalDeviceMemoryProperties2 memory{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2, &budget, {}};
  vkGetPhysicalDeviceMemoryProperties2(vk.physical, &memory);
  REQUIRE(budget.heapBudget[heap] == memory.memoryProperties.memoryHeaps[heap].size);
  return budget.heapUsage[heap];
}

// A card's 16 GiB can be given away once, and are there again afterwards.
void heap() {
  const Vulkan vk;
  const VkDeviceSize before = used(vk, 0);
  VkDeviceMemory most, more;
  CHECK(allocate(vk, 15 * k_gib, 0, &most));
  REQUIRE(used(vk, 0) == before + 15 * k_gib);
  REQUIRE(allocate(vk, k_gib, 0, &more) == VK_ERROR_OUT_OF_DEVICE_MEMORY);
  void* bytes = nullptr;
  REQUIRE(vkMapMemory(vk.device, most, 0, 4096, 0, &bytes) == VK_ERROR_MEMORY_MAP_FAILED);
  vkFreeMemory(vk.device, most, nullptr);
  REQUIRE(used(vk, 0) == before);
  CHECK(allocate(vk, k_gib, 0, &more));
}

// Memory of its own, where a page counts once however often it is mapped. Without files: a library
// weighs less once another process maps it too, which has nothing to do with this one.
uint64_t own_kib() {
  std::ifstream in("/proc/self/smaps_rollup");
  uint64_t sum = 0, kib = 0;
  int fields = 0;
  for (std::string word; in >> word;) {
    if ((word != "Pss_Anon:" && word != "Pss_Shmem:") || !(in >> kib)) continue;
    sum += kib;
    ++fields;
  }
  REQUIRE(fields == 2);
  return sum;
}

// Two GiB of a card's open memory are written, and take a window of this machine's.
void open_memory() {
  const Vulkan vk;
  const uint64_t before = own_kib();
  VkDeviceMemory memory;
  CHECK(allocate(vk, 2 * k_gib, 3, &memory));
  void* mapped = nullptr;
  CHECK(vkMapMemory(vk.device, memory, 0, VK_WHOLE_SIZE, 0, &mapped));
  auto* bytes = static_cast<uint8_t*>(mapped);
  REQUIRE(bytes[k_gib + 5] == fill_byte());
  for (VkDeviceSize at = 0; at < 2 * k_gib; at += 4096) bytes[at] = 7;
  REQUIRE(own_kib() < before + 100 * 1024);
  REQUIRE(bytes[2 * k_gib - 4096] == 7);
}

// Zeroing memory that was never written gives it no pages; reading it back is the fill byte.
void untouched() {
  const Vulkan vk;
  const uint64_t before = own_kib();
  const OwnBuffer there = make_buffer(vk, k_gib, 0, false);
  OwnBuffer here = make_buffer(vk, k_gib, 1, false);
  void* mapped = nullptr;
  CHECK(vkMapMemory(vk.device, here.memory, 0, VK_WHOLE_SIZE, 0, &mapped));
  here.bytes = static_cast<uint8_t*>(mapped);
  const VkCommandBuffer work = vk.begin();
  vkCmdFillBuffer(work, there.buffer, 0, VK_WHOLE_SIZE, 0);
  vkCmdFillBuffer(work, here.buffer, 0, VK_WHOLE_SIZE, fill_byte() * 0x01010101U);
  const VkBufferCopy region{0, 100, k_gib - 100};
  vkCmdCopyBuffer(work, there.buffer, here.buffer, 1, &region);
  CHECK(vkEndCommandBuffer(work));
  vk.submit({work});
  CHECK(vkQueueWaitIdle(vk.queue));
  REQUIRE(own_kib() < before + 40 * 1024);
  for (VkDeviceSize at = 0; at < k_gib; at += 65537) REQUIRE(here.bytes[at] == fill_byte());
}

// Refused with a line and an error, and the program goes on.
void graphics() {
  const Vulkan vk;
  VkGraphicsPipelineCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_GRAPHICS_PIPELINE_CREATE_INFO;
  auto pipeline = (VkPipeline)1;
  for (int i = 0; i < 2; ++i) {
    REQUIRE(vkCreateGraphicsPipelines(vk.device, VK_NULL_HANDLE, 1, &info, nullptr, &pipeline) ==
            VK_ERROR_FEATURE_NOT_PRESENT);
  }
  REQUIRE(pipeline == VK_NULL_HANDLE);
  VkRenderPassCreateInfo pass_info{};
  VkRenderPass pass;
  REQUIRE(vkCreateRenderPass(vk.device, &pass_info, nullptr, &pass) ==
          VK_ERROR_FEATURE_NOT_PRESENT);
  VkImageCreateInfo image_info{};
  VkImage image;
  REQUIRE(vkCreateImage(vk.device, &image_info, nullptr, &image) == VK_ERROR_FEATURE_NOT_PRESENT);
  const VkCommandBuffer work = vk.begin();
  vkCmdDraw(work, 3, 1, 0, 0);
  vkCmdEndRenderPass(work);
  Vulkan::dispatch(work, vk.add, 1);
  CHECK(vkEndCommandBuffer(work));
  vk.submit({work});
  CHECK(vkQueueWaitIdle(vk.queue));
  vkDestroyImage(vk.device, VK_NULL_HANDLE, nullptr);
  REQUIRE(vkGetDeviceProcAddr(vk.device, "vkCreateSwapchainKHR") == nullptr);  // not asked for
  REQUIRE(vkGetDeviceProcAddr(vk.device, "vkNoSuchFunction") == nullptr);
  REQUIRE(vkGetDeviceProcAddr(vk.device, "vkCmdDrawMeshTasksNV") == nullptr);
}

// Features that the description does not offer are refused; all that it offers can be had at once.
void offers() {
  const Vulkan vk;
  const float priority = 1;
  VkDeviceQueueCreateInfo queue{};
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkPhysicalDeviceVulkan12Features twelve{};
  twelve.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  VkPhysicalDeviceFeatures2 all{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &twelve, {}};
  vkGetPhysicalDeviceFeatures2(vk.physical, &all);
  uint32_t count = 0;
  vkEnumerateDeviceExtensionProperties(vk.physical, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> extensions(count);
  vkEnumerateDeviceExtensionProperties(vk.physical, nullptr, &count, extensions.data());
  std::vector<const char*> names;
  for (const VkExtensionProperties& extension : extensions)
    names.push_back(extension.extensionName);
  VkDeviceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.pNext = &all;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = count;
  info.ppEnabledExtensionNames = names.data();
  VkDevice device;
  CHECK(vkCreateDevice(vk.physical, &info, nullptr, &device));
  REQUIRE(vkGetDeviceProcAddr(device, "vkCmdPushDescriptorSetKHR") != nullptr);
  vkDestroyDevice(device, nullptr);
  REQUIRE(twelve.bufferDeviceAddressCaptureReplay == VK_FALSE);  // as lavapipe answers
  twelve.bufferDeviceAddressCaptureReplay = VK_TRUE;
  REQUIRE(vkCreateDevice(vk.physical, &info, nullptr, &device) == VK_ERROR_FEATURE_NOT_PRESENT);
  twelve.bufferDeviceAddressCaptureReplay = VK_FALSE;
  // A struct with one feature has padding behind it: what lies there is no wish.
  VkPhysicalDevicePipelineRobustnessFeaturesEXT robustness;
  memset(&robustness, 0, sizeof robustness);
  robustness.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_ROBUSTNESS_FEATURES_EXT;
  const VkBool32 leftover = VK_TRUE;
  static_assert(sizeof robustness ==
                offsetof(VkPhysicalDevicePipelineRobustnessFeaturesEXT, pipelineRobustness) +
                    2 * sizeof leftover);
  memcpy(reinterpret_cast<char*>(&robustness) + sizeof robustness - sizeof leftover, &leftover,
         sizeof leftover);
  twelve.pNext = &robustness;
  CHECK(vkCreateDevice(vk.physical, &info, nullptr, &device));
  vkDestroyDevice(device, nullptr);
  twelve.pNext = nullptr;
  REQUIRE(all.features.sparseBinding == VK_FALSE);
  all.features.sparseBinding = VK_TRUE;
  REQUIRE(vkCreateDevice(vk.physical, &info, nullptr, &device) == VK_ERROR_FEATURE_NOT_PRESENT);
  all.features.sparseBinding = VK_FALSE;
  names.push_back("VK_NV_no_such_extension");
  info.enabledExtensionCount = count + 1;
  info.ppEnabledExtensionNames = names.data();
  REQUIRE(vkCreateDevice(vk.physical, &info, nullptr, &device) == VK_ERROR_EXTENSION_NOT_PRESENT);
}

// An event that the host sets while the queue waits for it.
void host_event() {
  const Vulkan vk;
  VkEventCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_EVENT_CREATE_INFO;
  VkEvent event;
  CHECK(vkCreateEvent(vk.device, &info, nullptr, &event));
  const VkCommandBuffer work = vk.begin();
  vkCmdWaitEvents(work, 1, &event, VK_PIPELINE_STAGE_HOST_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0,
                  nullptr, 0, nullptr, 0, nullptr);
  Vulkan::dispatch(work, vk.add, 1);
  CHECK(vkEndCommandBuffer(work));
  const VkFence done = vk.fence();
  vk.submit({work}, done);
  REQUIRE(vkGetFenceStatus(vk.device, done) == VK_NOT_READY);
  REQUIRE(vkWaitForFences(vk.device, 1, &done, VK_TRUE, 1000000) == VK_TIMEOUT);
  std::thread setter([&] { CHECK(vkSetEvent(vk.device, event)); });
  vk.wait(done);
  setter.join();
}

// The devices in order, one a line: name and UUID.
void list() {
  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.apiVersion = VK_API_VERSION_1_1;
  VkInstanceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pApplicationInfo = &application;
  VkInstance instance;
  CHECK(vkCreateInstance(&info, nullptr, &instance));
  uint32_t count = 8;
  VkPhysicalDevice devices[8];
  CHECK(vkEnumeratePhysicalDevices(instance, &count, devices));
  for (uint32_t i = 0; i < count; ++i) {
    const auto get = reinterpret_cast<PFN_vkGetPhysicalDeviceProperties2>(
        vkGetInstanceProcAddr(instance, "vkGetPhysicalDeviceProperties2"));
    VkPhysicalDeviceIDProperties ids{};
    ids.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES;
    VkPhysicalDeviceProperties2 all{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &ids, {}};
    get(devices[i], &all);
    std::printf("%s ", all.properties.deviceName);
    for (const uint8_t byte : ids.deviceUUID) std::printf("%02x", byte);
    std::printf("\n");
  }
  vkDestroyInstance(instance, nullptr);
}

}  // namespace
}  // namespace weir::probes

int main(int argc, char** argv) {
  using namespace weir::probes;
  const std::map<std::string, void (*)()> scenes{
      {"heap", heap},     {"open memory", open_memory}, {"untouched", untouched}, {"list", list},
      {"offers", offers}, {"host event", host_event},   {"graphics", graphics},
  };
  const std::string what = argc > 1 ? argv[1] : "";
  if (argc == 4 && what == "record") {
    record(argv[2], argv[3]);
  } else if (argc == 4 && what == "random") {
    random(std::stoull(argv[2]), std::stoull(argv[3]));
  } else if (const auto scene = scenes.find(what); argc == 2 && scene != scenes.end()) {
    scene->second();
  } else {
    return 2;
  }
}
