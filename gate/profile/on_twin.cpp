#include "gate/profile/on_twin.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "gate/unit/metric.hpp"

namespace weir::profile {
namespace {

// What is counted of the device; waits and polls vary by themselves.
std::map<std::string, std::int64_t> gated_counts(const RunRecord& record,
                                                 const std::string& device) {
  std::map<std::string, std::int64_t> out;
  for (const ProbeCounts& probe : record.probes) {
    if (probe.probe != device) continue;
    for (const std::string& base : unit::count_bases()) {
      const auto found = probe.counts.find(base);
      if (found != probe.counts.end()) out[base] = found->second;
    }
    for (const auto& [kernel, count] : probe.kernels) out["kernel " + kernel] = count;
  }
  return out;
}

std::optional<std::string> other_device(const CellFacts& facts, const Records& counted) {
  for (const RunRecord* record : counted) {
    for (const ProbeCounts& probe : record->probes) {
      if (probe.probe != facts.device) continue;
      for (const DeviceSeen& device : probe.devices) {
        if (device.name != facts.device_present) return device.name;
      }
    }
  }
  return std::nullopt;
}

}  // namespace

bool holds_on_twin(const CellFacts& facts, Records& counted, Profile& profile) {
  if (!facts.twin) return true;
  if (const auto other = other_device(facts, counted)) {
    profile.errors.push_back(
        fmt::format("counted: asked for the twin {}, but the work ran on {}", *facts.twin, *other));
    return false;
  }
  const auto others =
      std::stable_partition(counted.begin(), counted.end(),
                            [](const RunRecord* record) { return record->twin_fill == 0; });
  const Records filled(others, counted.end());
  counted.erase(others, counted.end());
  for (const RunRecord* record : filled) {
    const auto same = std::find_if(counted.begin(), counted.end(), [&](const RunRecord* one) {
      return one->asked == record->asked;
    });
    if (same == counted.end()) continue;
    const auto here = gated_counts(**same, facts.device);
    const auto there = gated_counts(*record, facts.device);
    if (here == there) continue;
    for (const auto& [what, count] : here) {
      const auto found = there.find(what);
      const std::int64_t other = found == there.end() ? 0 : found->second;
      if (other == count) continue;
      profile.errors.push_back(fmt::format(
          "counted: {} went from {} to {} when the device's results were other bytes: this engine "
          "looks at what the device computes, and a twin computes nothing",
          what, count, other));
      return false;
    }
    profile.errors.emplace_back(
        "counted: other kernels ran when the device's results were other bytes: this engine looks "
        "at what the device computes, and a twin computes nothing");
    return false;
  }
  return true;
}

void leave_out_results(const CellFacts& facts, Profile& profile) {
  if (!facts.twin || !profile.work.output_digest) return;
  profile.work.output_digest.reset();
  add_once(profile.warnings, "the output is left out: what a twin computes means nothing");
}

}  // namespace weir::profile
