// Tests profiles and baselines as text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gate/base/text.hpp"
#include "gate/report/baseline_text.hpp"
#include "gate/report/profile_text.hpp"

#include "tests/report/fixtures.hpp"
#include "tests/report/support.hpp"

namespace weir::report {
namespace tables_test {

using support::expect_golden;

profile::Measurement exact(const char* name, Rational value) {
  profile::Measurement measurement;
  measurement.metric = unit::find_metric(name).value();
  measurement.nature = profile::Nature::exact;
  measurement.source = "vulkan";
  measurement.exact = value;
  return measurement;
}

profile::Profile measured() {
  profile::Profile profile;
  profile.cell = fixtures::key("tiny-llama", "vulkan", "decode");
  profile.device = "vulkan";
  profile.provenance.device_name = "llvmpipe (LLVM 15.0.6, 256 bits)";
  for (const auto& [name, value] : {std::pair{"dispatches_per_token", 65},
                                    {"barriers_per_token", 46},
                                    {"syncs_per_token", 1},
                                    {"dispatches_fixed", 65}}) {
    profile.metrics[name] = exact(name, value);
  }
  profile::Measurement rate;
  rate.metric = unit::find_metric("decode_tokens_per_second").value();
  rate.source = "llama-bench";
  rate.samples = {28.1, 28.6, 29.0};
  rate.warnings = {"3 runs: 10 are asked for"};
  profile.metrics[rate.metric.name] = rate;
  profile.counted_runs = 4;
  profile.timed_runs = 3;
  profile.kernels = profile::KernelSet{};
  profile.kernels->has_names = true;
  profile.kernels->counts = {{"mul_mat_vec_f16_f32_f32", 29}, {"rms_norm_mul_f32", 8}};
  return profile;
}

profile::Profile broken() {
  profile::Profile profile;
  profile.cell = fixtures::key("tiny-llama", "cpu", "decode");
  profile.counts_skip_reason = "no probe sees cpu";
  profile.errors = {"timed: 3 of 10 runs: exit 139 (SIGSEGV)"};
  profile.stderr_tail = "loading\n" + fixtures::evil() + "\n";
  return profile;
}

TEST(ProfileText, ShowsWhatWasMeasuredAndJudgesNothing) {
  const std::vector<profile::Profile> both{measured(), broken()};
  expect_golden("profiles.txt", profiles_text(both, {}));
  ProfileStyle verbose;
  verbose.verbose = true;
  expect_golden("profile-verbose.txt", profile_text(measured(), verbose));
  for (const std::string& line : text::lines(profiles_text(both, {}))) {
    EXPECT_LE(text::columns(line), 80U) << line;
  }
}

TEST(ProfileText, TellsWhatProbesCostWhereThatWasMeasured) {
  profile::Profile cell = measured();
  EXPECT_THAT(profile_text(cell, {}), testing::Not(testing::HasSubstr("rofiling cost")));
  cell.profiling_cost = 0.0126;
  EXPECT_THAT(profile_text(cell, {}), testing::HasSubstr("Profiling cost 1.3 % of throughput."));
}

TEST(ProfileText, ShowsWhatAServerSaysOfItselfWithinEightyColumns) {
  using Kind = profile::ServerFigure::Kind;
  profile::Profile served = measured();
  served.kernels.reset();
  served.server = {{"llamacpp:n_busy_slots_per_decode", Kind::gauge, 3.75},
                   {"llamacpp:tokens_predicted_total", Kind::counter, 4096},
                   {"vllm:time_to_first_token_seconds", Kind::mean, 0.0314},
                   {fixtures::evil(), Kind::gauge, 1e300},
                   {std::string(300, 'n'), Kind::counter, 0}};
  ProfileStyle verbose;
  verbose.verbose = true;
  const std::string all = profile_text(served, verbose);
  expect_golden("profile-served.txt", all);
  for (const std::string& line : text::lines(all)) EXPECT_LE(text::columns(line), 80U) << line;
  EXPECT_THAT(profile_text(served, {}),
              testing::HasSubstr("  the server's own metrics: 5 (weir profile RUN shows them)\n"));
}

baseline::Baseline stored() {
  baseline::Baseline baseline;
  baseline.cell = "llama.cpp/tiny-llama/vulkan/decode";
  baseline.fingerprint = "0123456789abcdef";
  baseline.device_class = "vulkan-10005-0-d-1-0a1b2c3d";
  baseline.device_name = "llvmpipe (LLVM 15.0.6, 256 bits)";
  baseline.lengths = {8, 16, 24};
  const auto profile = measured();
  for (const auto& [name, measurement] : profile.metrics) {
    if (measurement.exact) baseline.counts[name] = measurement;
  }
  baseline.counts["instructions_per_token"] =
      exact("instructions_per_token", Rational::make(5'158'000'001, 2).value());
  baseline.counts["instructions_per_token"].nature = profile::Nature::nearly_exact;
  baseline.counts["instructions_per_token"].relative_spread = 0.0009;
  baseline.kernels = profile.kernels;
  baseline.sessions["vulkan-10005-example-cpu-2-8-debian-12"] = {
      {"b1", {{"decode_tokens_per_second", {28.1, 28.6, 29.0}}}},
      {"b1", {{"decode_tokens_per_second", {27.0, 28.0}}}}};
  return baseline;
}

TEST(BaselineText, ListsAndShowsWhatIsStored) {
  auto changed = stored();
  changed.device_class = "vulkan-10005-0-d-2-ffffffff";
  changed.sessions.clear();
  changed.reason =
      "the new sampler takes twelve more kernels, and is right for temperatures above 1";
  const std::vector<baseline::Baseline> all{stored(), changed};
  expect_golden("baseline-list.txt", baseline_list(all));
  changed.sessions = stored().sessions;
  expect_golden("baseline-show.txt", baseline_show(changed));
  EXPECT_EQ(baseline_list({}), "No baselines are stored.\n");
}

TEST(BaselineText, KeepsEightyColumnsWhateverNamesHold) {
  auto hostile = stored();
  hostile.cell = fixtures::evil();
  hostile.device_class = std::string(300, 'c');
  hostile.reason = fixtures::evil();
  hostile.kernels->counts[fixtures::evil()] = 1;
  hostile.kernels->counts[std::string(500, 'k')] = 1;
  const std::vector<baseline::Baseline> all{hostile};
  for (const std::string& text : {baseline_list(all), baseline_show(hostile)}) {
    for (const std::string& line : text::lines(text)) {
      EXPECT_LE(text::columns(line), 80U) << line;
      EXPECT_EQ(line.find('\x1b'), std::string::npos);
    }
  }
}

}  // namespace tables_test
}  // namespace weir::report
