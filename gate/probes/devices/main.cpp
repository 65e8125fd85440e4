// weir-devices: prints the devices of this machine as one JSON object (schema weir.devices/1).
//
// A program of its own, so that a driver that crashes while it is asked takes only this down. It
// loads the Vulkan loader at run time: a machine without one has no Vulkan devices, which is an
// answer. Exit 0 with an answer, 1 where it could not print one.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <vulkan/vulkan.h>

#include "gate/probes/vulkan/class.h"

namespace {

using weir_probe::DeviceClass;

// A JSON string of hostile text: what is not plain ASCII or valid UTF-8 becomes '?'.
void print_string(const char* text) {
  putchar('"');
  for (const unsigned char* at = reinterpret_cast<const unsigned char*>(text); *at != 0; ++at) {
    if (*at == '"' || *at == '\\') {
      printf("\\%c", *at);
    } else if (*at < 0x20 || *at == 0x7f) {
      printf("\\u%04x", *at);
    } else if (*at < 0x80) {
      putchar(*at);
    } else {
      const int more = *at >= 0xf0 && *at < 0xf5 ? 3 : *at >= 0xe0 ? 2 : *at >= 0xc2 ? 1 : 0;
      bool whole = more > 0 && *at < 0xf5;
      for (int i = 1; whole && i <= more; ++i) whole = (at[i] & 0xc0) == 0x80;
      if (!whole) {
        putchar('?');
        continue;
      }
      for (int i = 0; i <= more; ++i) putchar(at[i]);
      at += more;
    }
  }
  putchar('"');
}

void print_device(const DeviceClass& device, bool first) {
  printf("%s\n  {\"name\": ", first ? "" : ",");
  print_string(device.name);
  printf(", \"type\": \"%s\", \"driver\": ", device.type);
  print_string(device.driver);
  printf(", \"vendor\": %u, \"device\": %u, \"driver_id\": %u, \"driver_version\": %u",
         device.vendor, device.device, device.driver_id, device.driver_version);
  printf(", \"feature_hash\": \"%016llx\", \"class\": \"%s\"}",
         static_cast<unsigned long long>(device.feature_hash), device.text);
}

// Prints the entries of the list; an error in words, or null.
const char* print_vulkan_devices() {
  void* loader = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  if (loader == nullptr) return "no Vulkan loader (libvulkan.so.1)";
  const auto get =
      reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(loader, "vkGetInstanceProcAddr"));
  if (get == nullptr) return "libvulkan.so.1 has no vkGetInstanceProcAddr";
  const auto create =
      reinterpret_cast<PFN_vkCreateInstance>(get(VK_NULL_HANDLE, "vkCreateInstance"));
  const auto version = reinterpret_cast<PFN_vkEnumerateInstanceVersion>(
      get(VK_NULL_HANDLE, "vkEnumerateInstanceVersion"));
  if (create == nullptr) return "libvulkan.so.1 has no vkCreateInstance";
  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.pApplicationName = "weir-devices";
  application.apiVersion = version == nullptr ? VK_API_VERSION_1_0 : VK_API_VERSION_1_3;
  VkInstanceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pApplicationInfo = &application;
  VkInstance instance = VK_NULL_HANDLE;
  const VkResult created = create(&info, nullptr, &instance);
  if (created == VK_ERROR_INCOMPATIBLE_DRIVER) return "no Vulkan driver";
  if (created != VK_SUCCESS) return "vkCreateInstance failed";

  const auto enumerate =
      reinterpret_cast<PFN_vkEnumeratePhysicalDevices>(get(instance, "vkEnumeratePhysicalDevices"));
  const weir_probe::ClassFunctions functions = weir_probe::fetch_class_functions(get, instance);
  constexpr uint32_t k_most = 64;
  VkPhysicalDevice devices[k_most];
  uint32_t count = k_most;
  if (enumerate == nullptr) return "vkEnumeratePhysicalDevices is missing";
  const VkResult listed = enumerate(instance, &count, devices);
  if (listed != VK_SUCCESS && listed != VK_INCOMPLETE) return "vkEnumeratePhysicalDevices failed";
  bool first = true;
  const char* error = nullptr;
  for (uint32_t i = 0; i < count; ++i) {
    DeviceClass described;
    if (!weir_probe::describe_device(functions, devices[i], &described)) {
      error = "a device could not be described";
      continue;
    }
    print_device(described, first);
    first = false;
  }
  // The instance is left to the end of the process: drivers that crash do so on the way out.
  return error;
}

}  // namespace

int main() {
  printf("{\"schema\": \"weir.devices/1\", \"vulkan\": [");
  const char* error = print_vulkan_devices();
  printf("], \"vulkan_error\": ");
  if (error == nullptr) {
    printf("null");
  } else {
    print_string(error);
  }
  printf("}\n");
  if (fflush(stdout) != 0) return 1;
  _Exit(0);  // no driver's destructors
}
