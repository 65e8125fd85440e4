// weir measured by itself. Google Benchmark runs the cases interleaved; what counts are the ratios
// of their medians, printed at the end.
#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "benchmarks/self/ratio.hpp"

namespace {

// Prints as usual and keeps the times (ns an iteration) of every repetition.
class Keeping final : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.run_type == Run::RT_Iteration && !run.error_occurred) {
        times_[run.run_name.function_name].push_back(run.real_accumulated_time * 1e9 /
                                                     static_cast<double>(run.iterations));
      }
    }
    ConsoleReporter::ReportRuns(runs);
  }

  [[nodiscard]] double median(const std::string& name) const {
    const auto found = times_.find(name);
    if (found == times_.end() || found->second.empty()) return 0;
    std::vector<double> sorted = found->second;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }

 private:
  std::map<std::string, std::vector<double>> times_;
};

}  // namespace

int main(int argc, char** argv) {
  std::vector<char*> arguments(argv, argv + argc);
  std::string repetitions = "--benchmark_repetitions=7";
  std::string interleave = "--benchmark_enable_random_interleaving=true";
  arguments.insert(arguments.begin() + 1, {repetitions.data(), interleave.data()});
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 2;
  Keeping reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  std::printf("\n");
  for (const weir::bench::Ratio& ratio : weir::bench::ratios()) {
    const double top = reporter.median(ratio.top);
    const double bottom = reporter.median(ratio.bottom);
    if (top <= 0 || bottom <= 0) continue;
    const double value = ratio.difference ? (top - bottom) / ratio.per : top / bottom;
    std::printf("%-58s %8.2f %s   goal <= %g\n", ratio.what, value, ratio.difference ? "ns" : "x ",
                ratio.goal);
  }
  return 0;
}
