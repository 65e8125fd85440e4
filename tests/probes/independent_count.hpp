// Reads the file of the second count of Vulkan work (independent_layer.cpp).
#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <string>

namespace weir::probes {

constexpr const char* k_independent_layer = "VK_LAYER_TEST_independent";

// The sums over all processes that wrote to `file`; empty when none did.
inline std::map<std::string, std::int64_t> independent_counts(const std::string& file) {
  std::map<std::string, std::int64_t> out;
  std::ifstream in(file);
  std::string name;
  std::int64_t value = 0;
  while (in >> name >> value) out[name] += value;
  return out;
}

}  // namespace weir::probes
