// torch.utils.benchmark: measurements of a Timer, as they are printed. Each is a case, named by its
// title or statement, with the median as its time.
#include "gate/adapters/work_table.hpp"

namespace weir::adapters::torch_benchmark {
namespace {

constexpr std::string_view k_begin = "utils.common.Measurement object at";
constexpr std::string_view k_parts = "measurements";

// Reads "Median: 5.46 ms", or the only time of a measurement, "22.37 ms".
std::optional<double> read_time(std::string_view line) {
  Scan scan(line);
  std::ignore = scan.skip_prefix("Median:");
  const std::string time(scan.rest());
  const std::size_t gap = time.find(' ');
  if (gap == time.npos || time.find(' ', gap + 1) != time.npos) return std::nullopt;
  return time_cell(time.substr(0, gap) + time.substr(gap + 1));
}

// Reads "365 measurements, 1 runs per measurement, 1 thread", which ends a measurement.
bool take_counts(std::string_view line, ObservedCase& test) {
  Scan scan(line);
  std::int64_t measurements = 0, runs = 0, threads = 0;
  const bool is_end =
      scan.parse("{} measurements, {} runs per measurement, {} thread", measurements, runs,
                 threads) ||
      scan.parse("{} measurement, {} runs , {} thread", measurements, runs, threads);
  if (!is_end) return false;
  test.facts["measurements"] = fmt::format("{}", measurements);
  test.facts["runs"] = fmt::format("{}", runs);
  test.facts["threads"] = fmt::format("{}", threads);
  return true;
}

}  // namespace

void read(const Printed& printed, Observed& observed) {
  std::optional<ObservedCase> test;
  const auto give_up = [&] {
    if (test) count_unread(observed, k_parts, "a measurement has no time");
    test.reset();
  };
  std::map<std::string, int> names;
  for (const std::string_view line : printed.lines()) {
    if (line.find(k_begin) != line.npos) {
      give_up();
      test.emplace();
      continue;
    }
    Scan scan(line);
    if (!observed.cases.empty() && !test && scan.skip_prefix("WARNING:"))
      add_warning(observed, "{}: {}", observed.cases.back().name, display_text(scan.rest()));
    if (!test || printed.is_cut(line)) continue;
    if (test->name.empty()) {
      test->name = display_text(scan.rest());
    } else if (const auto seconds = read_time(line); seconds && test->timings.empty()) {
      add_sample(test->timings, "real_seconds", *seconds);
    } else if (scan.skip_prefix("IQR:")) {
      test->facts["IQR"] = display_text(scan.rest());
    } else if (take_counts(line, *test)) {
      if (test->timings.empty()) {
        give_up();
        continue;
      }
      const std::string threads = test->facts["threads"];
      if (threads != "1") test->name += fmt::format(", {} threads", threads);
      if (const int number = ++names[test->name]; number > 1)
        test->name += fmt::format(" ({})", number);
      count_read(observed, k_parts);
      append_row_within_limit(observed.cases, std::move(*test), observed);
      test.reset();
    }
  }
  if (test) mark_truncated(observed);
}

}  // namespace weir::adapters::torch_benchmark

const weir::adapters::Format weir::adapters::k_torch_benchmark(
    "torch-benchmark", "torch.utils.benchmark: measurements of a Timer", "", torch_benchmark::read,
    {{90, {"utils.common.Measurement object at"}}});
