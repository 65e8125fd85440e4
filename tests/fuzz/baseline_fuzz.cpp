// libFuzzer: whatever a baseline file holds, what is taken can be written and read again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "gate/baseline/baseline.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto baseline = weir::baseline::parse({reinterpret_cast<const char*>(data), size});
  if (!baseline) return 0;
  const std::string text = weir::baseline::to_text(*baseline);
  const auto again = weir::baseline::parse(text);
  if (!again || weir::baseline::to_text(*again) != text) std::abort();
  return 0;
}
