// Asks runtime and driver for the GPU and for addresses.
#include <stdio.h>

#include "gate/probes/inject/streams/front.h"
#include "gate/probes/inject/streams/interface.h"

namespace weir_probe::streams {
namespace {

bool is_device_memory(const void* at) {
  int type = 0;
  return succeeds(runtime().pointer_attribute, static_cast<void*>(&type), k_pointer_type,
                  address_key(at)) &&
         type == k_device_memory;
}

}  // namespace

#define WEIR_LOOK_UP_ROLE(role, ...)   \
  if (k_api.functions.role != nullptr) \
    table.role = reinterpret_cast<decltype(table.role)>(find_below(k_api.functions.role));
WEIR_FUNCTION_TABLE(Runtime, runtime, WEIR_RUNTIME_FUNCTIONS(WEIR_LOOK_UP_ROLE))

// Describes a GPU as an entry of the probe's file. Its class names GPUs with equal features: a
// text of the API, vendor, name, driver and features.
weir_probe_device describe_device(int device) {
  weir_probe_device entry{};
  copy_text(entry.api, sizeof entry.api, k_api.name);
  if (!succeeds(runtime().device_name, entry.name, int{sizeof entry.name - 1}, device)) {
    copy_text(entry.name, sizeof entry.name, "unknown");
  }
  const auto attribute = [device](int which) {
    int value = 0;
    succeeds(runtime().device_attribute, &value, which, device);
    return value;
  };
  copy_text(entry.type, sizeof entry.type,
            attribute(k_api.is_integrated) != 0 ? "integrated" : "discrete");
  int version = 0;
  succeeds(runtime().version, &version);
  snprintf(entry.driver, sizeof entry.driver, "%s %d.%d", k_api.driver, version / k_api.major_unit,
           version % k_api.major_unit / k_api.minor_unit);
  entry.vendor = k_api.vendor;
  entry.device = folded(hash_text(entry.name));
  entry.driver_version = static_cast<uint32_t>(version);
  entry.feature_hash = k_hash_seed;
  for (const int which : k_api.features) {
    const int value = attribute(which);
    entry.feature_hash = hash_bytes(entry.feature_hash, &value, sizeof value);
  }
  snprintf(entry.device_class, sizeof entry.device_class, "%s-%04x-%08x-0-%x-%016llx", k_api.name,
           entry.vendor, entry.device, entry.driver_version,
           static_cast<unsigned long long>(entry.feature_hash));
  return entry;
}

int current_device() {
  int device = 0;
  return succeeds(runtime().current_device, &device) ? device : 0;
}

int find_direction(int direction, const void* to, const void* from) {
  if (direction != k_by_address || runtime().pointer_attribute == nullptr) return direction;
  const bool to_device = is_device_memory(to);
  if (is_device_memory(from)) return to_device ? k_within : k_to_host;
  return to_device ? k_to_device : k_to_host_from_host;
}

}  // namespace weir_probe::streams
