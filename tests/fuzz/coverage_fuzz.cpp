// Fuzz target: any text as a coverage build's JSON, and as what git diff --raw -z prints.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "gate/profile/reach.hpp"
#include "gate/profile/reach_diff.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto read = weir::profile::read_coverage(text);
  if (read && read->files.empty()) std::abort();
  const auto changed = weir::profile::parse_raw_diff(text);
  if (!changed) return 0;
  const auto reach = weir::profile::reach_of_diff({}, *changed, {});
  if (reach.unreached_files.size() + reach.quiet_files.size() != changed->size()) std::abort();
  return 0;
}
