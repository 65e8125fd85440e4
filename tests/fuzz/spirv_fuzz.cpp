// Fuzz target: any two halves of a file as the code of a kernel before and after.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "gate/explain/code_changes.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weir::explain;
  // Each half begins as SPIR-V does, so that what follows is read.
  std::vector<std::uint32_t> code[2];
  for (auto& half : code) {
    half = {0x07230203, 0x10000, 0, 64, 0};
    half.resize(5 + size / 8);
    std::memcpy(half.data() + 5, data + (&half == code ? 0 : size / 2), (half.size() - 5) * 4);
  }
  const KernelCode before{code[0], "a", {{"constant 2", "64"}}}, now{code[1], "b", {}};
  const CodeChanges changes = code_changes(before, now);
  if (changes.headline.empty() && code[0] != code[1]) std::abort();
  return 0;
}
