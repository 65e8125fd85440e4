// Adds up the costs of kernels' code over all that a token or prefill runs.
#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/profile/marginal.hpp"
#include "gate/profile/passes.hpp"
#include "gate/unit/kernel_cost.hpp"

namespace weir::profile {
namespace {

// Returns the sum over all kernels; nothing if one has no such cost, because the sum would be too
// small.
std::optional<Rational> sum_costs(std::string_view cost, const Profile& profile) {
  Rational sum;
  for (const auto& [key, groups] : profile.code_groups->counts) {
    const auto cost_of_kernel = cost_of_code(profile, key, cost);
    const auto new_sum = cost_of_kernel ? sum.plus(*cost_of_kernel) : std::nullopt;
    if (!new_sum) return std::nullopt;
    sum = *new_sum;
  }
  return sum;
}

bool has_costs(const Profile& profile) {
  const auto& groups = profile.code_groups;
  return !profile.compiler.empty() && profile.codes && groups && !groups->runs_disagree;
}

}  // namespace

// Returns what one piece of code cost in all: cost per wave x waves x workgroups. 0 if it did not
// run; nothing if a factor is unknown or the product overflows.
std::optional<Rational> cost_of_code(const Profile& profile, std::string_view code_key,
                                     std::string_view cost) {
  const std::string name(code_key);
  const Rational zero(0);
  const Rational groups = look_up(profile.code_groups->counts, name, zero);
  if (groups == zero) {
    // Only the device knows the number of groups of an indirect dispatch.
    const bool is_called = look_up(profile.codes->counts, name, zero) != zero;
    if (is_called) return std::nullopt;
    return zero;
  }
  const CodeFacts* code = look_up(profile.code_facts, hash_of_code(code_key));
  if (code == nullptr) return std::nullopt;
  const std::int64_t* per_wave = look_up(code->costs, std::string(cost));
  const std::int64_t* waves = look_up(code->costs, std::string("waves"));
  if (per_wave == nullptr || waves == nullptr) return std::nullopt;
  const auto total_per_wave = groups.times(*per_wave);
  return total_per_wave ? total_per_wave->times(*waves) : std::nullopt;
}

// Adds a metric for each cost that every kernel has.
void add_kernel_costs(Profile& profile) {
  if (!has_costs(profile)) return;
  const auto& groups = profile.code_groups;
  for (const unit::SummedCost& summed : unit::summed_costs()) {
    const auto sum = sum_costs(summed.cost, profile);
    if (!sum) continue;
    const unit::Metric metric = unit::count_metric(summed.base, groups->scope, groups->length);
    profile.metrics[metric.name] = exact_measurement(metric, profile.compiler, *sum);
  }
}

// Lists kernels whose costs (registers, occupancy) the compiler did not report, one line per
// reason.
std::vector<std::string> missing_kernel_costs(std::span<const Profile> profiles) {
  std::set<std::string> known_kernels;
  std::map<std::string, std::set<std::string>> kernels_of_reason;  // by the hash of their code
  for (const Profile& profile : profiles) {
    if (!has_costs(profile)) continue;
    for (const auto& [hash, code] : profile.code_facts) {
      known_kernels.insert(hash);
      if (!code.not_compiled.empty()) kernels_of_reason[code.not_compiled].insert(hash);
    }
  }
  std::vector<std::string> notes;
  for (const auto& [reason, kernels] : kernels_of_reason) {
    notes.push_back(fmt::format(
        "kernel costs of {} of {} kernels are missing: {}; nothing but limits on kernel "
        "costs depends on them",
        kernels.size(), known_kernels.size(), reason));
  }
  return notes;
}

}  // namespace weir::profile
