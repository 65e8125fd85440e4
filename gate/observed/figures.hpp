// What a profile says in single numbers, whatever shows or compares them. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gate/observed/observed.hpp"
#include "gate/unit/metric.hpp"

namespace weir::observed {

struct ObservedFigure {
  std::string name;  // with the case it is of: "tg8 decode_tokens_per_second"
  unit::Metric metric;
  std::optional<double> value;  // in the metric's base unit; absent in a line for `error` alone
  // Why no ratio is to be made of it: what the case that it is of failed with, or that it is a
  // bound ("at most 50.0 ms": the edge of a histogram's bucket).
  std::optional<std::string> error;
};

// "p50", also of a median; "mean".
[[nodiscard]] std::string figure_name(const ObservedLatency& latency);

// Times, percentiles of latency, counts (their median), then case by case: its times, its error.
[[nodiscard]] std::vector<ObservedFigure> figures_of(const Observed& observed);

}  // namespace weir::observed
