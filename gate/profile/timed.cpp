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

}  // namespace

std::vector<ProcessNumber> process_numbers(const RunRecord& record,
                                           const std::string& times_source) {
  std::vector<ProcessNumber> numbers;
  if (record.report) {
    for (const auto& series : record.report->times) {
      // weir's own reading of peak memory covers every engine alike.
      if (series.samples.empty() ||
          (series.metric.name == k_memory && record.peak_rss_bytes.has_value())) {
        continue;
      }
      numbers.push_back({series.metric, times_source, best(series.samples, series.metric.better)});
    }
  }
  if (record.peak_rss_bytes) {
    numbers.push_back(
        {*unit::find_metric(k_memory), "weir", static_cast<double>(*record.peak_rss_bytes)});
  }
  return numbers;
}

void add_timed(const CellFacts& facts, const Records& timed, Profile& profile) {
  std::vector<std::string> names;
  for (const RunRecord* record : timed) {
    for (const ProcessNumber& number : process_numbers(*record, facts.times_source)) {
      Measurement& measured = profile.metrics[number.metric.name];
      measured.metric = number.metric;
      measured.nature = Nature::sampled;
      measured.source = number.source;
      measured.samples.push_back(number.value);
      if (number.metric.name != k_memory) add_once(names, number.metric.name);
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
