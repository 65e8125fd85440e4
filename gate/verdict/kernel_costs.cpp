// Judges what the code of single kernels costs (registers, shared memory), where limits name it.
#include "gate/profile/marginal.hpp"
#include "gate/unit/kernel_cost.hpp"
#include "gate/verdict/judging.hpp"

namespace weir::verdict {
namespace {

// The prefixes of all metrics of a cost: "registers:", "spilled_registers:".
const std::vector<std::string>& cost_prefixes() {
  static const auto k_prefixes = collect<std::string>(
      unit::kernel_costs(), [](const auto& cost) { return fmt::format("{}:", cost.name); });
  return k_prefixes;
}

// Returns the kernels that the candidate still calls, as in names of metrics.
std::set<std::string, std::less<>> called_kernels(const Profile& candidate) {
  std::set<std::string, std::less<>> kernels;
  if (!candidate.codes) return kernels;
  for (const auto& [code, calls] : candidate.codes->counts) {
    if (calls == Rational(0)) continue;
    kernels.insert(unit::work_name("", profile::kernel_of_code(code)));
  }
  return kernels;
}

// "NAME" of "registers:NAME".
std::string_view kernel_of_cost(std::string_view metric) {
  return metric.substr(metric.find(':') + 1);
}

}  // namespace

// Returns the compiler's costs (registers, occupancy) of all kernels that are called, by metric
// name. If a kernel has several codes, the worst counts. Empty if no compiler is named.
Costs worst_costs(const std::optional<profile::KernelSet>& codes,
                  const std::map<std::string, profile::CodeFacts>& facts,
                  const std::string& compiler) {
  Costs costs;
  if (!codes || compiler.empty()) return costs;
  for (const auto& [code_key, calls] : codes->counts) {
    const profile::CodeFacts* code_facts = look_up(facts, profile::hash_of_code(code_key));
    if (code_facts == nullptr || calls == Rational(0)) continue;
    for (const auto& [cost, value] : code_facts->costs) {
      const std::string name =
          unit::work_name(fmt::format("{}:", cost), profile::kernel_of_code(code_key));
      const auto metric = unit::find_metric(name);
      if (!metric) continue;  // weir does not know this cost
      const auto [entry, is_new] =
          costs.try_emplace(name, profile::exact_measurement(*metric, compiler, value));
      if (is_new) continue;
      auto& worst_cost = entry->second.exact;
      const bool lower_is_worse = metric->better == unit::Better::higher;
      worst_cost = lower_is_worse ? std::min(*worst_cost, Rational(value))
                                  : std::max(*worst_cost, Rational(value));
    }
  }
  return costs;
}

// Judges the costs that limits name, on either side. A pattern that matches none goes into
// `not_judged`.
std::vector<Judgement> judge_kernel_costs(const Comparison& comparison,
                                          std::vector<std::string>& not_judged) {
  const LimitTable& limits = comparison.limits;
  const WantedPatterns wanted = patterns_starting_with(comparison, cost_prefixes());
  if (wanted.places.empty()) return {};
  const Profile& candidate = comparison.candidate;
  const Costs now = worst_costs(candidate.codes, candidate.code_facts, candidate.compiler);
  const Costs before = comparison.base == nullptr
                           ? Costs()
                           : worst_costs(comparison.base->codes, comparison.base->code_facts,
                                         comparison.base->compiler);
  std::vector<Judgement> judgements;
  PatternSet matched = limits.no_patterns();
  // Returns true if a pattern matches, and marks all that do.
  const auto is_limited = [&](const std::string& name) {
    const PatternSet& matching = limits.matching(name);
    insert_all(matched, matching);
    return intersects(matching, wanted.set);
  };
  for (const auto& [name, measured] : now) {
    if (!is_limited(name)) continue;
    const Measurement* base = look_up(before, name);
    judgements.push_back(
        judge_count(comparison, measured, base == nullptr ? std::nullopt : std::optional(*base)));
  }
  // A cost that the baseline holds and this run does not report passes no limit.
  const auto called = called_kernels(candidate);
  for (const auto& [name, measured] : before) {
    if (now.contains(name) || !is_limited(name) || !called.contains(kernel_of_cost(name))) {
      continue;
    }
    if (auto judgement = judge_missing(comparison, measured)) {
      judgements.push_back(std::move(*judgement));
    }
  }
  if (!candidate.errors.empty() || candidate.counted_runs == 0) return judgements;
  constexpr std::size_t k_max_lines = 20;
  std::size_t unmatched = 0;
  for (const std::size_t place : wanted.places) {
    if (contains(matched, place) || ++unmatched > k_max_lines) continue;
    not_judged.push_back(fmt::format("{}: not judged, no compiler reported it of a kernel here",
                                     limits.patterns()[place]));
  }
  if (unmatched > k_max_lines) {
    not_judged.push_back(
        fmt::format("{} more patterns of kernels: not judged", unmatched - k_max_lines));
  }
  return judgements;
}

}  // namespace weir::verdict
