// What the code of single kernels costs, where limits name it.
#include "gate/profile/marginal.hpp"
#include "gate/unit/kernel_cost.hpp"
#include "gate/verdict/judging.hpp"

namespace weir::verdict {
namespace {

const std::vector<std::string>& prefixes() {
  static const auto k_prefixes = collect<std::string>(
      unit::kernel_costs(), [](const auto& cost) { return fmt::format("{}:", cost.name); });
  return k_prefixes;
}

// The kernel of a metric such as "registers:NAME" is still called.
bool runs(const Profile& candidate, std::string_view metric) {
  const std::string_view kernel = metric.substr(metric.find(':') + 1);
  return candidate.codes && std::ranges::any_of(candidate.codes->counts, [&](const auto& code) {
           return unit::work_name("", profile::kernel_of_code(code.first)) == kernel &&
                  code.second != Rational(0);
         });
}

}  // namespace

Costs costs_of(const std::optional<profile::KernelSet>& codes,
               const std::map<std::string, profile::CodeFacts>& facts,
               const std::string& compiler) {
  Costs costs;
  if (!codes || compiler.empty()) return costs;
  for (const auto& [key, calls] : codes->counts) {
    const profile::CodeFacts* code = look_up(facts, profile::hash_of_code(key));
    if (code == nullptr || calls == Rational(0)) continue;
    for (const auto& [cost, value] : code->costs) {
      const std::string name =
          unit::work_name(fmt::format("{}:", cost), profile::kernel_of_code(key));
      const auto metric = unit::find_metric(name);
      if (!metric) continue;  // no cost that weir knows
      const auto [known, fresh] =
          costs.try_emplace(name, profile::exact_measurement(*metric, compiler, value));
      const bool lower = metric->better == unit::Better::higher;
      if (!fresh)
        known->second.exact = lower ? std::min(*known->second.exact, Rational(value))
                                    : std::max(*known->second.exact, Rational(value));
    }
  }
  return costs;
}

std::vector<Judgement> judge_kernel_costs(const Question& question,
                                          std::vector<std::string>& not_judged) {
  const std::vector<std::string> patterns = patterns_of(question, prefixes());
  if (patterns.empty()) return {};
  const Profile& candidate = question.candidate;
  const Costs now = costs_of(candidate.codes, candidate.code_facts, candidate.compiler);
  const Costs before =
      question.base == nullptr
          ? Costs()
          : costs_of(question.base->codes, question.base->code_facts, question.base->compiler);
  std::vector<Judgement> made;
  std::set<std::string> matched;
  const auto wanted = [&](const std::string& name) {
    bool any = false;
    for (const std::string& pattern : patterns) {
      if (!text::glob_match(pattern, name)) continue;
      matched.insert(pattern);
      any = true;
    }
    return any;
  };
  for (const auto& [name, measured] : now) {
    if (!wanted(name)) continue;
    const Measurement* was = look_up(before, name);
    made.push_back(
        judge_count(question, measured, was == nullptr ? std::nullopt : std::optional(*was)));
  }
  // What a kernel cost before, and cannot be told of it now, passes no limit.
  for (const auto& [name, measured] : before) {
    if (now.contains(name) || !wanted(name) || !runs(candidate, name)) continue;
    if (auto lost = judge_missing(question, measured)) made.push_back(std::move(*lost));
  }
  if (!candidate.errors.empty() || candidate.counted_runs == 0) return made;
  for (const std::string& pattern : patterns) {
    if (matched.contains(pattern)) continue;
    not_judged.push_back(
        fmt::format("{}: not judged, no compiler reported it of a kernel here", pattern));
  }
  return made;
}

}  // namespace weir::verdict
