// Stored times on the machine as it is now: what a reference workload did beside them says how much
// faster or slower it was then. Used by this module alone.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gate/verdict/judging.hpp"

namespace weir::verdict {

// Samples of one metric, divided by what the reference workload did in the same round and brought
// to its median speed in this run.
struct Normalized {
  std::vector<std::vector<double>> sessions;
  std::vector<double> current;
};
// Absent, and the plain samples are compared, unless this run and every session have a rate of the
// same reference beside each sample.
[[nodiscard]] std::optional<Normalized> normalized(
    const profile::Profile& candidate, const profile::Measurement& current,
    const std::vector<const baseline::Session*>& sessions);

// "times are held to those of the reference workload …", or why they are not; nothing without one.
[[nodiscard]] std::optional<std::string> reference_note(const Question& question);

// The reference workload tells of the machine: its times are shown and never judged.
[[nodiscard]] bool is_reference(const profile::Profile& candidate);

}  // namespace weir::verdict
