// One shader, bound in each way that Vulkan knows: for replay_kernels.cpp, which knows what must be
// recorded of it. Each way has a pipeline of its name. Nothing here knows of the layer.
//
// Every dispatch is of 2 groups with 5 as push constant and 64 as constant 3; it reads 1024 bytes
// at binding 0, writes 2048 at binding 1, and has nothing at binding 7 of the layout.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <vulkan/vulkan.h>

namespace {

constexpr std::uint32_t k_code[] =
#include "kernel_scenes.inc"
    ;
constexpr VkDeviceSize k_input = 1024, k_output = 2048, k_buffer_bytes = 16384;
constexpr auto k_bound = VK_PIPELINE_BIND_POINT_COMPUTE;

#define CHECK(call)                        \
  do {                                     \
    if ((call) != VK_SUCCESS) {            \
      std::fprintf(stderr, "%s\n", #call); \
      std::exit(1);                        \
    }                                      \
  } while (false)

template <class T>
T of_type(VkStructureType type) {
  T out{};
  out.sType = type;
  return out;
}

VkInstance g_instance;
VkPhysicalDevice g_physical;
VkDevice g_device;
VkQueue g_queue;
VkCommandPool g_pool;
VkDescriptorPool g_sets;

template <class Function>
Function get(const char* name) {
  return reinterpret_cast<Function>(vkGetDeviceProcAddr(g_device, name));
}

void open() {
  auto application = of_type<VkApplicationInfo>(VK_STRUCTURE_TYPE_APPLICATION_INFO);
  application.apiVersion = VK_API_VERSION_1_1;
  const char* names = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
  auto instance = of_type<VkInstanceCreateInfo>(VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO);
  instance.pApplicationInfo = &application;
  instance.enabledExtensionCount = 1;
  instance.ppEnabledExtensionNames = &names;
  CHECK(vkCreateInstance(&instance, nullptr, &g_instance));
  std::uint32_t count = 1;
  vkEnumeratePhysicalDevices(g_instance, &count, &g_physical);
  if (count == 0) std::exit(1);
  const float priority = 1;
  auto queue = of_type<VkDeviceQueueCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO);
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  const char* extension = VK_KHR_PUSH_DESCRIPTOR_EXTENSION_NAME;
  auto device = of_type<VkDeviceCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO);
  device.queueCreateInfoCount = 1;
  device.pQueueCreateInfos = &queue;
  device.enabledExtensionCount = 1;
  device.ppEnabledExtensionNames = &extension;
  CHECK(vkCreateDevice(g_physical, &device, nullptr, &g_device));
  vkGetDeviceQueue(g_device, 0, 0, &g_queue);
  const auto pool = of_type<VkCommandPoolCreateInfo>(VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO);
  CHECK(vkCreateCommandPool(g_device, &pool, nullptr, &g_pool));
  const VkDescriptorPoolSize sizes[] = {{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 32},
                                        {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER_DYNAMIC, 4}};
  auto sets = of_type<VkDescriptorPoolCreateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO);
  sets.maxSets = 16;
  sets.poolSizeCount = 2;
  sets.pPoolSizes = sizes;
  CHECK(vkCreateDescriptorPool(g_device, &sets, nullptr, &g_sets));
}

VkBuffer buffer() {
  auto info = of_type<VkBufferCreateInfo>(VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO);
  info.size = k_buffer_bytes;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT |
               VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  VkBuffer handle;
  CHECK(vkCreateBuffer(g_device, &info, nullptr, &handle));
  VkMemoryRequirements needs;
  vkGetBufferMemoryRequirements(g_device, handle, &needs);
  auto memory = of_type<VkMemoryAllocateInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO);
  memory.allocationSize = needs.size;
  VkDeviceMemory bytes;
  CHECK(vkAllocateMemory(g_device, &memory, nullptr, &bytes));
  CHECK(vkBindBufferMemory(g_device, handle, bytes, 0));
  return handle;
}

struct Layouts {
  VkDescriptorSetLayout set;
  VkPipelineLayout pipeline;
};
Layouts layouts(VkDescriptorType input, VkDescriptorSetLayoutCreateFlags flags) {
  const VkDescriptorSetLayoutBinding bindings[] = {
      {7, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr},
      {1, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr},
      {0, input, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr}};
  auto info =
      of_type<VkDescriptorSetLayoutCreateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO);
  info.flags = flags;
  info.bindingCount = 3;
  info.pBindings = bindings;
  Layouts out{};
  CHECK(vkCreateDescriptorSetLayout(g_device, &info, nullptr, &out.set));
  const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, 4};
  auto layout_info =
      of_type<VkPipelineLayoutCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO);
  layout_info.setLayoutCount = 1;
  layout_info.pSetLayouts = &out.set;
  layout_info.pushConstantRangeCount = 1;
  layout_info.pPushConstantRanges = &range;
  CHECK(vkCreatePipelineLayout(g_device, &layout_info, nullptr, &out.pipeline));
  return out;
}

VkPipeline pipeline(VkPipelineLayout layout, const char* name, bool base = false) {
  auto module = of_type<VkShaderModuleCreateInfo>(VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO);
  module.codeSize = sizeof k_code;
  module.pCode = k_code;
  VkShaderModule code;
  CHECK(vkCreateShaderModule(g_device, &module, nullptr, &code));
  const std::uint32_t size = 64;
  const VkSpecializationMapEntry entry{3, 0, sizeof size};
  const VkSpecializationInfo special{1, &entry, sizeof size, &size};
  auto info = of_type<VkComputePipelineCreateInfo>(VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO);
  if (base) info.flags = VK_PIPELINE_CREATE_DISPATCH_BASE_BIT;
  info.layout = layout;
  info.stage =
      of_type<VkPipelineShaderStageCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO);
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = code;
  info.stage.pName = "main";
  info.stage.pSpecializationInfo = &special;
  VkPipeline handle;
  CHECK(vkCreateComputePipelines(g_device, VK_NULL_HANDLE, 1, &info, nullptr, &handle));
  vkDestroyShaderModule(g_device, code, nullptr);
  auto named =
      of_type<VkDebugUtilsObjectNameInfoEXT>(VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT);
  named.objectType = VK_OBJECT_TYPE_PIPELINE;
  named.objectHandle = (std::uint64_t)handle;
  named.pObjectName = name;
  get<PFN_vkSetDebugUtilsObjectNameEXT>("vkSetDebugUtilsObjectNameEXT")(g_device, &named);
  return handle;
}

VkDescriptorSet set(const Layouts& of) {
  auto info = of_type<VkDescriptorSetAllocateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO);
  info.descriptorPool = g_sets;
  info.descriptorSetCount = 1;
  info.pSetLayouts = &of.set;
  VkDescriptorSet handle;
  CHECK(vkAllocateDescriptorSets(g_device, &info, &handle));
  return handle;
}

VkWriteDescriptorSet make_write(VkDescriptorSet into, std::uint32_t first,
                                const VkDescriptorBufferInfo* bound, std::uint32_t count,
                                VkDescriptorType type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER) {
  auto write = of_type<VkWriteDescriptorSet>(VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET);
  write.dstSet = into;
  write.dstBinding = first;
  write.descriptorCount = count;
  write.descriptorType = type;
  write.pBufferInfo = bound;
  return write;
}

VkCommandBuffer begin(bool secondary = false) {
  auto info = of_type<VkCommandBufferAllocateInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO);
  info.commandPool = g_pool;
  info.level = secondary ? VK_COMMAND_BUFFER_LEVEL_SECONDARY : VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  info.commandBufferCount = 1;
  VkCommandBuffer handle;
  CHECK(vkAllocateCommandBuffers(g_device, &info, &handle));
  const auto inherited =
      of_type<VkCommandBufferInheritanceInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_INHERITANCE_INFO);
  auto start = of_type<VkCommandBufferBeginInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
  start.flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT;
  if (secondary) start.pInheritanceInfo = &inherited;
  CHECK(vkBeginCommandBuffer(handle, &start));
  return handle;
}

void use(VkCommandBuffer commands, VkPipelineLayout layout, const char* name, bool base = false) {
  const std::uint32_t more = 5;
  vkCmdBindPipeline(commands, k_bound, pipeline(layout, name, base));
  vkCmdPushConstants(commands, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, 4, &more);
}
void bind(VkCommandBuffer commands, VkPipelineLayout layout, VkDescriptorSet which,
          std::uint32_t dynamic_offset_count = 0, const std::uint32_t* dynamic = nullptr) {
  vkCmdBindDescriptorSets(commands, k_bound, layout, 0, 1, &which, dynamic_offset_count, dynamic);
}

VkDescriptorUpdateTemplate make_template(const Layouts& of, bool pushes) {
  // One entry for both bindings: the second follows in the next binding.
  const VkDescriptorUpdateTemplateEntry entry{
      0, 0, 2, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 8, sizeof(VkDescriptorBufferInfo) + 8};
  auto info = of_type<VkDescriptorUpdateTemplateCreateInfo>(
      VK_STRUCTURE_TYPE_DESCRIPTOR_UPDATE_TEMPLATE_CREATE_INFO);
  info.descriptorUpdateEntryCount = 1;
  info.pDescriptorUpdateEntries = &entry;
  info.templateType = pushes ? VK_DESCRIPTOR_UPDATE_TEMPLATE_TYPE_PUSH_DESCRIPTORS_KHR
                             : VK_DESCRIPTOR_UPDATE_TEMPLATE_TYPE_DESCRIPTOR_SET;
  info.descriptorSetLayout = of.set;
  info.pipelineBindPoint = k_bound;
  info.pipelineLayout = of.pipeline;
  VkDescriptorUpdateTemplate handle;
  CHECK(vkCreateDescriptorUpdateTemplate(g_device, &info, nullptr, &handle));
  return handle;
}

}  // namespace

int main() {
  open();
  const VkBuffer from = buffer(), to = buffer();
  const Layouts plain = layouts(VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 0);
  const Layouts dynamic = layouts(VK_DESCRIPTOR_TYPE_STORAGE_BUFFER_DYNAMIC, 0);
  const Layouts pushed = layouts(VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                 VK_DESCRIPTOR_SET_LAYOUT_CREATE_PUSH_DESCRIPTOR_BIT_KHR);
  const VkDescriptorBufferInfo both[] = {{from, 0, k_input}, {to, 0, k_output}};
  const VkCommandBuffer commands = begin();

  const VkDescriptorSet written = set(plain);
  const auto write = make_write(written, 0, both, 2);  // the second is the next binding
  vkUpdateDescriptorSets(g_device, 1, &write, 0, nullptr);
  use(commands, plain.pipeline, "written");
  bind(commands, plain.pipeline, written);
  for (int i = 0; i < 3; ++i) vkCmdDispatch(commands, 2, 1, 1);

  const VkDescriptorSet moved = set(dynamic);
  const VkWriteDescriptorSet two[] = {
      make_write(moved, 0, &both[0], 1, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER_DYNAMIC),
      make_write(moved, 1, &both[1], 1)};
  vkUpdateDescriptorSets(g_device, 2, two, 0, nullptr);
  use(commands, dynamic.pipeline, "dynamic");
  const std::uint32_t offset = 256;
  bind(commands, dynamic.pipeline, moved, 1, &offset);
  vkCmdDispatch(commands, 2, 1, 1);

  const VkDescriptorSet copied = set(plain);
  auto copy = of_type<VkCopyDescriptorSet>(VK_STRUCTURE_TYPE_COPY_DESCRIPTOR_SET);
  copy.srcSet = written;
  copy.dstSet = copied;
  copy.descriptorCount = 2;
  vkUpdateDescriptorSets(g_device, 0, nullptr, 1, &copy);
  use(commands, plain.pipeline, "copied");
  bind(commands, plain.pipeline, copied);
  vkCmdDispatch(commands, 2, 1, 1);

  struct Data {
    std::uint64_t before;
    VkDescriptorBufferInfo info;
  };
  const Data data[] = {{0, both[0]}, {0, both[1]}};
  const VkDescriptorSet by_template = set(plain);
  vkUpdateDescriptorSetWithTemplate(g_device, by_template, make_template(plain, false), data);
  use(commands, plain.pipeline, "template");
  bind(commands, plain.pipeline, by_template);
  vkCmdDispatch(commands, 2, 1, 1);

  use(commands, pushed.pipeline, "pushed");
  const VkWriteDescriptorSet pushes[] = {make_write(VK_NULL_HANDLE, 0, &both[0], 1),
                                         make_write(VK_NULL_HANDLE, 1, &both[1], 1)};
  get<PFN_vkCmdPushDescriptorSetKHR>("vkCmdPushDescriptorSetKHR")(commands, k_bound,
                                                                  pushed.pipeline, 0, 2, pushes);
  vkCmdDispatch(commands, 2, 1, 1);
  use(commands, pushed.pipeline, "pushed template");
  get<PFN_vkCmdPushDescriptorSetWithTemplateKHR>("vkCmdPushDescriptorSetWithTemplateKHR")(
      commands, make_template(pushed, true), pushed.pipeline, 0, data);
  vkCmdDispatch(commands, 2, 1, 1);

  const VkDescriptorSet shared = set(plain);
  const VkDescriptorBufferInfo halves[] = {{to, 4096, k_input}, {to, 8192, k_output}};
  const auto shared_write = make_write(shared, 0, halves, 2);
  vkUpdateDescriptorSets(g_device, 1, &shared_write, 0, nullptr);
  use(commands, plain.pipeline, "shared");
  bind(commands, plain.pipeline, shared);
  vkCmdDispatch(commands, 2, 1, 1);

  // Left out: group counts in memory, groups not from 0, a set with nothing in it.
  use(commands, plain.pipeline, "indirect");
  bind(commands, plain.pipeline, written);
  vkCmdDispatchIndirect(commands, from, 0);  // zeros: no groups
  use(commands, plain.pipeline, "base", true);
  vkCmdDispatchBase(commands, 1, 0, 0, 1, 1, 1);
  use(commands, plain.pipeline, "unbound");
  bind(commands, plain.pipeline, set(plain));
  vkCmdDispatch(commands, 0, 1, 1);

  const VkCommandBuffer inner = begin(true);
  use(inner, plain.pipeline, "secondary");
  bind(inner, plain.pipeline, written);
  vkCmdDispatch(inner, 2, 1, 1);
  CHECK(vkEndCommandBuffer(inner));
  vkCmdExecuteCommands(commands, 1, &inner);
  vkCmdExecuteCommands(commands, 1, &inner);
  CHECK(vkEndCommandBuffer(commands));

  const VkCommandBuffer clear = begin();
  vkCmdFillBuffer(clear, from, 0, VK_WHOLE_SIZE, 0);
  CHECK(vkEndCommandBuffer(clear));
  for (const VkCommandBuffer work : {clear, commands}) {
    auto submit = of_type<VkSubmitInfo>(VK_STRUCTURE_TYPE_SUBMIT_INFO);
    submit.commandBufferCount = 1;
    submit.pCommandBuffers = &work;
    CHECK(vkQueueSubmit(g_queue, 1, &submit, VK_NULL_HANDLE));
    CHECK(vkQueueWaitIdle(g_queue));
  }
  vkDestroyDevice(g_device, nullptr);
  vkDestroyInstance(g_instance, nullptr);
  return 0;
}
