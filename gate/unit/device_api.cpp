// The table of device APIs.
#include "gate/unit/device_api.hpp"

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"

namespace weir::unit {
namespace {

using Load = DeviceApi::Load;
using Twin = DeviceApi::Twin;

constexpr DeviceApi k_apis[] = {
    {.name = "vulkan",
     .title = "Vulkan",
     .load = Load::vulkan_layer,
     .twin = Twin::driver,
     .library = "VK_LAYER_WEIR_probe.json",
     .needs = {"libvulkan.so"},
     .how = "as a layer of the Vulkan loader",
     .package = "mesa-vulkan-drivers",
     .shaders = {".comp", ".spv"},
     .timed_backend = "Vulkan",
     .ggml_backends = {"Vulkan"}},
    {.name = "opencl",
     .title = "OpenCL",
     .load = Load::opencl_layer,
     .library = "libweir_opencl.so",
     .needs = {"libOpenCL.so"},
     .how = "as a layer of the OpenCL ICD loader",
     .package = "pocl-opencl-icd",
     .shaders = {".spv", ".cl"},
     .timed_backend = "OpenCL",
     .ggml_backends = {"OpenCL", "GPUOpenCL"}},
    {.name = "cuda",
     .title = "CUDA",
     .twin = Twin::runtime,
     .library = "libweir_cuda.so",
     .needs = {"libcudart.so", "libcublas.so", "libnvshmem_host.so"},
     .how = "preloaded in front of CUDA",
     .shaders = {".cu"},
     .check = "cupti",
     .check_library = "libweir_cupti.so",
     .check_variable = "CUDA_INJECTION64_PATH",
     .ggml_backends = {"CUDA"}},
    {.name = "hip",
     .title = "HIP",
     .twin = Twin::runtime,
     .library = "libweir_hip.so",
     .needs = {"libamdhip64"},  // "libamdhip64-1ce46982.so.6" in a wheel
     .how = "preloaded in front of HIP",
     .shaders = {".cu", ".hip"},
     .ggml_backends = {"ROCm", "HIP"}},
    {.name = "metal",
     .title = "Metal",
     .library = "libweir_metal.dylib",
     .needs = {"Metal"},
     .how = "put in by dyld, in front of Metal's objects",
     .shaders = {".metal"},
     .on_macos = true,
     .ggml_backends = {"Metal", "MTL"}},
};

}  // namespace

std::span<const DeviceApi> device_apis() { return k_apis; }

const DeviceApi* find_device_api(std::string_view name) { return find_named(k_apis, name); }

std::string_view find_api_of_ggml_backend(std::string_view backend) {
  for (const DeviceApi& api : k_apis) {
    const auto is_beginning = [&](std::string_view name) {
      return !name.empty() && backend.starts_with(name);
    };
    if (std::ranges::any_of(api.ggml_backends, is_beginning)) return api.name;
  }
  return "";
}

std::vector<std::string> devices_with(DeviceApi::Twin kind) {
  std::vector<std::string> names;
  for (const DeviceApi& api : k_apis) {
    if (api.twin == kind) names.emplace_back(api.name);
  }
  return names;
}

const std::vector<std::string>& device_names() {
  static const auto k_names = [] {
    auto names = collect<std::string>(k_apis, &DeviceApi::name);
    names.emplace_back(k_cpu);
    std::ranges::sort(names);
    return names;
  }();
  return k_names;
}

std::string device_without_version(std::string_view device_class) {
  std::vector<std::string> parts = text::split(device_class, '-');
  std::size_t device_parts = 0;
  if (parts.front() == k_cpu) device_parts = 1;                     // the rest is its version
  if (find_device_api(parts.front()) != nullptr) device_parts = 3;  // API, vendor, device
  if (device_parts == 0 || parts.size() <= device_parts) return "";
  parts.resize(device_parts);
  return text::join(parts, "-");
}

}  // namespace weir::unit
