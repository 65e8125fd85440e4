// The same kernels by name and number, and other code behind a name: what counts alone cannot tell.
#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/profile/counts.hpp"
#include "gate/unit/kernel_cost.hpp"
#include "gate/verdict/judging.hpp"
#include "gate/verdict/proposal.hpp"

namespace weir::verdict {
namespace {

using profile::KernelSet;

// What is known of one kernel's code on one side.
struct Ran {
  Rational calls, groups;
  std::map<std::string, Rational> codes;  // hash -> calls
};
using Kernels = std::map<std::string, Ran>;

bool add_up(Rational& sum, const Rational& one) {
  const auto both = sum.plus(one);
  if (both) sum = *both;
  return both.has_value();
}

// `groups`: null where they are not compared.
Kernels kernels_of(const KernelSet& codes, const KernelSet* groups) {
  Kernels kernels;
  std::set<std::string> beyond;  // sums that do not fit
  for (const auto& [key, calls] : codes.counts) {
    const std::string name(profile::kernel_of_code(key));
    Ran& ran = kernels[name];
    ran.codes[key.substr(std::min(key.size(), name.size() + 1))] = calls;
    if (!add_up(ran.calls, calls)) beyond.insert(name);
  }
  if (groups != nullptr) {
    for (const auto& [key, count] : groups->counts) {
      const std::string name(profile::kernel_of_code(key));
      if (!add_up(kernels[name].groups, count)) beyond.insert(name);
    }
  }
  for (const std::string& name : beyond) kernels.erase(name);
  return kernels;
}

// Of both sides, with groups where both tell these of the same work. Nothing where a side does not
// tell its code, or not by the same unit.
std::optional<std::pair<Kernels, Kernels>> comparable_kernels(const CodeSide& before,
                                                              const CodeSide& now) {
  if (!before.codes || !now.codes || before.codes->varies || now.codes->varies ||
      !alike(*before.codes, *now.codes)) {
    return std::nullopt;
  }
  const bool grouped = before.groups && now.groups && alike(*before.groups, *before.codes) &&
                       alike(*now.groups, *now.codes);
  return std::pair(kernels_of(*before.codes, grouped ? &*before.groups : nullptr),
                   kernels_of(*now.codes, grouped ? &*now.groups : nullptr));
}

std::vector<std::string> hashes_of(const Ran& ran) {
  std::vector<std::string> hashes;
  for (const auto& [hash, calls] : ran.codes) hashes.push_back(hash);
  return hashes;
}

// Kernels that one side calls more often are those of the rule on kernels.
std::vector<OtherCode> changes(const Kernels& before, const Kernels& now) {
  std::vector<OtherCode> changed;
  for (const auto& [name, ran] : now) {
    const Ran* was = look_up(before, name);
    if (was == nullptr || was->calls != ran.calls) continue;
    const bool other_groups = was->groups != ran.groups;
    const bool other_code = was->codes != ran.codes;
    if (!other_code && !other_groups) continue;
    OtherCode& one = changed.emplace_back();
    one.kernel = name;
    one.calls = ran.calls;
    one.other_code = other_code;
    one.before = hashes_of(*was);
    one.now = hashes_of(ran);
    if (!other_groups) continue;
    one.groups_before = was->groups;
    one.groups_now = ran.groups;
  }
  return changed;
}

// Options of the code of one kernel, where there is one on each side.
std::vector<std::string> differences_of(const OtherCode& one, const CodeSide& before,
                                        const CodeSide& now) {
  if (one.before.size() != 1 || one.now.size() != 1) return {};
  const auto* was = look_up(before.facts, one.before.front());
  const auto* is = look_up(now.facts, one.now.front());
  if (was == nullptr || is == nullptr) return {};
  std::map<std::string, std::pair<std::string, std::string>> all;
  for (const auto& [name, value] : was->options) all[name].first = value;
  for (const auto& [name, value] : is->options) all[name].second = value;
  std::vector<std::string> differences;
  const auto shown = [](const std::string& value) { return value.empty() ? "none" : value; };
  for (const auto& [name, values] : all) {
    if (values.first == values.second) continue;
    differences.push_back(
        fmt::format("{}: {} \u2192 {}", name, shown(values.first), shown(values.second)));
  }
  if (was->source != is->source) differences.emplace_back("other instructions");
  return differences;
}

// What changed of each kernel beside its hash.
void describe(const CodeSide& before, const CodeSide& now, std::vector<OtherCode>& changed) {
  const bool same_compiler = before.compiler == now.compiler;
  const Costs costs_before = costs_of(before.codes, before.facts, before.compiler);
  const Costs costs_now = costs_of(now.codes, now.facts, now.compiler);
  for (OtherCode& one : changed) {
    if (!one.other_code) continue;
    one.differences = differences_of(one, before, now);
    for (const unit::KernelCost& cost : unit::kernel_costs()) {
      const std::string name = unit::work_name(fmt::format("{}:", cost.name), one.kernel);
      const Measurement* was = look_up(costs_before, name);
      const Measurement* is = look_up(costs_now, name);
      if (!same_compiler || was == nullptr || is == nullptr || was->exact == is->exact) continue;
      one.costs.push_back(
          {std::string(cost.name), was->exact->numerator(), is->exact->numerator()});
    }
  }
}

std::string words(const std::vector<OtherCode>& changed) {
  std::vector<std::string> codes, groups;
  for (const OtherCode& one : changed) {
    if (one.other_code) codes.push_back(one.kernel);
    if (!one.other_code && one.groups_now) {
      groups.push_back(fmt::format("{} {} \u2192 {}", one.kernel, one.groups_before->str(),
                                   one.groups_now->str()));
    }
  }
  std::vector<std::string> parts;
  constexpr std::size_t k_most = 6;
  const auto say = [&](const std::vector<std::string>& names, std::string_view what) {
    if (names.empty()) return;
    const std::size_t count = names.size();
    parts.push_back(fmt::format("{} {} other {}: {}", plural(count, "kernel"),
                                count == 1 ? "has" : "have", what, some_of(names, k_most)));
  };
  say(codes, "code");
  say(groups, "numbers of groups");
  return text::join(parts, "; ");
}

// Nothing where there is nothing to say.
std::optional<Ruling> compare(const Question& question, bool exact, std::vector<OtherCode>& out) {
  const auto& now = question.candidate.codes;
  const auto only_exact = [&](Outcome outcome, std::string why) -> std::optional<Ruling> {
    if (!exact) return std::nullopt;
    return Ruling{outcome, std::move(why)};
  };
  if (question.base == nullptr || question.nearest()) {
    return now ? only_exact(Outcome::new_, question.choice.reason) : std::nullopt;
  }
  const auto& stored = question.base->codes;
  if (!stored) {
    return now ? only_exact(Outcome::new_, "the baseline holds no code of kernels") : std::nullopt;
  }
  if (!now) {
    return question.candidate.errors.empty() && question.candidate.counted_runs > 0
               ? only_exact(Outcome::error,
                            "could not be measured: the baseline holds code of kernels, this run "
                            "none")
               : std::nullopt;
  }
  if (stored->varies || now->varies) return std::nullopt;  // as kernels, which say so
  if (!alike(*stored, *now)) {
    return only_exact(Outcome::new_, "the baseline's code was counted over another length");
  }
  out = other_code(code_of(*question.base), code_of(question.candidate));
  if (out.empty()) return only_exact(Outcome::pass, "");
  return Ruling{exact ? Outcome::fail : Outcome::info, words(out)};
}

}  // namespace

std::vector<OtherCode> other_code(const CodeSide& before, const CodeSide& now) {
  const auto sides = comparable_kernels(before, now);
  if (!sides) return {};
  auto changed = changes(sides->first, sides->second);
  describe(before, now, changed);
  return changed;
}

std::string OtherCode::words() const {
  constexpr std::size_t k_most = 3;  // the rest is in weir.verdict
  std::vector<std::string> parts;
  if (!differences.empty()) parts.push_back(differences.front());
  for (std::size_t i = 0; i < std::min(k_most, costs.size()); ++i) {
    const unit::KernelCost* cost = unit::find_kernel_cost(costs[i].cost);
    parts.push_back(fmt::format("{} {} \u2192 {}", cost == nullptr ? costs[i].cost : cost->label,
                                costs[i].before, costs[i].now));
  }
  if (groups_before && groups_now) {
    parts.push_back(fmt::format("groups {} \u2192 {}", groups_before->str(), groups_now->str()));
  }
  return parts.empty() ? "other code" : text::join(parts);
}

std::map<std::string, std::string> renamed_kernels(const Question& question,
                                                   std::span<const Changed> kernels) {
  std::map<std::string, std::string> renamed;
  if (question.base == nullptr || question.nearest()) return renamed;
  const CodeSide base = code_of(*question.base), candidate = code_of(question.candidate);
  const auto sides = comparable_kernels(base, candidate);
  if (!sides) return renamed;
  const auto& [before, after] = *sides;
  // Code of another size of shared memory, say, may have the same bytes.
  const auto same_facts = [&](const Ran& ran) {
    return std::ranges::all_of(ran.codes, [&](const auto& one) {
      const auto* was = look_up(base.facts, one.first);
      const auto* is = look_up(candidate.facts, one.first);
      return was == nullptr || is == nullptr || *was == *is;
    });
  };
  std::multimap<std::map<std::string, Rational>, std::string> gone;  // by code and calls
  for (const Changed& one : kernels) {
    const Ran* was = look_up(before, one.name);
    if (one.current || was == nullptr || one.baseline != was->calls) continue;
    gone.emplace(was->codes, one.name);
  }
  for (const Changed& one : kernels) {
    const Ran* is = look_up(after, one.name);
    if (one.baseline || is == nullptr || one.current != is->calls || !same_facts(*is)) continue;
    const auto [first, last] = gone.equal_range(is->codes);
    for (auto at = first; at != last; ++at) {
      if (before.at(at->second).groups != is->groups) continue;
      renamed[at->second] = one.name;
      gone.erase(at);
      break;
    }
  }
  return renamed;
}

Judgement judge_kernel_code(const Question& question, CellVerdict& cell) {
  Judgement made(k_kernel_code, resolve_special(cell.cell, k_kernel_code, question.limits));
  if (made.limit.mode == Mode::off) return made;
  auto found = compare(question, made.limit.exact, made.code);
  if (!found) return made;
  show_only(made.limit, *found);
  static_cast<Ruling&>(made) = std::move(*found);
  made.compiler = question.candidate.compiler;
  return made;
}

}  // namespace weir::verdict
