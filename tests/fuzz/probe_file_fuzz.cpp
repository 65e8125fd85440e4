// Fuzz target: any bytes as what a probe counted.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "gate/probes/read/read.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weir::probes;
  const auto file = read_probe_file(std::string_view(reinterpret_cast<const char*>(data), size));
  if (file) (void)merge(file->probe, std::vector{*file, *file});
  return 0;
}
