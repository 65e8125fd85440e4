// Measures comparing two files of 10 000 cells x 20 metrics, and reading them alone.
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "gate/base/json.hpp"
#include "gate/baseline/baseline.hpp"
#include "gate/profile/profile.hpp"
#include "gate/verdict/verdict.hpp"

namespace {

using namespace weir;

constexpr int k_cells = 10'000;

// Makes up a profile of 20 metrics. `shift` is added to times, and to counts of every 100th cell.
profile::Profile make_profile(int cell, int shift) {
  profile::Profile profile;
  profile.cell = {.engine = "engine",
                  .model = "model" + std::to_string(cell / 10),
                  .backend = "vulkan",
                  .prompt = "prompt" + std::to_string(cell % 10)};
  profile.device = "vulkan";
  profile.provenance.fingerprint = "f";
  profile.provenance.device_class = "vulkan-1-2-3-4-5";
  profile.provenance.machine_class = "m";
  int metrics = 0;
  for (const char* base : {"dispatches", "barriers", "syncs", "copies", "submits", "graphs"}) {
    for (const auto scope :
         {unit::Scope::per_token, unit::Scope::per_prefill, unit::Scope::fixed}) {
      const unit::Metric metric = unit::count_metric(base, scope);
      profile.metrics[metric.name] = {
          .metric = metric,
          .nature = profile::Nature::exact,
          .source = "vulkan",
          .exact = Rational(65 + metrics + (cell % 100 == 0 ? shift : 0)),
          .samples = {},
          .relative_spread = {},
          .warnings = {}};
      ++metrics;
    }
  }
  for (const char* name : {"decode_tokens_per_second", "prefill_tokens_per_second"}) {
    profile.metrics[name] = {.metric = *unit::find_metric(name),
                             .nature = profile::Nature::sampled,
                             .source = "bench",
                             .exact = {},
                             .samples = {100.0 + shift, 101, 99, 100, 102},
                             .relative_spread = {},
                             .warnings = {}};
  }
  return profile;  // 6 counts x 3 scopes + 2 times = 20
}

// The text of a file of profiles, one a line.
std::string make_file(int shift) {
  std::string text;
  for (int cell = 0; cell < k_cells; ++cell) {
    text += dump_json(write_fields(make_profile(cell, shift)));
    text += '\n';
  }
  return text;
}

const std::string& base_file() {
  static const std::string k_text = make_file(0);
  return k_text;
}

const std::string& candidate_file() {
  static const std::string k_text = make_file(1);
  return k_text;
}

std::vector<profile::Profile> read_file(const std::string& text) {
  std::vector<profile::Profile> profiles;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = text.find('\n', begin);
    auto json = parse_json(std::string_view(text).substr(begin, end - begin));
    profiles.push_back(*read_fields<profile::Profile>(*json, "profile"));
    begin = end + 1;
  }
  return profiles;
}

void read(benchmark::State& state) {
  base_file();  // made before the time runs
  candidate_file();
  for (auto _ : state) {
    benchmark::DoNotOptimize(read_file(base_file()));
    benchmark::DoNotOptimize(read_file(candidate_file()));
  }
}
BENCHMARK(read)->Unit(benchmark::kMillisecond)->Iterations(1);

// Measures reading two files of profiles and judging each candidate profile against its base.
void read_and_compare(benchmark::State& state) {
  base_file();  // made before the time runs
  candidate_file();
  for (auto _ : state) {
    const auto base = read_file(base_file());
    const auto candidate = read_file(candidate_file());
    std::vector<verdict::CellVerdict> cells;
    for (std::size_t i = 0; i < candidate.size(); ++i) {
      const baseline::Baseline stored = baseline::accept(base[i], std::nullopt, {});
      cells.push_back(verdict::judge_cell(
          candidate[i], {baseline::choose_baseline(candidate[i], {&stored, 1})}, {}, {}));
    }
    const verdict::GateVerdict gate = verdict::judge_gate(std::move(cells), {});
    if (gate.exit_code != verdict::ExitCode::fail) {
      state.SkipWithError("the changed cells should fail");
    }
  }
}
BENCHMARK(read_and_compare)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
