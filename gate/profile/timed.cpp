// Assembles the timed pass: one number per process and metric.

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/profile/passes.hpp"
#include "gate/profile/usage.hpp"
#include "gate/stats/quantile.hpp"

namespace weir::profile {
namespace {

constexpr std::string_view k_memory = "peak_rss_bytes";

// The machine's resources that weir measures of each timed process.
struct Usage {
  const char* metric;
  std::optional<double> (*read)(const RunRecord& record);
};
template <std::int64_t SystemUsage::*member>
std::optional<double> usage_of(const RunRecord& record) {
  return static_cast<double>((*record.system_usage).*member);
}
constexpr Usage k_usage[] = {
    {"process_cpu_seconds", [](const RunRecord& record) { return record.cpu_seconds; }},
    {"voluntary_switches", usage_of<&SystemUsage::voluntary_switches>},
    {"involuntary_switches", usage_of<&SystemUsage::involuntary_switches>},
    {"minor_faults", usage_of<&SystemUsage::minor_faults>},
    {"major_faults", usage_of<&SystemUsage::major_faults>},
};

double best(const std::vector<double>& samples, unit::Better better) {
  const auto [lowest, highest] = std::ranges::minmax(samples);
  return better == unit::Better::higher ? highest : lowest;
}

}  // namespace

bool is_measured_by_weir(std::string_view metric) {
  return std::ranges::any_of(k_usage, [&](const Usage& usage) { return metric == usage.metric; });
}

// Returns the best number of each metric that a process reports, and weir's own readings of it.
std::vector<ProcessNumber> process_numbers(const RunRecord& record,
                                           const std::string& engine_source) {
  std::vector<ProcessNumber> numbers;
  if (record.report) {
    for (const auto& series : record.report->times) {
      // weir's own reading of peak memory covers every engine alike.
      if (series.samples.empty() || is_measured_by_weir(series.metric.name) ||
          (series.metric.name == k_memory && record.peak_rss_bytes.has_value())) {
        continue;
      }
      numbers.push_back({series.metric, engine_source, best(series.samples, series.metric.better)});
    }
  }
  if (record.peak_rss_bytes) {
    numbers.push_back(
        {*unit::find_metric(k_memory), "weir", static_cast<double>(*record.peak_rss_bytes)});
  }
  if (!record.system_usage) return numbers;
  for (const Usage& usage : k_usage) {
    if (const auto value = usage.read(record))
      numbers.push_back({*unit::find_metric(usage.metric), "weir", *value});
  }
  return numbers;
}

// Adds each number of the timed runs as a sample of its metric. Warns if some runs did not report
// a metric.
void add_timed(const CellFacts& facts, const Records& timed, Profile& profile) {
  std::set<std::string> names;
  for (const RunRecord* record : timed) {
    for (const ProcessNumber& number : process_numbers(*record, facts.engine_source)) {
      Measurement& measurement = profile.metrics[number.metric.name];
      measurement.metric = number.metric;
      measurement.nature =
          number.metric.kind == unit::Kind::count ? Nature::nearly_exact : Nature::sampled;
      measurement.source = number.source;
      measurement.samples.push_back(number.value);
      if (number.metric.name != k_memory) names.insert(number.metric.name);
    }
  }
  for (const std::string& name : names) {
    Measurement& measurement = profile.metrics[name];
    if (measurement.samples.size() < timed.size()) {
      measurement.warnings.push_back(fmt::format("{}: reported by {} of {} timed runs", name,
                                                 measurement.samples.size(), timed.size()));
    }
  }
}

// Finds what the machine did while some processes took far longer than others.

namespace {

constexpr double k_slow_factor = 1.5;        // x the median wall time
constexpr double k_steal = 0.02;             // share of the time of all processors
constexpr double k_busier = 1.0;             // load average above the middle one's
constexpr std::int64_t k_more_faults = 100;  // major ones, above the middle one's

// Returns the median of what `get` reads from at least one record.
template <class Get>
double median_of(const Records& records, Get get) {
  return *stats::median(
      collect<double>(records, [&](const RunRecord* record) { return get(*record); }));
}

double wall_time(const RunRecord& record) { return record.wall_seconds; }
double load_average(const RunRecord& record) { return record.machine.other_load.value_or(0); }
double major_faults(const RunRecord& record) {
  return static_cast<double>(record.machine.major_faults.value_or(0));
}

}  // namespace

// Explains processes that took over 1.5 x the usual time; nothing if there are none, or no reason.
std::optional<std::string> explain_outliers(std::string_view program, const Records& records) {
  if (records.empty()) return std::nullopt;
  const double usual_wall = median_of(records, wall_time),
               usual_load = median_of(records, load_average),
               usual_faults = median_of(records, major_faults);
  int slow = 0, stolen = 0, busy = 0, paged = 0;
  double max_steal = 0, max_load = 0;
  for (const RunRecord* record : records) {
    if (record->wall_seconds <= k_slow_factor * usual_wall) continue;
    ++slow;
    const double steal = record->machine.steal_share.value_or(0);
    if (steal >= k_steal) ++stolen;
    if (load_average(*record) >= usual_load + k_busier) ++busy;
    if (major_faults(*record) >= usual_faults + k_more_faults) ++paged;
    max_steal = std::max(max_steal, steal);
    max_load = std::max(max_load, load_average(*record));
  }
  std::vector<std::string> reasons;
  if (stolen > 0) {
    reasons.push_back(fmt::format("the hypervisor took up to {:.0f} % of the processors in {}",
                                  max_steal * 100, stolen));
  }
  if (busy > 0) {
    reasons.push_back(
        fmt::format("other programs ran during {} (load average up to {:.1f}, usually {:.1f})",
                    busy, max_load, usual_load));
  }
  if (paged > 0) {
    reasons.push_back(fmt::format("pages had to be read from disk again in {}", paged));
  }
  if (reasons.empty()) return std::nullopt;
  return fmt::format("{} of {} processes of {} took over {:g} x the usual time: {}", slow,
                     records.size(), program, k_slow_factor, text::join(reasons, "; "));
}

}  // namespace weir::profile
