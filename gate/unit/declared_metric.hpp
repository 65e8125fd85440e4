// Metrics that a user names: the end of the name says unit, direction and kind. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gate/unit/metric.hpp"

namespace weir::unit {

struct DeclaredMetric {
  Metric metric;
  Scale scale;  // of the values as printed: milliseconds of "start_ms"
};

// Returns the metric that a name declares by its end ("load_seconds", "hit_rate"). Nothing if its
// end says nothing, or if it is a metric of weir's with a letter too many, too few or wrong.
[[nodiscard]] std::optional<DeclaredMetric> metric_of_name(std::string_view name);

// Returns the ends that metric_of_name() knows: "_tokens_per_second, … (more is better), …".
[[nodiscard]] std::string metric_name_ends();

// Returns the question whether a metric of a near name, or of this label, was meant, or the count
// per token for the base of one ("dispatches"); "" if none is near.
[[nodiscard]] std::string suggest_metric(std::string_view name);

}  // namespace weir::unit
