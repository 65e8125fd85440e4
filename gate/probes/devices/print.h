// What the lists of weir-devices are printed with.
#pragma once

#include <stdio.h>

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

// `device` is the DeviceClass of its API.
template <class DeviceClass>
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

// Each prints the entries of its list and answers with an error in words, or null.
const char* print_vulkan_devices();
const char* print_opencl_devices();
// The same for whole descriptions of Vulkan devices (gate/probes/read/twins.hpp reads them).
const char* describe_vulkan_devices();

}  // namespace weir_probe
