// What the lists of weir-devices are made and printed with.
#pragma once

#include <stdio.h>
#include <vulkan/vulkan.h>

#include "gate/probes/format.h"

namespace weir_probe {

// A JSON string of hostile text: what is not plain ASCII or valid UTF-8 becomes '?'.
inline void print_string(const char* text) {
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

inline void print_device(const weir_probe_device& device, bool first) {
  printf("%s\n  {\"name\": ", first ? "" : ",");
  print_string(device.name);
  printf(", \"type\": \"%s\", \"driver\": ", device.type);
  print_string(device.driver);
  printf(", \"vendor\": %u, \"device\": %u, \"driver_id\": %u, \"driver_version\": %u",
         device.vendor, device.device, device.driver_id, device.driver_version);
  printf(", \"feature_hash\": \"%016llx\", \"class\": \"%s\"}",
         static_cast<unsigned long long>(device.feature_hash), device.device_class);
}

inline void print_error(const char* error) {
  if (error == nullptr) {
    printf("null");
  } else {
    print_string(error);
  }
}

// The Vulkan devices of this machine. The instance, of the newest version up to 1.3 that the loader
// has, is left to the end of the process: drivers that crash do so on the way out.
struct VulkanDevices {
  PFN_vkGetInstanceProcAddr get;
  VkInstance instance;
  VkPhysicalDevice devices[64];
  uint32_t count;
};
// An error in words, or null.
const char* open_vulkan(VulkanDevices* out);

// Prints whole descriptions of the Vulkan devices (gate/probes/read/twins.hpp reads them); an error
// in words, or null.
const char* describe_vulkan_devices();

}  // namespace weir_probe
