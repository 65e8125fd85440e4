// Measures find_changes on made-up and recorded noise, and compares it with Otava's method.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "gate/sys/files.hpp"

#include "benchmarks/change_points/tables.hpp"
#include "benchmarks/decision_quality/trace.hpp"

namespace weir::changes {
namespace {

struct Options {
  std::vector<std::string> tables, traces;
  std::size_t series = 10000;
  Bench bench;
};

// Reads the recorded times of --trace into options.bench.
Result<void> read_times(Options& options) {
  const sys::RealFiles files;
  for (const std::string& file : options.traces) {
    WEIR_TRY(const std::string text, files.read(file, quality::k_trace_bytes));
    WEIR_TRY(const std::vector<quality::Trace> traces, quality::read_trace(file, text));
    for (const quality::Trace& trace : traces) {
      if (!trace.runs.empty()) options.bench.recordings.push_back(make_recording(trace.runs));
    }
  }
  return {};
}

// Prints the tables that the options select, or all. Slow tables get a fifth of the series.
void print_tables(const Options& options) {
  const auto print_if_selected = [&](const std::string& name, const auto& make) {
    if (!options.tables.empty() &&
        std::find(options.tables.begin(), options.tables.end(), name) == options.tables.end()) {
      return;
    }
    std::printf("%s\n\n%s\n", name.c_str(), make().c_str());
    std::fflush(stdout);
  };
  const std::size_t fifth_of_series = std::max<std::size_t>(1, options.series / 5);
  print_if_selected("unchanged", [&] { return unchanged_table(options.bench, options.series); });
  print_if_selected("steps", [&] { return step_table(options.bench, fifth_of_series); });
  print_if_selected("sensitivity",
                    [&] { return sensitivity_table(options.bench, options.series); });
  print_if_selected("pelt", [&] { return pelt_table(options.bench, fifth_of_series); });
  print_if_selected("drift", [&] { return drift_table(options.bench, fifth_of_series); });
  print_if_selected("shapes", [&] { return shape_table(options.bench, fifth_of_series); });
  print_if_selected("ends", [&] { return end_table(options.bench, fifth_of_series); });
  print_if_selected("speed", [&] { return speed_table(options.bench); });
}

}  // namespace
}  // namespace weir::changes

// Reads the options and prints the tables that they select. Returns the exit code.
int main(int argc, char** argv) {
  weir::changes::Options options;
  CLI::App app("How often changes are seen where there are none, and how soon where there are");
  app.add_option("--table", options.tables,
                 "unchanged, sensitivity, steps, pelt, drift, shapes, ends, speed (all)")
      ->check(CLI::IsMember(
          {"unchanged", "sensitivity", "steps", "pelt", "drift", "shapes", "ends", "speed"}));
  app.add_option("--trace", options.traces, "recorded times, one a line in nanoseconds");
  app.add_option("--noise", options.bench.noises, "these alone, in the tables unchanged and pelt")
      ->check(CLI::IsMember(weir::changes::noise_names()));
  app.add_option("--series", options.series, "series a figure; steps and shapes a fifth of it");
  app.add_option("--seed", options.bench.seed, "what comes out depends on it alone");
  app.add_option("--threads", options.bench.threads, "1")->check(CLI::Range(1, 256));
  CLI11_PARSE(app, argc, argv);
  const auto read = weir::changes::read_times(options);
  if (!read) {
    std::fprintf(stderr, "%s\n", read.error().message.c_str());
    return 2;
  }
  weir::changes::print_tables(options);
  return 0;
}
