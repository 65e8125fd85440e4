// libFuzzer: whatever a journal holds, each record that is taken belongs to a step, and a torn line
// changes none.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "gate/run/journal.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto run = weir::run::parse_run(text);
  if (!run) return 0;
  for (const auto& record : run->records) {
    if (static_cast<std::size_t>(record.order) >= run->header.steps.size()) std::abort();
  }
  const auto torn = weir::run::parse_run(text.substr(0, run->whole_bytes) + "{\"ha\n");
  if (!torn || torn->records != run->records || torn->warnings.empty()) std::abort();
  return 0;
}
