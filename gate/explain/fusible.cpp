// Decides, by the names and counts of kernels, which ops in a row ran as one kernel.
#include "gate/explain/fusible.hpp"

#include <algorithm>

#include "gate/base/find.hpp"
#include "gate/explain/patterns.hpp"
#include "gate/observed/timeline.hpp"
#include "gate/unit/fusions.hpp"

namespace weir::explain {
namespace {

using TimesOf = std::map<std::string, Rational>;

Rational clamp_to_zero(const std::optional<Rational>& value) {
  return value ? std::max(*value, k_zero) : k_zero;
}
Rational multiply(const Rational& a, std::size_t b) {
  return a.times(Rational(static_cast<std::int64_t>(b))).value_or(k_zero);
}

// Returns how often each op ran as a kernel of its own. Only kernels that cannot have run anything
// else count.
TimesOf count_single_runs(const TimesOf& kernels, const TimesOf& ops) {
  const auto names = collect<std::string>(ops, [](const auto& op) { return op.first; });
  TimesOf single_runs;
  for (const auto& [kernel, times] : kernels) {
    const std::string op = observed::op_alone(kernel, names);
    if (!op.empty()) single_runs[op] = single_runs[op].plus(times).value_or(k_zero);
  }
  return single_runs;
}

// Returns why a profile does not show which ops were fused into one kernel; "" if it does.
std::string find_obstacle(const profile::Profile& profile) {
  if (profile.device == "cpu") return "a CPU's ops have no kernels whose names would tell";
  if (!profile.fusible || !profile.graph_ops) {
    return "no probe saw the ops of each token in their order";
  }
  if (!profile.kernels || profile.kernels->runs_disagree || !profile.kernels->has_names) {
    return "kernels have no names here";
  }
  if (profile.kernels->scope != profile.fusible->scope) {
    return "kernels and ops were not counted by the same unit";
  }
  return "";
}

}  // namespace

// Computes bounds: a row counts as run separately if its ops ran alone more often than they occur
// elsewhere.
Fusible find_fusible(const profile::Profile& profile) {
  Fusible result;
  result.unknown = find_obstacle(profile);
  if (!result.unknown.empty()) return result;
  const TimesOf& kernels = profile.kernels->counts;
  const TimesOf& ops = profile.graph_ops->counts;
  const TimesOf single_runs = count_single_runs(kernels, ops);
  TimesOf in_rows;  // how often each op occurs in rows
  for (const unit::Fusion& fusion : unit::fusions()) {
    const Rational rows = look_up(profile.fusible->counts, fusion.name(), k_zero);
    for (const std::string_view op : fusion.ops) {
      Rational& sum = in_rows[std::string(op)];
      sum = sum.plus(rows).value_or(k_zero);
    }
  }
  for (const unit::Fusion& fusion : unit::fusions()) {
    const Rational rows = look_up(profile.fusible->counts, fusion.name(), k_zero);
    if (rows <= k_zero) continue;
    const bool may_be_joined = std::ranges::any_of(kernels, [&](const auto& kernel) {
      return observed::may_compute(kernel.first, fusion.ops);
    });
    Rational separate, saved;
    bool joined = false;
    for (std::size_t i = 0; i < fusion.ops.size(); ++i) {
      const std::string op(fusion.ops[i]);
      if (holds(std::span(fusion.ops).first(i), fusion.ops[i])) continue;  // counted already
      const auto count_in_row =
          static_cast<std::size_t>(std::ranges::count(fusion.ops, fusion.ops[i]));
      const Rational op_total = look_up(ops, op, k_zero), single = look_up(single_runs, op, k_zero);
      if (single > op_total) continue;  // several kernels compute one op
      // Ops outside of this row may all have run alone.
      const Rational elsewhere = clamp_to_zero(op_total.minus(multiply(rows, count_in_row)));
      const Rational here = clamp_to_zero(single.minus(elsewhere));
      const Rational in_no_row = clamp_to_zero(op_total.minus(in_rows[op]));
      joined = joined || (may_be_joined && single <= in_no_row);
      separate = std::max(separate, std::min(here, rows));
      const Rational first = i == 0 ? std::min(here, rows) : k_zero;
      saved = clamp_to_zero(saved.plus(here).value_or(k_zero).minus(first));
    }
    saved = std::max(saved, separate);
    if (separate > k_zero) {
      result.separate.push_back({fusion.name(), separate});
      result.saved = result.saved.plus(saved).value_or(k_zero);
    } else {
      auto& list = joined ? result.joined : result.unclear;
      list.push_back({fusion.name(), rows});
    }
  }
  for (auto* rows : {&result.separate, &result.joined, &result.unclear}) {
    std::ranges::stable_sort(*rows, std::greater(), &Fusible::Row::times);
  }
  return result;
}

}  // namespace weir::explain
