#include "gate/profile/reference.hpp"

#include <algorithm>

namespace weir::profile {
namespace {

bool is_rate(const Measurement& measured) {
  return measured.metric.kind == unit::Kind::time &&
         measured.metric.better == unit::Better::higher && !measured.samples.empty();
}

const Measurement* rate_of(const Profile& profile) {
  for (const char* name : {"decode_tokens_per_second", "prefill_tokens_per_second"}) {
    const auto found = profile.metrics.find(name);
    if (found != profile.metrics.end() && is_rate(found->second)) return &found->second;
  }
  for (const auto& [name, measured] : profile.metrics) {
    if (is_rate(measured)) return &measured;
  }
  return nullptr;
}

}  // namespace

void take_reference(std::span<Profile> profiles, std::string_view reference) {
  const auto found = std::find_if(profiles.begin(), profiles.end(), [&](const Profile& profile) {
    return profile.cell.str() == reference;
  });
  if (found == profiles.end()) return;
  const Measurement* rate = rate_of(*found);
  if (rate == nullptr) return;
  const Reference taken{std::string(reference), found->provenance.fingerprint,
                        found->provenance.engine_build.value_or(""), rate->metric.name,
                        rate->samples};
  for (Profile& profile : profiles) {
    if (profile.timed_runs > 0) profile.reference = taken;
  }
}

}  // namespace weir::profile
