// libFuzzer: whatever CSV or JSON lines hold, what is taken is fit to be kept, and its lines are
// read again as they were.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "gate/history/csv.hpp"
#include "gate/history/json_lines.hpp"

namespace {

using namespace weir;

std::string rewritten(std::string_view text) {
  std::string lines = history::first_line() + "\n";
  const auto add = [&](const auto& entry) {
    lines += history::line_of(entry) + "\n";
    return Result<void>{};
  };
  (void)history::read_lines(text, {add, add, add});
  return lines;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string lines = rewritten(text);
  if (rewritten(lines) != lines) std::abort();
  const auto table = history::CsvTable::parse(text, "default");
  for (std::size_t i = 0; table && i < table->runs(); ++i) {
    const history::Run run = table->run(i);
    if (!history::check(run)) std::abort();
    const std::string once = history::first_line() + "\n" + history::line_of(run) + "\n";
    if (rewritten(once) != once) std::abort();
  }
  return 0;
}
