// torch.utils.benchmark: measurements of a Timer, as they are printed. Each is a case, named by its
// title or statement, with the median as its time.
#include "gate/adapters/work_table.hpp"

namespace weir::adapters::torch_benchmark {
namespace {

constexpr std::string_view k_begin = "utils.common.Measurement object at";
constexpr std::string_view k_parts = "measurements";

// Reads "Median: 5.46 ms", or the only time of a measurement, "22.37 ms".
std::optional<double> read_time(std::string_view line) {
  LineScanner scan(line);
  std::ignore = scan.skip_prefix("Median:");
  const std::string time(scan.rest());
  const std::size_t gap = time.find(' ');
  if (gap == time.npos || time.find(' ', gap + 1) != time.npos) return std::nullopt;
  return time_cell(time.substr(0, gap) + time.substr(gap + 1));
}

// Reads "365 measurements, 1 runs per measurement, 1 thread", the last line of a measurement.
// Returns false for other lines.
bool read_counts(std::string_view line, ObservedCase& measurement) {
  LineScanner scan(line);
  std::int64_t measurements = 0, runs = 0, threads = 0;
  const bool is_end =
      scan.read_values("{} measurements, {} runs per measurement, {} thread", measurements, runs,
                       threads) ||
      scan.read_values("{} measurement, {} runs , {} thread", measurements, runs, threads);
  if (!is_end) return false;
  measurement.facts["measurements"] = fmt::format("{}", measurements);
  measurement.facts["runs"] = fmt::format("{}", runs);
  measurement.facts["threads"] = fmt::format("{}", threads);
  return true;
}

// Adds a complete measurement. `names` counts measurements of equal name, which get a number.
void add_measurement(ObservedCase measurement, std::map<std::string, int>& names,
                     Observed& observed) {
  if (measurement.timings.empty()) {
    return add_unread_part(observed, k_parts, "a measurement has no time");
  }
  const std::string threads = measurement.facts["threads"];
  if (threads != "1") measurement.name += fmt::format(", {} threads", threads);
  const int number = ++names[measurement.name];
  if (number > 1) measurement.name += fmt::format(" ({})", number);
  add_read_parts(observed, k_parts);
  append_row_within_limit(observed.cases, std::move(measurement), observed);
}

}  // namespace

// Reads measurements, and warnings after them:
//
//   <torch.utils.benchmark.utils.common.Measurement object at 0x7f2a>
//   softmax (4096, 4096)
//   Median: 5.46 ms
//   IQR:    0.12 ms (5.41 to 5.53)
//   365 measurements, 1 runs per measurement, 1 thread
//   WARNING: Interquartile range is 12.4% of the median measurement.
void read(const Printed& printed, Observed& observed) {
  std::optional<ObservedCase> measurement;  // the one that the lines belong to
  std::map<std::string, int> names;
  for (const std::string_view line : printed.lines()) {
    if (line.find(k_begin) != line.npos) {
      if (measurement) add_unread_part(observed, k_parts, "a measurement has no time");
      measurement.emplace();
      continue;
    }
    LineScanner scan(line);
    if (!observed.cases.empty() && !measurement && scan.skip_prefix("WARNING:"))
      add_warning(observed, "{}: {}", observed.cases.back().name, display_text(scan.rest()));
    if (!measurement || printed.may_be_cut(line)) continue;
    const auto seconds = read_time(line);
    if (measurement->name.empty()) {
      measurement->name = display_text(scan.rest());
    } else if (seconds && measurement->timings.empty()) {
      add_sample(measurement->timings, "real_seconds", *seconds);
    } else if (scan.skip_prefix("IQR:")) {
      measurement->facts["IQR"] = display_text(scan.rest());
    } else if (read_counts(line, *measurement)) {
      add_measurement(*std::exchange(measurement, std::nullopt), names, observed);
    }
  }
  if (measurement) mark_truncated(observed);
}

}  // namespace weir::adapters::torch_benchmark

const weir::adapters::Format weir::adapters::k_torch_benchmark(
    "torch-benchmark", "torch.utils.benchmark: measurements of a Timer", "", torch_benchmark::read,
    {{90, {"utils.common.Measurement object at"}}});
