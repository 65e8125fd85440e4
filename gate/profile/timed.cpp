// The timed pass: one number a process and metric.

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/profile/passes.hpp"

namespace weir::profile {
namespace {

constexpr std::string_view k_memory = "peak_rss_bytes";

double best(const std::vector<double>& samples, unit::Better better) {
  const auto [least, most] = std::ranges::minmax(samples);
  return better == unit::Better::higher ? most : least;
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
  if (!record.took) return numbers;
  const auto add = [&](const char* name, double value) {
    numbers.push_back({*unit::find_metric(name), "weir", value});
  };
  if (record.cpu_seconds) add("process_cpu_seconds", *record.cpu_seconds);
  const Took& took = *record.took;
  add("voluntary_switches", static_cast<double>(took.voluntary_switches));
  add("involuntary_switches", static_cast<double>(took.involuntary_switches));
  add("minor_faults", static_cast<double>(took.minor_faults));
  add("major_faults", static_cast<double>(took.major_faults));
  return numbers;
}

void add_timed(const CellFacts& facts, const Records& timed, Profile& profile) {
  std::vector<std::string> names;
  for (const RunRecord* record : timed) {
    for (const ProcessNumber& number : process_numbers(*record, facts.times_source)) {
      Measurement& measured = profile.metrics[number.metric.name];
      measured.metric = number.metric;
      measured.nature =
          number.metric.kind == unit::Kind::count ? Nature::nearly_exact : Nature::sampled;
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

// What the machine did while some processes took far longer than others.

namespace {

constexpr double k_far = 1.5;                // x the median wall time
constexpr double k_steal = 0.02;             // of all processors' time
constexpr double k_busier = 1.0;             // load average above the middle one's
constexpr std::int64_t k_more_faults = 100;  // major ones, above the middle one's

template <class Get>
double median_of(const Records& records, Get get) {
  auto values = collect<double>(records, [&](const RunRecord* one) { return get(*one); });
  std::ranges::sort(values);
  return values[values.size() / 2];
}

double wall(const RunRecord& record) { return record.wall_seconds; }
double load(const RunRecord& record) { return record.machine.other_load.value_or(0); }
double faults(const RunRecord& record) {
  return static_cast<double>(record.machine.major_faults.value_or(0));
}

}  // namespace

std::optional<std::string> explain_outliers(std::string_view program, const Records& records) {
  if (records.empty()) return std::nullopt;
  const double usual = median_of(records, wall), usual_load = median_of(records, load),
               usual_faults = median_of(records, faults);
  int far = 0, stolen = 0, busy = 0, paged = 0;
  double most_steal = 0, most_load = 0;
  for (const RunRecord* record : records) {
    if (record->wall_seconds <= k_far * usual) continue;
    ++far;
    const double steal = record->machine.steal_share.value_or(0);
    if (steal >= k_steal) ++stolen;
    if (load(*record) >= usual_load + k_busier) ++busy;
    if (faults(*record) >= usual_faults + k_more_faults) ++paged;
    most_steal = std::max(most_steal, steal);
    most_load = std::max(most_load, load(*record));
  }
  std::vector<std::string> reasons;
  if (stolen > 0) {
    reasons.push_back(fmt::format("the hypervisor took up to {:.0f} % of the processors in {}",
                                  most_steal * 100, stolen));
  }
  if (busy > 0) {
    reasons.push_back(
        fmt::format("other programs ran during {} (load average up to {:.1f}, usually {:.1f})",
                    busy, most_load, usual_load));
  }
  if (paged > 0)
    reasons.push_back(fmt::format("pages had to be read from disk again in {}", paged));
  if (reasons.empty()) return std::nullopt;
  return fmt::format("{} of {} processes of {} took over {:g} x the usual time: {}", far,
                     records.size(), program, k_far, text::join(reasons, "; "));
}

}  // namespace weir::profile
