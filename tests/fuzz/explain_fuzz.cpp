// Fuzz target: any bytes as a config.json and as names of kernels.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "gate/explain/model_facts.hpp"
#include "gate/profile/kernel_name.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weir::explain;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto facts = model_facts_from_config(text)) {
    if (facts->layers < 1 || facts->layers > k_max_layers) std::abort();
    if (facts->families.size() > k_max_families) std::abort();
    for (const LayerFamily& family : facts->families) {
      if (family.layers.empty() || family.layers.back() >= facts->layers) std::abort();
    }
  }
  using weir::profile::kernel_name;
  const auto name = kernel_name(text.substr(0, size / 2));
  (void)find_fused_parts(name, {kernel_name(text.substr(size / 2)), name});
  return 0;
}
