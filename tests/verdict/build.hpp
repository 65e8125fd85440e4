// Builds profiles and baselines for tests of verdicts in a few words.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "gate/verdict/verdict.hpp"

namespace weir::verdict::test {

inline constexpr const char* k_class = "vulkan-10005-0-d-1-0a";

inline profile::Profile& add_count(profile::Profile& profile, const std::string& name,
                                   Rational value) {
  profile::Measurement measured;
  measured.metric = unit::find_metric(name).value_or(
      unit::custom_metric(name, unit::Kind::count, unit::Unit::count, unit::Better::higher));
  measured.nature = profile::Nature::exact;
  measured.source = "vulkan";
  measured.exact = value;
  profile.metrics[name] = measured;
  return profile;
}

inline profile::Profile& add_nearly(profile::Profile& profile, const std::string& name,
                                    std::vector<double> values) {
  profile::Measurement measured;
  measured.metric = *unit::find_metric(name);
  measured.nature = profile::Nature::nearly_exact;
  measured.source = "valgrind";
  measured.samples = std::move(values);
  const double middle = *measured.value();
  const auto [low, high] = std::minmax_element(measured.samples.begin(), measured.samples.end());
  measured.relative_spread = (*high - *low) / middle;
  profile.metrics[name] = measured;
  return profile;
}

inline profile::Profile& add_time(profile::Profile& profile, const std::string& name,
                                  std::vector<double> samples) {
  profile::Measurement measured;
  measured.metric = *unit::find_metric(name);
  measured.source = "llama-bench";
  measured.samples = std::move(samples);
  profile.metrics[name] = measured;
  profile.timed_runs = 10;
  return profile;
}

// Returns ten processes within half a percent of `rate`.
inline std::vector<double> around(double rate) {
  std::vector<double> samples;
  for (int i = 0; i < 10; ++i) samples.push_back(rate * (1 + 0.001 * (i - 4.5)));
  return samples;
}

// The reference cell: 65 / 46 / 1 a token on lavapipe.
inline profile::Profile reference() {
  profile::Profile profile;
  profile.cell = *profile::CellKey::parse("llama.cpp/tiny-llama/vulkan/decode");
  profile.device = "vulkan";
  profile.provenance.fingerprint = "f00d";
  profile.provenance.fingerprint_parts = {{"arguments", "a1"}};
  profile.provenance.device_class = k_class;
  profile.provenance.device_name = "llvmpipe";
  profile.provenance.machine_class = "machine-a";
  profile.provenance.lengths = {8, 16, 24};
  profile.counted_runs = 3;
  add_count(profile, "dispatches_per_token", 65);
  add_count(profile, "dispatches_fixed", 65);
  add_count(profile, "barriers_per_token", 46);
  add_count(profile, "syncs_per_token", 1);
  profile.kernels =
      profile::KernelSet{unit::Scope::per_token, {}, true, {{"mul_mat", 53}, {"rms_norm_mul", 12}}};
  profile.placement.state = profile::Placement::State::seen;
  profile.work = {24, 0, "digest", "llama 1B"};
  return profile;
}

inline baseline::Baseline stored(const profile::Profile& profile) {
  return baseline::accept(profile, std::nullopt, {});
}

// Judges as the gate does: the baseline is chosen from `baselines`.
inline CellVerdict judge(const profile::Profile& candidate,
                         std::vector<baseline::Baseline> baselines,
                         std::vector<LimitEntry> limits = {}, Policy policy = {}) {
  return judge_cell(candidate, {baseline::choose_baseline(candidate, baselines)}, limits, policy);
}

inline const Judgement& metric(const CellVerdict& cell, const std::string& name) {
  static const Judgement k_none;
  for (const Judgement& judgement : cell.metrics()) {
    if (judgement.metric.name == name) return judgement;
  }
  return k_none;
}

inline LimitEntry entry(std::vector<std::string> metrics) {
  LimitEntry limit;
  limit.metrics = std::move(metrics);
  return limit;
}

}  // namespace weir::verdict::test
