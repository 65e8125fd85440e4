// Fuzz target: any text as weir.yaml, expanded and filled where it can be read.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "gate/config/matrix.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weir::config;
  const Supported supported{.today = "2026-11-20",
                            .adapters = {"llama-bench", "generic"},
                            .probes = {"vulkan", "ggml", "opencl"},
                            .twins = std::vector<std::string>{"amd-rx-7900-xtx"}};
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto settings = parse_settings(text, "f", supported);
  if (!settings) {
    if (settings.error().code != weir::Code::config || settings.error().message.empty()) {
      std::abort();
    }
    return 0;
  }
  const auto matrix = expand(*settings);
  if (!matrix) return 0;
  if (matrix->cells.empty()) std::abort();  // no cell is an error
  for (const Cell& cell : matrix->cells) {
    if (fill(cell, {}).argv.empty() || counted_requests(cell).empty()) std::abort();
  }
  return 0;
}
