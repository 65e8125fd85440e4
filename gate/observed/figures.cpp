#include "gate/observed/figures.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace weir::observed {
namespace {

double median_of(std::vector<std::int64_t> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return static_cast<double>(*middle);
}

}  // namespace

std::string figure_name(const ObservedLatency& latency) {
  if (latency.percentile) return fmt::format("p{:g}", *latency.percentile);
  return latency.figure == "median" ? "p50" : latency.figure;
}

std::vector<ObservedFigure> figures_of(const Observed& observed) {
  std::vector<ObservedFigure> list;
  const auto add = [&](std::string name, const unit::Metric& metric, double value) {
    list.push_back({std::move(name), metric, value, std::nullopt});
  };
  for (const auto& timing : observed.timings) {
    if (const auto value = timing.value()) add(timing.metric.name, timing.metric, *value);
  }
  for (const auto& one : observed.latencies) {
    std::string name = fmt::format("{} {}", one.metric.name, figure_name(one));
    // A median and a p50 are one figure.
    const auto same = [&](const ObservedFigure& other) { return other.name == name; };
    if (std::any_of(list.begin(), list.end(), same)) continue;
    if (one.at_most) {
      list.push_back({std::move(name), one.metric, std::nullopt,
                      "at most " + unit::show(one.metric, one.seconds)});
    } else {
      add(std::move(name), one.metric, one.seconds);
    }
  }
  for (const auto& count : observed.counts) {
    if (!count.values.empty()) add(count.metric.name, count.metric, median_of(count.values));
  }
  for (const auto& one : observed.cases) {
    for (const auto& timing : one.timings) {
      const auto value = timing.value();
      if (!value) continue;
      list.push_back(
          {fmt::format("{} {}", one.name, timing.metric.name), timing.metric, *value, one.error});
    }
    if (one.error) list.push_back({one.name, {}, std::nullopt, one.error});
  }
  return list;
}

}  // namespace weir::observed
