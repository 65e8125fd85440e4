#include "gate/explain/bands.hpp"

#include <fmt/format.h>

namespace weir::explain {
namespace {

std::string usual(const Band& band) {
  if (!band.good_from || !band.good_to) return "";
  return fmt::format("; {:g} to {:g} are usual", *band.good_from, *band.good_to);
}

}  // namespace

const Bands& default_bands() {
  static const Bands k_bands = {
      {"dispatches_per_token", {100, 300, 600, 1000}},
      {"barriers_per_token", {100, 300, 700, 1000}},
      {"syncs_per_token", {1, 1, 3, 10}},
  };
  return k_bands;
}

std::vector<Hint> hints_of(const Evidence& evidence, const Bands& bands) {
  std::vector<Hint> hints;
  if (evidence.device == "cpu") return hints;
  for (const auto& [name, band] : bands) {
    const auto found = evidence.after.metrics.find(name);
    const auto metric = unit::find_metric(name);
    if (found == evidence.after.metrics.end() || !metric) continue;
    const double value = found->second.value();
    const std::string label = unit::label(*metric);
    if (band.high && value > *band.high) {
      hints.push_back({name, value, true,
                       fmt::format("{:g} {} is high (more than {:g}){}.", value, label, *band.high,
                                   usual(band))});
    } else if (band.low && value < *band.low) {
      const bool none = value == 0 && metric->base == "syncs";
      hints.push_back(
          {name, value, false,
           none ? fmt::format("0 {}: suspicious, for a token has to be waited for.", label)
                : fmt::format("{:g} {} is low (less than {:g}): well fused, a small "
                              "model, or work that runs elsewhere.",
                              value, label, *band.low)});
    }
  }
  return hints;
}

}  // namespace weir::explain
