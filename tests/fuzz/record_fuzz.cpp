// libFuzzer: whatever a journal line holds, what is taken can be written and read again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "gate/base/json.hpp"
#include "gate/profile/record.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto json = weir::parse_json({reinterpret_cast<const char*>(data), size});
  if (!json) return 0;
  const auto record = weir::read_fields<weir::profile::RunRecord>(*json, "record");
  if (!record) return 0;
  const auto again = weir::parse_json(weir::dump_json(weir::write_fields(*record)));
  if (!again || weir::read_fields<weir::profile::RunRecord>(*again, "record") != *record)
    std::abort();
  return 0;
}
