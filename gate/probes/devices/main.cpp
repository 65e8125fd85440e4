// weir-devices [API...]: prints the devices of this machine as one JSON object (schema
// weir.devices/1), of all APIs ("vulkan", "opencl") or of those named. --describe prints whole
// descriptions of the Vulkan devices (weir.descriptions/1).
//
// A program of its own, so that a driver that crashes while it is asked takes only this down. It
// loads the loaders at run time: a machine without one has no such devices, which is an answer.
// Exit 0 with an answer, 1 where it could not print one, 2 for an API that it does not know.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/probes/devices/print.h"
#include "gate/probes/inject/opencl/class.h"
#include "gate/probes/inject/vulkan/class.h"

namespace weir_probe {

const char* open_vulkan(VulkanDevices* out) {
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
  if (enumerate == nullptr) return "vkEnumeratePhysicalDevices is missing";
  out->get = get;
  out->instance = instance;
  out->count = sizeof out->devices / sizeof out->devices[0];
  const VkResult listed = enumerate(instance, &out->count, out->devices);
  return listed == VK_SUCCESS || listed == VK_INCOMPLETE ? nullptr
                                                         : "vkEnumeratePhysicalDevices failed";
}

namespace {

// Prints a device after those before; false when it could not be described.
bool print_next(bool described, const weir_probe_device& device, bool* first) {
  if (described) print_device(device, *first);
  *first = *first && !described;
  return described;
}
constexpr const char* k_not_described = "a device could not be described";

const char* print_vulkan_devices() {
  VulkanDevices all;
  if (const char* error = open_vulkan(&all)) return error;
  const ClassFunctions functions = fetch_class_functions(all.get, all.instance);
  bool first = true;
  const char* error = nullptr;
  for (uint32_t i = 0; i < all.count; ++i) {
    weir_probe_device device;
    const bool described = describe_device(functions, all.devices[i], &device);
    if (!print_next(described, device, &first)) error = k_not_described;
  }
  return error;
}

const char* print_opencl_devices() {
  void* loader = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  if (loader == nullptr) return "no OpenCL loader (libOpenCL.so.1)";
  const auto platforms_of =
      reinterpret_cast<cl_api_clGetPlatformIDs>(dlsym(loader, "clGetPlatformIDs"));
  const auto devices_of = reinterpret_cast<cl_api_clGetDeviceIDs>(dlsym(loader, "clGetDeviceIDs"));
  const opencl::ClassFunctions functions = {
      reinterpret_cast<cl_api_clGetDeviceInfo>(dlsym(loader, "clGetDeviceInfo")),
      reinterpret_cast<cl_api_clGetPlatformInfo>(dlsym(loader, "clGetPlatformInfo"))};
  if (platforms_of == nullptr || devices_of == nullptr) return "libOpenCL.so.1 lacks functions";
  constexpr cl_uint k_most = 64;
  cl_platform_id platforms[k_most];
  cl_uint platform_count = 0;
  // A loader without a driver answers with an error of an extension.
  if (platforms_of(k_most, platforms, &platform_count) != CL_SUCCESS || platform_count == 0) {
    return "no OpenCL driver";
  }
  bool first = true;
  const char* error = nullptr;
  for (cl_uint i = 0; i < platform_count && i < k_most; ++i) {
    cl_device_id devices[k_most];
    cl_uint count = 0;
    const cl_int listed = devices_of(platforms[i], CL_DEVICE_TYPE_ALL, k_most, devices, &count);
    if (listed == CL_DEVICE_NOT_FOUND) continue;
    if (listed != CL_SUCCESS) {
      error = "clGetDeviceIDs failed";
      continue;
    }
    for (cl_uint j = 0; j < count && j < k_most; ++j) {
      weir_probe_device device;
      const bool described = opencl::describe_device(functions, devices[j], &device);
      if (!print_next(described, device, &first)) error = k_not_described;
    }
  }
  return error;
}

struct List {
  const char* name;
  const char* (*print)();
  bool wanted;
};
List g_lists[] = {{"vulkan", print_vulkan_devices, false}, {"opencl", print_opencl_devices, false}};

bool want(const char* name) {
  bool known = false;
  for (List& list : g_lists) {
    if (name != nullptr && strcmp(list.name, name) != 0) continue;
    list.wanted = known = true;
  }
  return known;
}

// The end of the process, without drivers' destructors.
int finish() {
  if (fflush(stdout) != 0) return 1;
  _Exit(0);
}

}  // namespace
}  // namespace weir_probe

using namespace weir_probe;

int main(int count, char** arguments) {
  if (count == 2 && strcmp(arguments[1], "--describe") == 0) {
    printf("{\"schema\": \"weir.descriptions/1\", \"descriptions\": [");
    const char* error = describe_vulkan_devices();
    printf("], \"error\": ");
    print_error(error);
    printf("}\n");
    return finish();
  }
  for (int i = 1; i < count; ++i) {
    if (want(arguments[i])) continue;
    fprintf(stderr, "weir-devices: unknown API \"%s\" (vulkan, opencl)\n", arguments[i]);
    return 2;
  }
  if (count <= 1) want(nullptr);
  printf("{\"schema\": \"weir.devices/1\"");
  for (const List& list : g_lists) {
    if (!list.wanted) continue;
    printf(", \"%s\": [", list.name);
    const char* error = list.print();
    printf("], \"%s_error\": ", list.name);
    print_error(error);
  }
  printf("}\n");
  return finish();
}
