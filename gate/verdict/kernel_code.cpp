// Finds kernels with the same name and number of calls and other code: counts alone do not show it.
#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/profile/counts.hpp"
#include "gate/unit/kernel_cost.hpp"
#include "gate/verdict/judging.hpp"
#include "gate/verdict/proposal.hpp"

namespace weir::verdict {
namespace {

using profile::KernelSet;

// How one side uses a kernel.
struct KernelUse {
  Rational calls, groups;
  std::map<std::string, Rational> codes;  // hash -> calls
};
using Kernels = std::map<std::string, KernelUse>;

// Adds `number` to `sum`; false, and nothing is added, if the result does not fit.
bool add_if_fits(Rational& sum, const Rational& number) {
  const auto result = sum.plus(number);
  if (result) sum = *result;
  return result.has_value();
}

// Returns the kernels of one side by name, each with its calls, workgroups and codes. `groups` is
// null if workgroups are not compared. Kernels whose sums overflow are left out.
Kernels collect_kernels(const KernelSet& codes, const KernelSet* groups) {
  Kernels kernels;
  std::set<std::string> overflowed;  // names whose sums do not fit
  for (const auto& [code_key, calls] : codes.counts) {
    const std::string name(profile::kernel_of_code(code_key));
    KernelUse& kernel = kernels[name];
    const std::size_t hash_start = std::min(code_key.size(), name.size() + 1);  // "name hash"
    kernel.codes[code_key.substr(hash_start)] = calls;
    if (!add_if_fits(kernel.calls, calls)) overflowed.insert(name);
  }
  if (groups != nullptr) {
    for (const auto& [code_key, count] : groups->counts) {
      const std::string name(profile::kernel_of_code(code_key));
      if (!add_if_fits(kernels[name].groups, count)) overflowed.insert(name);
    }
  }
  for (const std::string& name : overflowed) kernels.erase(name);
  return kernels;
}

// Returns the kernels of base and candidate, with numbers of workgroups if both sides report
// those. Nothing if a side reports no code, varies, or counts over another unit of work.
std::optional<std::pair<Kernels, Kernels>> comparable_kernels(const CodeSide& base,
                                                              const CodeSide& candidate) {
  if (!base.codes || !candidate.codes || base.codes->runs_disagree ||
      candidate.codes->runs_disagree || !same_counting_scope(*base.codes, *candidate.codes)) {
    return std::nullopt;
  }
  const bool has_groups = base.groups && candidate.groups &&
                          same_counting_scope(*base.groups, *base.codes) &&
                          same_counting_scope(*candidate.groups, *candidate.codes);
  if (!has_groups) {
    return std::pair(collect_kernels(*base.codes, nullptr),
                     collect_kernels(*candidate.codes, nullptr));
  }
  return std::pair(collect_kernels(*base.codes, &*base.groups),
                   collect_kernels(*candidate.codes, &*candidate.groups));
}

std::vector<std::string> code_hashes(const KernelUse& use) {
  std::vector<std::string> hashes;
  for (const auto& [hash, calls] : use.codes) hashes.push_back(hash);
  return hashes;
}

// Returns the kernels with other code or other numbers of workgroups than in the base. A kernel
// that is called another number of times is left out: judge_kernels() judges that.
std::vector<KernelChange> find_changed_kernels(const Kernels& base, const Kernels& candidate) {
  std::vector<KernelChange> changed;
  for (const auto& [name, kernel] : candidate) {
    const KernelUse* base_kernel = look_up(base, name);
    if (base_kernel == nullptr || base_kernel->calls != kernel.calls) continue;
    const bool groups_changed = base_kernel->groups != kernel.groups;
    const bool code_changed = base_kernel->codes != kernel.codes;
    if (!code_changed && !groups_changed) continue;
    KernelChange& change = changed.emplace_back();
    change.kernel = name;
    change.calls = kernel.calls;
    change.code_changed = code_changed;
    change.hashes_before = code_hashes(*base_kernel);
    change.hashes_now = code_hashes(kernel);
    if (!groups_changed) continue;
    change.workgroups_before = base_kernel->groups;
    change.workgroups_now = kernel.groups;
  }
  return changed;
}

// Returns how a kernel's options and instructions differ: "constant 2: 64 → 128", at most 16.
// Empty if a side has several codes of the kernel, or no facts about its code.
std::vector<std::string> find_differences(const KernelChange& change, const CodeSide& base,
                                          const CodeSide& candidate) {
  if (change.hashes_before.size() != 1 || change.hashes_now.size() != 1) return {};
  const auto* base_facts = look_up(base.facts, change.hashes_before.front());
  const auto* candidate_facts = look_up(candidate.facts, change.hashes_now.front());
  if (base_facts == nullptr || candidate_facts == nullptr) return {};
  std::map<std::string, std::pair<std::string, std::string>> values_of_option;
  for (const auto& [name, value] : base_facts->options) values_of_option[name].first = value;
  for (const auto& [name, value] : candidate_facts->options) values_of_option[name].second = value;
  std::vector<std::string> differences;
  constexpr std::size_t k_longest_value = 100;
  const auto or_none = [](const std::string& value) {
    return value.empty() ? "none" : text::shortened(value, k_longest_value);
  };
  constexpr std::size_t k_max_differences = 16;
  for (const auto& [name, values] : values_of_option) {
    if (values.first == values.second || differences.size() == k_max_differences) continue;
    differences.push_back(
        fmt::format("{}: {} \u2192 {}", name, or_none(values.first), or_none(values.second)));
  }
  if (base_facts->source != candidate_facts->source) differences.emplace_back("other instructions");
  return differences;
}

// Fills in how the code of each changed kernel differs. Costs (registers, occupancy) are added
// only if both sides were compiled by the same compiler.
void add_differences_and_costs(const CodeSide& base, const CodeSide& candidate,
                               std::vector<KernelChange>& changed) {
  const bool same_compiler = base.compiler == candidate.compiler;
  const Costs base_costs = worst_costs(base.codes, base.facts, base.compiler);
  const Costs candidate_costs = worst_costs(candidate.codes, candidate.facts, candidate.compiler);
  for (KernelChange& change : changed) {
    if (!change.code_changed) continue;
    change.metadata_differences = find_differences(change, base, candidate);
    for (const unit::KernelCost& cost : unit::kernel_costs()) {
      const std::string name = unit::work_name(fmt::format("{}:", cost.name), change.kernel);
      const Measurement* base_cost = look_up(base_costs, name);
      const Measurement* candidate_cost = look_up(candidate_costs, name);
      if (!same_compiler || base_cost == nullptr || candidate_cost == nullptr ||
          base_cost->exact == candidate_cost->exact) {
        continue;
      }
      change.costs.push_back({std::string(cost.name), base_cost->exact->numerator(),
                              candidate_cost->exact->numerator()});
    }
  }
}

// Returns "2 kernels have other code: a, b; 1 kernel has other numbers of groups: c 4 → 8". Names
// at most six of each.
std::string describe_changed_kernels(const std::vector<KernelChange>& changed) {
  std::vector<std::string> codes, groups;
  for (const KernelChange& change : changed) {
    if (change.code_changed) codes.push_back(change.kernel);
    if (!change.code_changed && change.workgroups_now) {
      groups.push_back(fmt::format("{} {} \u2192 {}", change.kernel,
                                   change.workgroups_before->str(), change.workgroups_now->str()));
    }
  }
  std::vector<std::string> parts;
  constexpr std::size_t k_max_kernels_listed = 6;
  const auto add = [&](const std::vector<std::string>& names, std::string_view what) {
    if (names.empty()) return;
    const std::size_t count = names.size();
    parts.push_back(fmt::format("{} {} other {}: {}", text::plural(count, "kernel"),
                                count == 1 ? "has" : "have", what,
                                list_some(names, k_max_kernels_listed)));
  };
  add(codes, "code");
  add(groups, "numbers of groups");
  return text::join(parts, "; ");
}

// Compares the compiled code of kernels with the base's, and stores those that differ in `changed`.
// They fail under a limit (`exact`), and are listed as `info` without one. Nothing if code cannot
// be compared, and no limit asks for it.
std::optional<Ruling> compare_code(const Comparison& comparison, bool exact,
                                   std::vector<KernelChange>& changed) {
  const Profile& candidate = comparison.candidate;
  const bool has_code = candidate.codes.has_value();
  const auto rule_if_exact = [&](Outcome outcome, std::string why) -> std::optional<Ruling> {
    if (!exact) return std::nullopt;
    return Ruling{outcome, std::move(why)};
  };
  if (comparison.base == nullptr || comparison.is_other_device()) {
    if (!has_code) return std::nullopt;
    return rule_if_exact(Outcome::new_, comparison.baseline_choice.reason);
  }
  const auto& stored = comparison.base->codes;
  if (!stored) {
    if (!has_code) return std::nullopt;
    return rule_if_exact(Outcome::new_, "the baseline holds no code of kernels");
  }
  if (!has_code) {
    const bool was_counted = candidate.errors.empty() && candidate.counted_runs > 0;
    if (!was_counted) return std::nullopt;
    return rule_if_exact(Outcome::error,
                         "could not be measured: the baseline holds code of kernels, this run "
                         "none");
  }
  if (varies_only_now(comparison, *stored, *candidate.codes))
    return rule_if_exact(outcome_of_new_variation(comparison),
                         "the same code in all runs before, now it varies");
  const bool is_reported_by_kernels = stored->runs_disagree || candidate.codes->runs_disagree;
  if (is_reported_by_kernels) return std::nullopt;
  if (!same_counting_scope(*stored, *candidate.codes)) {
    return rule_if_exact(Outcome::new_, "the baseline's code was counted over another length");
  }
  changed = find_kernel_changes(collect_code(*comparison.base), collect_code(candidate));
  if (changed.empty()) return rule_if_exact(Outcome::pass, "");
  return Ruling{exact ? Outcome::fail : Outcome::info, describe_changed_kernels(changed)};
}

}  // namespace

std::vector<KernelChange> find_kernel_changes(const CodeSide& base, const CodeSide& candidate) {
  const auto sides = comparable_kernels(base, candidate);
  if (!sides) return {};
  auto changed = find_changed_kernels(sides->first, sides->second);
  add_differences_and_costs(base, candidate, changed);
  return changed;
}

// Returns the first difference of the code, up to three costs and the workgroups: "constant 2: 64
// → 128, occupancy 18 → 6". "other code" if none of these is known.
std::string KernelChange::words() const {
  constexpr std::size_t k_max_costs_listed = 3;  // the rest is in weir.verdict
  std::vector<std::string> parts;
  if (!metadata_differences.empty()) parts.push_back(metadata_differences.front());
  for (std::size_t i = 0; i < std::min(k_max_costs_listed, costs.size()); ++i) {
    const unit::KernelCost* cost = unit::find_kernel_cost(costs[i].cost);
    parts.push_back(fmt::format("{} {} \u2192 {}", cost == nullptr ? costs[i].cost : cost->label,
                                costs[i].before, costs[i].now));
  }
  if (workgroups_before && workgroups_now) {
    parts.push_back(
        fmt::format("groups {} \u2192 {}", workgroups_before->str(), workgroups_now->str()));
  }
  return parts.empty() ? "other code" : text::join(parts);
}

// Pairs each removed kernel with a new one of the same code, calls and workgroups. Returns new
// names by old names; empty if the two sides cannot be compared.
std::map<std::string, std::string> find_renamed_kernels(const Comparison& comparison,
                                                        std::span<const Changed> kernels) {
  std::map<std::string, std::string> renamed;
  if (comparison.base == nullptr || comparison.is_other_device()) return renamed;
  const CodeSide base = collect_code(*comparison.base),
                 candidate = collect_code(comparison.candidate);
  const auto sides = comparable_kernels(base, candidate);
  if (!sides) return renamed;
  const auto& [base_kernels, candidate_kernels] = *sides;
  // Equal bytes are not enough: their size of shared memory, say, may differ.
  const auto same_facts = [&](const KernelUse& usage) {
    return std::ranges::all_of(usage.codes, [&](const auto& code) {
      const auto* base_facts = look_up(base.facts, code.first);
      const auto* candidate_facts = look_up(candidate.facts, code.first);
      return base_facts == nullptr || candidate_facts == nullptr || *base_facts == *candidate_facts;
    });
  };
  // Names of removed kernels, by their code with its calls, and their workgroups.
  std::multimap<std::pair<std::map<std::string, Rational>, Rational>, std::string> removed_by_usage;
  for (const Changed& kernel : kernels) {
    const KernelUse* usage = look_up(base_kernels, kernel.name);
    if (kernel.current || usage == nullptr || kernel.baseline != usage->calls) continue;
    removed_by_usage.emplace(std::pair(usage->codes, usage->groups), kernel.name);
  }

  for (const Changed& kernel : kernels) {
    const KernelUse* usage = look_up(candidate_kernels, kernel.name);
    if (kernel.baseline || usage == nullptr || kernel.current != usage->calls ||
        !same_facts(*usage)) {
      continue;
    }
    const auto old_name = removed_by_usage.find(std::pair(usage->codes, usage->groups));
    if (old_name == removed_by_usage.end()) continue;
    renamed[old_name->second] = kernel.name;
    removed_by_usage.erase(old_name);
  }
  return renamed;
}

Judgement judge_kernel_code(const Comparison& comparison, CellVerdict& /*cell*/) {
  Judgement judgement(k_kernel_code, comparison.non_metric_limit(k_kernel_code));
  if (judgement.limit.mode == Mode::off) return judgement;
  auto ruling = compare_code(comparison, judgement.limit.exact, judgement.code);
  if (!ruling) return judgement;
  apply_limit_mode(judgement.limit, *ruling);
  judgement.set_ruling(std::move(*ruling));
  judgement.compiler = comparison.candidate.compiler;
  return judgement;
}

}  // namespace weir::verdict
