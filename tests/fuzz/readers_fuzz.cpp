// Fuzz target of one reader: WEIR_FUZZ_FORMAT names it. The first byte says where standard output
// ends and standard error begins.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "gate/adapters/format.hpp"
#include "gate/base/json.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weir;
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  const std::size_t cut = text.size() * data[0] / 255;
  const adapters::Document document{text.substr(0, cut), text.substr(cut)};
  const auto read = adapters::read_as(WEIR_FUZZ_FORMAT, document);
  if (!read) {
    if (read.error().message.empty()) std::abort();
    return 0;
  }
  for (const auto& op : read->ops) {
    for (const auto& value : {op.seconds, op.min_seconds, op.max_seconds, op.flops, op.bytes}) {
      if (value && !(std::isfinite(*value) && *value >= 0)) std::abort();
    }
  }
  const auto back = read_fields<observed::Observed>(write_fields(*read), "observed");
  if (!back) std::abort();
  // It may be of any format at all.
  static_cast<void>(adapters::read_any(document));
  return 0;
}
