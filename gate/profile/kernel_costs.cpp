// What the code of kernels costs, over all that a token or prefill runs.
#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/profile/marginal.hpp"
#include "gate/profile/passes.hpp"
#include "gate/unit/kernel_cost.hpp"

namespace weir::profile {
namespace {

// Nothing where one kernel has no such cost, for a sum without it would be another number.
std::optional<Rational> sum_of(std::string_view cost, const Profile& profile) {
  Rational sum;
  for (const auto& [key, groups] : profile.code_groups->counts) {
    const auto one = cost_of_code(profile, key, cost);
    const auto more = one ? sum.plus(*one) : std::nullopt;
    if (!more) return std::nullopt;
    sum = *more;
  }
  return sum;
}

bool has_costs(const Profile& profile) {
  const auto& groups = profile.code_groups;
  return !profile.compiler.empty() && profile.codes && groups && !groups->varies;
}

}  // namespace

std::optional<Rational> cost_of_code(const Profile& profile, std::string_view key,
                                     std::string_view cost) {
  const std::string name(key);
  const Rational groups = look_up(profile.code_groups->counts, name, Rational(0));
  if (groups == Rational(0)) {
    // Of indirect dispatches the device alone knows how many groups there were.
    const bool called = look_up(profile.codes->counts, name, Rational(0)) != groups;
    return called ? std::nullopt : std::optional(groups);
  }
  const CodeFacts* code = look_up(profile.code_facts, hash_of_code(key));
  if (code == nullptr) return std::nullopt;
  const std::int64_t* each = look_up(code->costs, std::string(cost));
  const std::int64_t* waves = look_up(code->costs, std::string("waves"));
  if (each == nullptr || waves == nullptr) return std::nullopt;
  const auto of_a_wave = groups.times(*each);
  return of_a_wave ? of_a_wave->times(*waves) : std::nullopt;
}

void add_kernel_costs(Profile& profile) {
  if (!has_costs(profile)) return;
  const auto& groups = profile.code_groups;
  for (const unit::SummedCost& one : unit::summed_costs()) {
    const auto sum = sum_of(one.cost, profile);
    if (!sum) continue;
    const unit::Metric metric = unit::count_metric(one.base, groups->scope, groups->length);
    profile.metrics[metric.name] = exact_measurement(metric, profile.compiler, *sum);
  }
}

std::vector<std::string> missing_kernel_costs(std::span<const Profile> profiles) {
  std::set<std::string> all;
  std::map<std::string, std::set<std::string>>
      missing;  // why -> kernels, by the hash of their code
  for (const Profile& profile : profiles) {
    if (!has_costs(profile)) continue;
    for (const auto& [hash, code] : profile.code_facts) {
      all.insert(hash);
      if (!code.not_compiled.empty()) missing[code.not_compiled].insert(hash);
    }
  }
  std::vector<std::string> notes;
  for (const auto& [why, kernels] : missing) {
    notes.push_back(fmt::format(
        "kernel costs of {} of {} kernels are missing: {}; nothing but limits on kernel "
        "costs depends on them",
        kernels.size(), all.size(), why));
  }
  return notes;
}

}  // namespace weir::profile
