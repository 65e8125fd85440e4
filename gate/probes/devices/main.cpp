// weir-devices [API...]: prints the devices of this machine as one JSON object (schema
// weir.devices/1), of all APIs ("vulkan", "opencl") or of those named. --describe prints whole
// descriptions of the devices of Vulkan and CUDA (weir.descriptions/1).
//
// A program of its own, so that a driver that crashes while it is asked takes only this down. It
// loads the loaders at run time: a machine without one has no such devices, which is an answer.
// Exit 0 with an answer, 1 where it could not print one, 2 for an API that it does not know.
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

struct List {
  Json devices = Json::array();
  Json error;  // in words, or null

  void add(bool described, const weir_probe_device& device) {
    if (!described) {
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

List list_vulkan() {
  List out;
  const auto all = open_vulkan(k_program, VK_API_VERSION_1_3);
  if (!all) return {std::move(out.devices), all.error().message};
  const auto functions = weir_probe::fetch_class_functions(all->get, all->instance);
  for (VkPhysicalDevice one : all->devices) {
    weir_probe_device device;
    const bool described = weir_probe::describe_device(functions, one, &device);
    out.add(described, device);
  }
  return out;
}

List list_opencl() {
  List out;
  void* loader = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  if (loader == nullptr) return {std::move(out.devices), "no OpenCL loader (libOpenCL.so.1)"};
  const auto platforms_of =
      reinterpret_cast<cl_api_clGetPlatformIDs>(dlsym(loader, "clGetPlatformIDs"));
  const auto devices_of = reinterpret_cast<cl_api_clGetDeviceIDs>(dlsym(loader, "clGetDeviceIDs"));
  const weir_probe::opencl::ClassFunctions functions = {
      reinterpret_cast<cl_api_clGetDeviceInfo>(dlsym(loader, "clGetDeviceInfo")),
      reinterpret_cast<cl_api_clGetPlatformInfo>(dlsym(loader, "clGetPlatformInfo"))};
  if (platforms_of == nullptr || devices_of == nullptr) {
    return {std::move(out.devices), "libOpenCL.so.1 lacks functions"};
  }
  constexpr cl_uint k_most = 64;
  cl_platform_id platforms[k_most];
  cl_uint platform_count = 0;
  // A loader without a driver answers with an error of an extension.
  if (platforms_of(k_most, platforms, &platform_count) != CL_SUCCESS || platform_count == 0) {
    return {std::move(out.devices), "no OpenCL driver"};
  }
  for (cl_uint i = 0; i < platform_count && i < k_most; ++i) {
    cl_device_id devices[k_most];
    cl_uint count = 0;
    const cl_int listed = devices_of(platforms[i], CL_DEVICE_TYPE_ALL, k_most, devices, &count);
    if (listed == CL_DEVICE_NOT_FOUND) continue;
    if (listed != CL_SUCCESS) {
      out.error = "clGetDeviceIDs failed";
      continue;
    }
    for (cl_uint j = 0; j < count && j < k_most; ++j) {
      weir_probe_device device;
      const bool described = weir_probe::opencl::describe_device(functions, devices[j], &device);
      out.add(described, device);
    }
  }
  return out;
}

std::string vulkan_name_of(const Json& description) {
  const Json::json_pointer name(
      "/capabilities/device/properties/VkPhysicalDeviceProperties/deviceName");
  return description.value(name, std::string());
}

// Vulkan's devices, with what CUDA's driver says of the same GPU; then those that CUDA alone has.
Json whole_descriptions(const Result<Json>& vulkan) {
  Json out = vulkan.value_or(Json::array());
  for (Json& cuda : describe_cuda_devices()) {
    bool same = false;
    for (Json& known : out) {
      if (cuda["name"] != vulkan_name_of(known)) continue;
      known["weir"]["cuda"] = cuda;
      same = true;
    }
    if (!same) out.push_back({{"weir", {{"schema", "weir.device/1"}, {"cuda", std::move(cuda)}}}});
  }
  return out;
}

// The end of the process, without drivers' destructors.
int finish(const Json& answer) {
  std::puts(dump_json(answer).c_str());
  if (std::fflush(stdout) != 0) return 1;
  std::_Exit(0);
}

}  // namespace
}  // namespace weir::probes

using namespace weir::probes;

int main(int count, char** arguments) {
  if (count == 2 && std::string(arguments[1]) == "--describe") {
    const auto described = describe_vulkan_devices();
    return finish({{"schema", "weir.descriptions/1"},
                   {"descriptions", whole_descriptions(described)},
                   {"error", described ? weir::Json() : weir::Json(described.error().message)}});
  }
  const std::map<std::string, List (*)()> lists{{"vulkan", list_vulkan}, {"opencl", list_opencl}};
  const std::set<std::string> wanted(arguments + 1, arguments + count);
  for (const std::string& name : wanted) {
    if (lists.contains(name)) continue;
    fmt::print(stderr, "weir-devices: unknown API \"{}\" (vulkan, opencl)\n", name);
    return 2;
  }
  weir::Json answer = {{"schema", "weir.devices/1"}};
  for (const auto& [name, list] : lists) {
    if (!wanted.empty() && !wanted.contains(name)) continue;
    List listed = list();
    answer[name] = std::move(listed.devices);
    answer[name + "_error"] = std::move(listed.error);
  }
  return finish(answer);
}
