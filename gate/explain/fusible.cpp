#include "gate/explain/fusible.hpp"

#include <algorithm>

#include "gate/base/find.hpp"
#include "gate/explain/patterns.hpp"
#include "gate/observed/timeline.hpp"
#include "gate/unit/fusions.hpp"

namespace weir::explain {
namespace {

using TimesOf = std::map<std::string, Rational>;

Rational at_least_none(const std::optional<Rational>& value) {
  return value ? std::max(*value, k_none) : k_none;
}
Rational product(const Rational& a, std::size_t b) {
  return a.times(Rational(static_cast<std::int64_t>(b))).value_or(k_none);
}

// How often each op ran as a kernel of its own, by kernels that can have run nothing else.
TimesOf ran_alone(const TimesOf& kernels, const TimesOf& ops) {
  const auto names = collect<std::string>(ops, [](const auto& one) { return one.first; });
  TimesOf alone;
  for (const auto& [kernel, times] : kernels) {
    const std::string op = observed::op_alone(kernel, names);
    if (!op.empty()) alone[op] = alone[op].plus(times).value_or(k_none);
  }
  return alone;
}

std::string why_unknown(const profile::Profile& profile) {
  if (profile.device == "cpu") return "a CPU's ops have no kernels whose names would tell";
  if (!profile.fusible || !profile.graph_ops) {
    return "no probe saw the ops of each token in their order";
  }
  if (!profile.kernels || profile.kernels->varies || !profile.kernels->named) {
    return "kernels have no names here";
  }
  if (profile.kernels->scope != profile.fusible->scope) {
    return "kernels and ops were not counted by the same unit";
  }
  return "";
}

}  // namespace

Fusible fusible_of(const profile::Profile& profile) {
  Fusible made;
  made.unknown = why_unknown(profile);
  if (!made.unknown.empty()) return made;
  const TimesOf& kernels = profile.kernels->counts;
  const TimesOf& ops = profile.graph_ops->counts;
  const TimesOf alone = ran_alone(kernels, ops);
  TimesOf in_rows;  // of each op
  for (const unit::Fusion& one : unit::fusions()) {
    const Rational rows = look_up(profile.fusible->counts, one.name(), k_none);
    for (const std::string_view op : one.ops) {
      Rational& sum = in_rows[std::string(op)];
      sum = sum.plus(rows).value_or(k_none);
    }
  }
  for (const unit::Fusion& one : unit::fusions()) {
    const Rational rows = look_up(profile.fusible->counts, one.name(), k_none);
    if (rows <= k_none) continue;
    const bool may_be_joined = std::ranges::any_of(
        kernels, [&](const auto& kernel) { return observed::may_compute(kernel.first, one.ops); });
    Rational apart, saved;
    bool joined = false;
    for (std::size_t i = 0; i < one.ops.size(); ++i) {
      const std::string op(one.ops[i]);
      if (holds(std::span(one.ops).first(i), one.ops[i])) continue;  // seen
      const auto each = static_cast<std::size_t>(std::ranges::count(one.ops, one.ops[i]));
      const Rational all = look_up(ops, op, k_none), single = look_up(alone, op, k_none);
      if (single > all) continue;  // several kernels compute one op
      // Those that stand elsewhere may all have run alone.
      const Rational elsewhere = at_least_none(all.minus(product(rows, each)));
      const Rational here = at_least_none(single.minus(elsewhere));
      const Rational in_no_row = at_least_none(all.minus(in_rows[op]));
      joined = joined || (may_be_joined && single <= in_no_row);
      apart = std::max(apart, std::min(here, rows));
      const Rational first = i == 0 ? std::min(here, rows) : k_none;
      saved = at_least_none(saved.plus(here).value_or(k_none).minus(first));
    }
    saved = std::max(saved, apart);
    if (apart > k_none) {
      made.apart.push_back({one.name(), apart});
      made.saved = made.saved.plus(saved).value_or(k_none);
    } else {
      (joined ? made.joined : made.unclear).push_back({one.name(), rows});
    }
  }
  for (auto* rows : {&made.apart, &made.joined, &made.unclear}) {
    std::ranges::stable_sort(*rows, std::greater(), &Fusible::Row::times);
  }
  return made;
}

}  // namespace weir::explain
