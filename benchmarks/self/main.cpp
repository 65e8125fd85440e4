// Measures weir's own cost. Google Benchmark runs the cases interleaved; the results are the ratios
// of their medians, printed at the end.
#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "benchmarks/self/ratio.hpp"

namespace {

// Prints as usual and records the times of every repetition, in ns per iteration: wall time, and
// processor time, which other programs on the machine disturb less.
class RecordingReporter final : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.run_type == Run::RT_Iteration && !run.error_occurred) {
        const auto iterations = static_cast<double>(run.iterations);
        Times& times = times_[run.run_name.function_name];
        times.clock.push_back(run.real_accumulated_time * 1e9 / iterations);
        times.processor.push_back(run.cpu_accumulated_time * 1e9 / iterations);
      }
    }
    ConsoleReporter::ReportRuns(runs);
  }

  // Returns 0 if the benchmark did not run.
  [[nodiscard]] double median(const std::string& name, bool of_processor) const {
    const auto entry = times_.find(name);
    if (entry == times_.end()) return 0;
    const Times& times = entry->second;
    std::vector<double> sorted = of_processor ? times.processor : times.clock;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }

 private:
  struct Times {
    std::vector<double> clock, processor;
  };
  std::map<std::string, Times> times_;
};

}  // namespace

// Runs every benchmark seven times, and prints each ratio or difference beside its limit. Judges
// nothing.
int main(int argc, char** argv) {
  std::vector<char*> arguments(argv, argv + argc);
  std::string repetitions = "--benchmark_repetitions=7";
  std::string interleave = "--benchmark_enable_random_interleaving=true";
  arguments.insert(arguments.begin() + 1, {repetitions.data(), interleave.data()});
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 2;
  RecordingReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  std::printf("\n");
  for (const weir::bench::Ratio& ratio : weir::bench::ratios()) {
    const bool by_processor_time = ratio.is_difference;
    const double top = reporter.median(ratio.top, by_processor_time);
    const double bottom = reporter.median(ratio.bottom, by_processor_time);
    if (top <= 0 || bottom <= 0) continue;  // not selected
    const double value = ratio.is_difference ? (top - bottom) / ratio.divisor : top / bottom;
    std::printf("%-58s %8.2f %s   limit %g\n", ratio.label, value,
                ratio.is_difference ? "ns" : "x ", ratio.limit);
  }
  return 0;
}
