// The "cuda" section of a description (gate/probes/read/cuda_twin.hpp), as the GPU's own driver
// answers. The driver is opened at run time: a machine without one has no such GPU.
#include <dlfcn.h>
#include <fmt/format.h>

#include "gate/base/text.hpp"
#include "gate/probes/devices/devices.hpp"
#include "gate/probes/inject/cuda/interface.h"
#include "gate/probes/read/cuda_twin.hpp"

namespace weir::probes {
namespace {

class Driver {
 public:
  explicit Driver(void* library) : library_(library) {}
  // False where it has no such function, or the answer is an error.
  template <class... Given>
  bool ask(const char* name, Given... given) const {
    const auto function = reinterpret_cast<int (*)(Given...)>(dlsym(library_, name));
    return function != nullptr && function(given...) == 0;
  }
  // -1 where it does not know it.
  [[nodiscard]] int attribute(int which, int device) const {
    int value = -1;
    return ask("cuDeviceGetAttribute", &value, which, device) ? value : -1;
  }

 private:
  void* library_;
};

// Of the whole, what is taken before a program asks for anything: its context is part of that.
std::uint64_t used_bytes(const Driver& driver, int device) {
  void* context = nullptr;
  std::size_t free_bytes = 0, total = 0;
  if (!driver.ask("cuDevicePrimaryCtxRetain", &context, device)) return 0;
  const bool told =
      driver.ask("cuCtxSetCurrent", context) && driver.ask("cuMemGetInfo_v2", &free_bytes, &total);
  driver.ask("cuDevicePrimaryCtxRelease_v2", device);
  return told ? total - free_bytes : 0;
}

Json section(const Driver& driver, int device, int devices) {
  constexpr std::size_t k_longest_name = 256;
  std::string name(k_longest_name, '\0');
  std::size_t bytes = 0;
  int version = 0, peers = 0;
  driver.ask("cuDeviceGetName", name.data(), int{k_longest_name - 1}, device);
  driver.ask("cuDeviceTotalMem_v2", &bytes, device);
  driver.ask("cuDriverGetVersion", &version);
  if (devices > 1) driver.ask("cuDeviceCanAccessPeer", &peers, device, device == 0 ? 1 : 0);
  Json attributes = Json::object();
  for (const CudaAttribute& one : cuda_attributes()) {
    // The place of a card in its machine is no part of what it is.
    if (std::string_view(one.name).starts_with("PCI_")) continue;
    const int value = driver.attribute(one.number, device);
    if (value > 0 || (value == 0 && one.value != 0)) attributes[one.name] = value;
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
          {"peer_access", peers != 0}};
}

}  // namespace

Json describe_cuda_devices() {
  Json out = Json::array();
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return out;
  const Driver driver(library);
  int devices = 0;
  if (!driver.ask("cuInit", 0U) || !driver.ask("cuDeviceGetCount", &devices)) return out;
  for (int device = 0; device < devices; ++device) out.push_back(section(driver, device, devices));
  return out;
}

}  // namespace weir::probes
