// Measures find_changes on made-up and recorded noise, beside Otava's method. See README.md.
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

struct Asked {
  std::vector<std::string> tables, traces;
  std::size_t series = 10000;
  Bench bench;
};

Result<void> read_times(Asked& asked) {
  const sys::RealFiles files;
  for (const std::string& file : asked.traces) {
    WEIR_TRY(const std::string text, files.read(file, quality::k_trace_bytes));
    WEIR_TRY(const std::vector<quality::Trace> traces, quality::read_trace(file, text));
    for (const quality::Trace& trace : traces) {
      if (!trace.runs.empty()) asked.bench.times.push_back(recorded(trace.runs));
    }
  }
  return {};
}

void show(const Asked& asked) {
  const auto table = [&](const std::string& name, const auto& make) {
    if (!asked.tables.empty() &&
        std::find(asked.tables.begin(), asked.tables.end(), name) == asked.tables.end()) {
      return;
    }
    std::printf("%s\n\n%s\n", name.c_str(), make().c_str());
    std::fflush(stdout);
  };
  const std::size_t few = std::max<std::size_t>(1, asked.series / 5);
  table("unchanged", [&] { return unchanged_table(asked.bench, asked.series); });
  table("steps", [&] { return step_table(asked.bench, few); });
  table("sensitivity", [&] { return sensitivity_table(asked.bench, asked.series); });
  table("pelt", [&] { return pelt_table(asked.bench, few); });
  table("drift", [&] { return drift_table(asked.bench, few); });
  table("shapes", [&] { return shape_table(asked.bench, few); });
  table("speed", [&] { return speed_table(asked.bench); });
}

}  // namespace
}  // namespace weir::changes

int main(int argc, char** argv) {
  weir::changes::Asked asked;
  CLI::App app("How often changes are seen where there are none, and how soon where there are");
  app.add_option("--table", asked.tables,
                 "unchanged, sensitivity, steps, pelt, drift, shapes, speed (all)")
      ->check(
          CLI::IsMember({"unchanged", "sensitivity", "steps", "pelt", "drift", "shapes", "speed"}));
  app.add_option("--trace", asked.traces, "recorded times, one a line in nanoseconds");
  app.add_option("--noise", asked.bench.noises, "these alone, in the tables unchanged and pelt")
      ->check(CLI::IsMember(weir::changes::noises()));
  app.add_option("--series", asked.series, "series a figure; steps and shapes a fifth of it");
  app.add_option("--seed", asked.bench.seed, "what comes out depends on it alone");
  app.add_option("--threads", asked.bench.threads, "1")->check(CLI::Range(1, 256));
  CLI11_PARSE(app, argc, argv);
  const auto read = weir::changes::read_times(asked);
  if (!read) {
    std::fprintf(stderr, "%s\n", read.error().message.c_str());
    return 2;
  }
  weir::changes::show(asked);
  return 0;
}
