// Writes the "cuda" section of a GPU's description (gate/probes/read/runtime_api.hpp) from its
// driver. The driver is opened at run time: a machine without one has no such GPU.
#include <dlfcn.h>
#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/probes/devices/devices.hpp"
#include "gate/probes/inject/cuda/interface.h"
#include "gate/probes/read/runtime_api.hpp"

namespace weir::probes {
namespace {

// Calls functions of CUDA's driver by name.
class Driver {
 public:
  explicit Driver(void* library) : library_(library) {}
  // Calls a function; false if the driver does not have it, or it returns an error.
  template <class... Arguments>
  bool call(const char* name, Arguments... arguments) const {
    const auto function = reinterpret_cast<int (*)(Arguments...)>(dlsym(library_, name));
    return function != nullptr && function(arguments...) == 0;
  }
  // The value of an attribute; -1 if the driver does not know it.
  [[nodiscard]] int attribute(int number, int device) const {
    int value = -1;
    return call("cuDeviceGetAttribute", &value, number, device) ? value : -1;
  }

 private:
  void* library_;
};

// The memory that is used before a program allocates any, including its context.
std::uint64_t used_bytes(const Driver& driver, int device) {
  void* context = nullptr;
  std::size_t free_bytes = 0, total = 0;
  if (!driver.call("cuDevicePrimaryCtxRetain", &context, device)) return 0;
  const bool is_known = driver.call("cuCtxSetCurrent", context) &&
                        driver.call("cuMemGetInfo_v2", &free_bytes, &total);
  driver.call("cuDevicePrimaryCtxRelease_v2", device);
  return is_known ? total - free_bytes : 0;
}

// Describes one of `devices` GPUs as JSON: name, capability, memory, driver and attributes.
// Attributes that are 0 both here and in the default list are left out.
Json describe_device(const Driver& driver, int device, int devices) {
  constexpr std::size_t k_longest_name = 256;
  std::string name(k_longest_name, '\0');
  std::size_t bytes = 0;
  int version = 0, can_access_peer = 0;
  driver.call("cuDeviceGetName", name.data(), int{k_longest_name - 1}, device);
  driver.call("cuDeviceTotalMem_v2", &bytes, device);
  driver.call("cuDriverGetVersion", &version);
  if (devices > 1)
    driver.call("cuDeviceCanAccessPeer", &can_access_peer, device, device == 0 ? 1 : 0);
  Json attributes = Json::object();
  for (const RuntimeAttribute& attribute : k_cuda_runtime.attributes) {
    // The place on the PCI bus belongs to the machine, not to the GPU.
    if (std::string_view(attribute.name).starts_with("PCI_")) continue;
    const int value = driver.attribute(attribute.number, device);
    if (value > 0 || (value == 0 && attribute.value != 0)) attributes[attribute.name] = value;
  }
  using namespace weir_probe::cuda;
  return {{"name", text::printable(name.c_str())},
          {"compute_capability", fmt::format("{}.{}", driver.attribute(k_major, device),
                                             driver.attribute(k_minor, device))},
          {"multiprocessors", driver.attribute(k_processors, device)},
          {"memory_bytes", bytes},
          {"used_bytes", used_bytes(driver, device)},
          {"driver_version", version},
          {"attributes", std::move(attributes)},
          {"peer_access", can_access_peer != 0}};
}

}  // namespace

// Describes all GPUs of CUDA's driver as a JSON list; empty without a driver.
Json describe_cuda_devices() {
  Json descriptions = Json::array();
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return descriptions;
  const Driver driver(library);
  int devices = 0;
  if (!driver.call("cuInit", 0U) || !driver.call("cuDeviceGetCount", &devices)) return descriptions;
  for (int device = 0; device < devices; ++device) {
    descriptions.push_back(describe_device(driver, device, devices));
  }
  return descriptions;
}

}  // namespace weir::probes
