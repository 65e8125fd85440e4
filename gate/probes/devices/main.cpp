// weir-devices [API...]: prints the devices of this machine as one JSON object (schema
// weir.devices/1), for all APIs ("vulkan", "opencl") or for the named ones. --describe prints full
// descriptions of the devices of Vulkan and CUDA (weir.descriptions/1).
//
// It is a program of its own, so that a driver that crashes takes nothing else down. The APIs'
// loaders are opened at run time: a machine without one simply has no such devices. Exits with 0
// after printing, with 1 if printing failed, with 2 for an unknown API.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <string>

#include <dlfcn.h>
#include <fmt/format.h>

#include "gate/probes/devices/devices.hpp"
#include "gate/probes/inject/opencl/class.h"
#include "gate/probes/inject/vulkan/class.h"

namespace weir::probes {

namespace {

// The devices of one API.
struct List {
  Json devices = Json::array();
  Json error;  // a text, or null

  // Adds a device, or an error if it could not be described.
  void add(bool is_described, const weir_probe_device& device) {
    if (!is_described) {
      error = "a device could not be described";
      return;
    }
    devices.push_back({{"name", device.name},
                       {"type", device.type},
                       {"driver", device.driver},
                       {"vendor", device.vendor},
                       {"device", device.device},
                       {"driver_id", device.driver_id},
                       {"driver_version", device.driver_version},
                       {"feature_hash", fmt::format("{:016x}", device.feature_hash)},
                       {"class", device.device_class}});
  }
};

// Lists the devices of the Vulkan loader, or the error that keeps them from being listed.
List list_vulkan() {
  List list;
  const auto vulkan = open_vulkan(k_program, VK_API_VERSION_1_3);
  if (!vulkan) return {std::move(list.devices), vulkan.error().message};
  const auto functions = weir_probe::fetch_class_functions(vulkan->get, vulkan->instance);
  for (VkPhysicalDevice handle : vulkan->devices) {
    weir_probe_device device;
    const bool is_described = weir_probe::describe_device(functions, handle, &device);
    list.add(is_described, device);
  }
  return list;
}

// Lists the devices of all OpenCL platforms, at most 64 of each, or the error that keeps them from
// being listed.
List list_opencl() {
  List list;
  void* loader = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  if (loader == nullptr) return {std::move(list.devices), "no OpenCL loader (libOpenCL.so.1)"};
  const auto get_platforms =
      reinterpret_cast<cl_api_clGetPlatformIDs>(dlsym(loader, "clGetPlatformIDs"));
  const auto get_devices = reinterpret_cast<cl_api_clGetDeviceIDs>(dlsym(loader, "clGetDeviceIDs"));
  const weir_probe::opencl::ClassFunctions functions = {
      reinterpret_cast<cl_api_clGetDeviceInfo>(dlsym(loader, "clGetDeviceInfo")),
      reinterpret_cast<cl_api_clGetPlatformInfo>(dlsym(loader, "clGetPlatformInfo"))};
  if (get_platforms == nullptr || get_devices == nullptr) {
    return {std::move(list.devices), "libOpenCL.so.1 lacks functions"};
  }
  constexpr cl_uint k_max_devices = 64;
  cl_platform_id platforms[k_max_devices];
  cl_uint platform_count = 0;
  // Without a driver the loader returns an error of an extension.
  if (get_platforms(k_max_devices, platforms, &platform_count) != CL_SUCCESS ||
      platform_count == 0) {
    return {std::move(list.devices), "no OpenCL driver"};
  }
  for (cl_uint platform = 0; platform < platform_count && platform < k_max_devices; ++platform) {
    cl_device_id devices[k_max_devices];
    cl_uint device_count = 0;
    const cl_int status =
        get_devices(platforms[platform], CL_DEVICE_TYPE_ALL, k_max_devices, devices, &device_count);
    if (status == CL_DEVICE_NOT_FOUND) continue;
    if (status != CL_SUCCESS) {
      list.error = "clGetDeviceIDs failed";
      continue;
    }
    for (cl_uint device_index = 0; device_index < device_count && device_index < k_max_devices;
         ++device_index) {
      weir_probe_device device;
      const bool is_described =
          weir_probe::opencl::describe_device(functions, devices[device_index], &device);
      list.add(is_described, device);
    }
  }
  return list;
}

std::string vulkan_device_name(const Json& description) {
  const Json::json_pointer name(
      "/capabilities/device/properties/VkPhysicalDeviceProperties/deviceName");
  return description.value(name, std::string());
}

// Returns the descriptions of Vulkan devices, each with the section of the CUDA GPU of the same
// name. A GPU without a Vulkan device gets a description of its own.
Json merge_descriptions(const Result<Json>& vulkan) {
  Json descriptions = vulkan.value_or(Json::array());
  for (Json& cuda : describe_cuda_devices()) {
    bool has_vulkan = false;
    for (Json& description : descriptions) {
      if (cuda["name"] != vulkan_device_name(description)) continue;
      description["weir"]["cuda"] = cuda;
      has_vulkan = true;
    }
    if (!has_vulkan) {
      descriptions.push_back({{"weir", {{"schema", "weir.device/1"}, {"cuda", std::move(cuda)}}}});
    }
  }
  return descriptions;
}

// Prints the answer and ends the process, without running drivers' destructors.
int finish(const Json& answer) {
  std::puts(dump_json(answer).c_str());
  if (std::fflush(stdout) != 0) return 1;
  std::_Exit(0);
}

}  // namespace
}  // namespace weir::probes

using namespace weir::probes;

// Prints descriptions of all devices with --describe, else lists of the devices of the named APIs
// (all without names), as JSON.
int main(int count, char** arguments) {
  if (count == 2 && std::string(arguments[1]) == "--describe") {
    const auto vulkan = describe_vulkan_devices();
    return finish({{"schema", "weir.descriptions/1"},
                   {"descriptions", merge_descriptions(vulkan)},
                   {"error", vulkan ? weir::Json() : weir::Json(vulkan.error().message)}});
  }
  const std::map<std::string, List (*)()> lists{{"vulkan", list_vulkan}, {"opencl", list_opencl}};
  const std::set<std::string> names(arguments + 1, arguments + count);
  for (const std::string& name : names) {
    if (lists.contains(name)) continue;
    fmt::print(stderr, "weir-devices: unknown API \"{}\" (vulkan, opencl)\n", name);
    return 2;
  }
  weir::Json answer = {{"schema", "weir.devices/1"}};
  for (const auto& [name, list] : lists) {
    if (!names.empty() && !names.contains(name)) continue;
    List result = list();
    answer[name] = std::move(result.devices);
    answer[name + "_error"] = std::move(result.error);
  }
  return finish(answer);
}
