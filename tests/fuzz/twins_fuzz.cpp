// Fuzz target: any bytes as a description of a device.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "gate/probes/read/runtime_twin.hpp"
#include "gate/probes/read/twin_facts.hpp"
#include "gate/probes/read/twins.hpp"
#include "gate/probes/twin/blob.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weir::probes;
  auto twin = read_twin({reinterpret_cast<const char*>(data), size});
  if (!twin) return 0;
  for (const std::string& api : twin->apis())
    static_cast<void>(compile_runtime_twin(*twin, api, 2));
  const std::string blob = twin->has_vulkan() ? compile_twin(*twin) : "";
  if (twin->has_vulkan() && blob.size() < sizeof(weir_twin_header)) std::abort();
  if (twin->warnings.size() > 101) std::abort();
  static_cast<void>(facts_of(*twin));
  // A description that is written can be read again.
  if (!read_twin(weir::dump_json(document_of(*twin)))) std::abort();
  return 0;
}
