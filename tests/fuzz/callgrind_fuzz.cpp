// Fuzz target: any text as what callgrind wrote.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "gate/probes/read/instructions.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto read = weir::probes::read_callgrind({reinterpret_cast<const char*>(data), size});
  if (!read) return 0;
  std::uint64_t sum = 0;
  for (const auto& [name, cost] : read->self) sum += cost;
  if (sum != read->total) std::abort();
  return 0;
}
