// What probes counted in one engine run (all its processes merged).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace weir::profile {

// A device that received work, as the probe saw it.
struct DeviceSeen {
  std::string api;           // "vulkan"
  std::string name;          // "llvmpipe (LLVM 15.0.6, 256 bits)"
  std::string type;          // "cpu", "discrete", "integrated", "virtual", "other"
  std::string device_class;  // file name safe: "vulkan-10005-0-d-1-0a1b2c3d" (DESIGN, device class)

  friend bool operator==(const DeviceSeen&, const DeviceSeen&) = default;
};

struct ProbeCounts {
  std::string probe;                           // "vulkan"
  std::vector<DeviceSeen> devices;             // those that were made; sorted by class
  std::map<std::string, std::int64_t> counts;  // by base name ("dispatches"), summed over devices
  std::map<std::string, std::int64_t> kernels; // kernel name -> dispatches
  bool kernels_named = false;  // every kernel's name was given by the program
  std::vector<std::string> warnings;  // "kernel table overflowed: 12 kernels counted as (other)"

  friend bool operator==(const ProbeCounts&, const ProbeCounts&) = default;
};

}  // namespace weir::profile
