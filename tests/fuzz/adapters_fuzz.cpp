// Fuzz target: any text as an engine's output, for every adapter. The first byte says where
// standard output ends and standard error begins.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "gate/adapters/format.hpp"

namespace {

weir::config::GenericOutput rules() {
  weir::config::GenericOutput output;
  for (const char* regex : {R"(([\d.]+) tok/s)", R"((\S+))"}) {
    weir::config::ValueRule rule;
    rule.metric = "decode_tokens_per_second";
    rule.regex = regex;
    rule.pick = weir::config::ValueRule::Pick::all;
    output.values.push_back(rule);
  }
  for (const char* pointer : {"/0/n_gen", "/a/b", "/samples_ns/1"}) {
    weir::config::ValueRule rule;
    rule.metric = "syncs_per_token";
    rule.pointer = pointer;
    output.values.push_back(rule);
  }
  output.facts = {output.values.front(), output.values.back()};
  output.facts[0].metric = "output_digest";
  output.facts[1].metric = "generated_tokens";
  return output;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weir::adapters;
  static const auto k_rules = rules();
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  const std::size_t cut = text.size() * data[0] / 255;
  for (const Adapter& adapter : table()) {
    const auto report = adapter.read(
        {text.substr(0, cut), text.substr(cut), {16, 0, 3, 0}, "vulkan", &k_rules, std::nullopt});
    if (!report) {
      if (report.error().message.empty()) std::abort();
      continue;
    }
    for (const auto& series : report->times) {
      for (const double sample : series.samples) {
        if (!std::isfinite(sample) || sample <= 0) std::abort();
      }
    }
    for (const auto& [name, count] : report->counts) {
      if (count < 0) std::abort();
    }
  }
  return 0;
}
