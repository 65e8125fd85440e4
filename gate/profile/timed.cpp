// The timed pass: one number a process and metric.
#include <algorithm>

#include "gate/profile/passes.hpp"

namespace weir::profile {
namespace {

constexpr std::string_view k_memory = "peak_rss_bytes";

double best(const std::vector<double>& samples, unit::Better better) {
  return better == unit::Better::higher ? *std::max_element(samples.begin(), samples.end())
                                        : *std::min_element(samples.begin(), samples.end());
}

Measurement& sampled(Profile& profile, const unit::Metric& metric, std::string_view source) {
  Measurement& measured = profile.metrics[metric.name];
  measured.metric = metric;
  measured.nature = Nature::sampled;
  measured.source = source;
  return measured;
}

}  // namespace

void add_timed(const CellFacts& facts, const Records& timed, Profile& profile) {
  std::vector<std::string> names;
  for (const RunRecord* record : timed) {
    for (const auto& series : record->report->times) {
      // weir's own reading of peak memory covers every engine alike.
      if (series.samples.empty() ||
          (series.metric.name == k_memory && record->peak_rss_bytes.has_value())) {
        continue;
      }
      sampled(profile, series.metric, facts.times_source)
          .samples.push_back(best(series.samples, series.metric.better));
      add_once(names, series.metric.name);
    }
    if (record->peak_rss_bytes) {
      sampled(profile, *unit::find_metric(k_memory), "weir")
          .samples.push_back(static_cast<double>(*record->peak_rss_bytes));
    }
  }
  for (const std::string& name : names) {
    Measurement& measured = profile.metrics[name];
    if (measured.samples.size() < timed.size()) {
      measured.warnings.push_back(fmt::format("{}: reported by {} of {} timed runs", name,
                                              measured.samples.size(), timed.size()));
    }
  }
}

}  // namespace weir::profile
