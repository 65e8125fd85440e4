// pytest-benchmark: --benchmark-json, and what --benchmark-save leaves. Each benchmark is a case.
// Its rounds are samples where the file has them (--benchmark-save-data), else their median is.
#include "gate/adapters/readers.hpp"

namespace weir::adapters::pytest_benchmark {
namespace {

// Reads {"fullname": "bench.py::test_gemv", "stats": {"median": 0.0012, "data": [0.0012, …]}, …}.
void read_benchmark(const Json& row, Observed& observed) {
  const Json& stats = member_or_null(row, "stats");
  if (!stats.is_object()) return;
  ObservedCase benchmark;
  auto name = json_text(row, "fullname");
  if (!name) name = json_text(row, "name");
  benchmark.name = name.value_or(fmt::format("benchmark {}", observed.cases.size()));
  if (const Json& params = member_or_null(row, "params"); params.is_object())
    add_facts(params, benchmark.facts);
  copy_facts(stats, {"rounds", "iterations", "min", "max"}, benchmark);
  for (const Json& seconds : list_or_empty(stats, "data")) {
    if (seconds.is_number()) add_sample(benchmark.timings, "real_seconds", seconds.get<double>());
  }
  if (benchmark.timings.empty()) {
    if (const auto median = json_number(stats, "median"))
      add_sample(benchmark.timings, "real_seconds", *median);
  }
  ObservedTiming& timing =
      find_or_add_timing(benchmark.timings, custom_time_metric("real_seconds"));
  timing.mean = json_number(stats, "mean");
  timing.stddev = json_number(stats, "stddev");
  append_row_within_limit(observed.cases, std::move(benchmark), observed);
}

void read_context(const Json& json, Observed& observed) {
  observed.version = json_text(json, "version");
  observed.context.engine_build = json_text(member_or_null(json, "commit_info"), "id");
  if (const auto node = json_text(member_or_null(json, "machine_info"), "node"))
    add_place(observed, *node);
}

void read(const Printed& printed, Observed& observed) {
  // A benchmark may list very many rounds.
  constexpr JsonPieceLimits k_limits{std::size_t{16} << 20, std::size_t{4} << 20, 32};
  read_pieces(printed, {"benchmarks"},
              {[&](std::string_view, const Json& row) { read_benchmark(row, observed); },
               [&](const Json& members) { read_context(members, observed); }},
              observed, k_limits);
}

Result<profile::EngineReport> make_pytest_report(const Output& output) {
  return make_benchmark_report("pytest-benchmark", output);
}

}  // namespace
}  // namespace weir::adapters::pytest_benchmark

const weir::adapters::Format weir::adapters::k_pytest_benchmark(
    "pytest-benchmark", "pytest-benchmark: --benchmark-json", "", pytest_benchmark::read,
    {{92, {"\"machine_info\" & \"benchmarks\"", "\"benchmarks\" & \"rounds\" & \"iqr_outliers\""}}},
    {"pytest-benchmark", 22, Counts::results, pytest_benchmark::make_pytest_report});
