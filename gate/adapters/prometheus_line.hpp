// One sample of Prometheus' text format or OpenMetrics. Hostile text; pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace weir::adapters {

struct PrometheusSample {
  std::string name, labels;  // labels as they stand: `le="0.5",model="m"`
  double value = 0;
  std::optional<double> at;
};

// Nothing where the line is none.
[[nodiscard]] std::optional<PrometheusSample> prometheus_sample(std::string_view line);
// "+Inf" and "NaN" are values of the format, and none of a measurement.
[[nodiscard]] std::optional<double> prometheus_value(std::string_view text);
// Past a quoted value that begins at `at`; npos when it does not end.
[[nodiscard]] std::size_t past_prometheus_quoted(std::string_view text, std::size_t at);

}  // namespace weir::adapters
