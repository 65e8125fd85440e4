#include "gate/profile/observed_figures.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace weir::profile {
namespace {

double median_of(std::vector<std::int64_t> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return static_cast<double>(*middle);
}

}  // namespace

std::vector<ObservedFigure> figures_of(const Observed& observed) {
  std::vector<ObservedFigure> list;
  const auto add = [&](std::string name, const unit::Metric& metric, double value) {
    list.push_back({std::move(name), metric, value, std::nullopt});
  };
  for (const auto& timing : observed.timings) {
    if (const auto value = timing.value()) add(timing.metric.name, timing.metric, *value);
  }
  for (const auto& one : observed.latencies) {
    const std::string figure = one.percentile ? fmt::format("p{:g}", *one.percentile) : one.figure;
    add(fmt::format("{} {}", one.metric.name, figure), one.metric, one.seconds);
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

}  // namespace weir::profile
