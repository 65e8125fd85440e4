#include "gate/explain/differences.hpp"

#include <algorithm>
#include <cmath>

namespace weir::explain {
namespace {

Rational less(const Rational& a, const Rational& b) { return a.minus(b).value_or(Rational(0)); }

double magnitude(const Rational& value) { return std::fabs(value.value()); }

// Where works are one and the same on both sides: kernels go by their name, ops too.
using Sums = std::map<std::string, Move>;

void add_side(Sums& sums, const Side& side, bool after,
              const std::function<bool(const Work&)>& wanted) {
  for (const Work& work : side.works) {
    if (!wanted(work)) continue;
    Move& move = sums[work.name];
    Rational& times = after ? move.after : move.before;
    times = times.plus(work.times).value_or(times);
    if (!work.seconds) continue;
    auto& seconds = after ? move.seconds_after : move.seconds_before;
    seconds = seconds.value_or(0) + *work.seconds;
  }
}

std::vector<Move> moves(const Evidence& evidence, const std::function<bool(const Work&)>& wanted) {
  Sums sums;
  add_side(sums, evidence.before, false, wanted);
  add_side(sums, evidence.after, true, wanted);
  std::vector<Move> list;
  for (auto& [name, move] : sums) {
    move.name = name;
    move.parsed = kernel_name(name);
    list.push_back(std::move(move));
  }
  return list;
}

std::vector<Move> changed(std::vector<Move> list) {
  std::erase_if(list, [](const Move& move) { return move.before == move.after; });
  std::stable_sort(list.begin(), list.end(), [](const Move& a, const Move& b) {
    return magnitude(a.delta()) > magnitude(b.delta());
  });
  return list;
}

// Counts that stand beside the works: of their scope, and of one length. Beside works in all those
// per token are told too, without saying what they are of.
bool beside_works(const Evidence& evidence, const unit::Metric& metric) {
  if (evidence.scope == unit::Scope::whole && metric.scope == unit::Scope::per_token) return true;
  return metric.scope == evidence.scope && (metric.scope != unit::Scope::at_length ||
                                            !evidence.length || metric.length == evidence.length);
}

void add_count(const Evidence& evidence, const unit::Metric& metric, const Rational& delta,
               Differences& made) {
  switch (metric.scope) {
    case unit::Scope::fixed:
      made.fixed[metric.base] = delta;
      break;
    case unit::Scope::per_context_token:
      made.context[metric.base] = delta;
      break;
    default:
      if (beside_works(evidence, metric)) made.counts[metric.base] = delta;
  }
}

bool slope(unit::Scope scope) {
  return scope == unit::Scope::per_token || scope == unit::Scope::per_prefill;
}

bool called_changed(const Evidence& evidence, const std::string& name) {
  return evidence.gate && evidence.gate->changed.contains(name);
}

void add_metrics(const Evidence& evidence, Differences& made) {
  for (const auto& [name, before] : evidence.before.metrics) {
    const auto metric = metric_of(evidence, name);
    const auto found = evidence.after.metrics.find(name);
    if (!metric) continue;
    if (found == evidence.after.metrics.end()) {
      const bool now_at_lengths = std::any_of(
          evidence.after.metrics.begin(), evidence.after.metrics.end(),
          [&](const auto& one) { return one.first.starts_with(metric->base + "_at_"); });
      if (slope(metric->scope) && now_at_lengths) made.unsteady.push_back(name);
      continue;
    }
    if (metric->kind == unit::Kind::count) {
      if (const auto delta = count_change(evidence, name, before, found->second)) {
        add_count(evidence, *metric, *delta, made);
      }
    } else if (called_changed(evidence, name)) {
      const double from = before.value(), to = found->second.value();
      if (from > 0 && from != to) made.times[name] = to / from;
    }
    // A time that nobody judged is none: of many metrics one always differs by chance.
  }
}

struct Range {
  double low = 0, high = 0, middle = 0;
};
Range range_of(const Known& known) {
  const auto [low, high] = std::minmax_element(known.samples.begin(), known.samples.end());
  return {*low, *high, known.value()};
}

// Apart beyond doubt: no run of one side among those of the other, and the step is larger than
// either side varies.
bool apart(const Known& a, const Known& b, std::size_t least_runs) {
  if (a.samples.size() < least_runs || b.samples.size() < least_runs) return false;
  const Range x = range_of(a), y = range_of(b);
  if (!(x.high < y.low || y.high < x.low)) return false;
  return std::fabs(x.middle - y.middle) > std::max(x.high - x.low, y.high - y.low);
}

}  // namespace

Rational Move::delta() const { return less(after, before); }

Rational Differences::count(const std::string& base) const {
  const auto found = counts.find(base);
  return found == counts.end() ? Rational(0) : found->second;
}

bool Differences::any() const {
  return !counts.empty() || !fixed.empty() || !context.empty() || !unsteady.empty() ||
         !kernels.empty() || !cpu_ops.empty() || !graph.empty() || !times.empty();
}

std::optional<Rational> count_change(const Known& before, const Known& after) {
  if (before.exact && after.exact) {
    if (*before.exact == *after.exact) return std::nullopt;
    return less(*after.exact, *before.exact);
  }
  const auto samples = [](const Known& known) {
    return known.exact ? Known{{}, {known.exact->value()}} : known;
  };
  const Known a = samples(before), b = samples(after);
  const std::size_t least = before.exact || after.exact ? 1 : 3;
  if (!apart(a, b, least)) return std::nullopt;
  const double delta = b.value() - a.value();
  // As the gate has it for what is nearly exact: three times its own repeatability, and half a per
  // cent.
  const Range x = range_of(a), y = range_of(b);
  const double varies = std::max(x.high - x.low, y.high - y.low);
  if (std::fabs(delta) <= std::max(3 * varies, 0.005 * std::fabs(a.value()))) return std::nullopt;
  if (std::fabs(delta) > 0x1p52) return std::nullopt;
  // What varies is told in whole numbers.
  const auto whole = static_cast<std::int64_t>(std::llround(delta));
  if (whole == 0) return std::nullopt;
  return Rational(whole);
}

std::optional<Rational> count_change(const Evidence& evidence, const std::string& name,
                                     const Known& before, const Known& after) {
  if (!called_changed(evidence, name) || (before.exact && after.exact)) {
    return count_change(before, after);
  }
  const double delta = after.value() - before.value();
  if (std::fabs(delta) > 0x1p52 || std::llround(delta) == 0) return std::nullopt;
  return Rational(static_cast<std::int64_t>(std::llround(delta)));
}

std::optional<unit::Metric> metric_of(const Evidence& evidence, const std::string& name) {
  if (evidence.gate) {
    const auto found = evidence.gate->changed.find(name);
    if (found != evidence.gate->changed.end()) return found->second;
  }
  return unit::find_metric(name);
}

std::string metric_name(const Evidence& evidence, const std::string& base) {
  for (const auto& [name, known] : evidence.after.metrics) {
    const auto metric = unit::find_metric(name);
    if (metric && metric->base == base && beside_works(evidence, *metric)) return name;
  }
  return "";
}

std::optional<Rational> exact_of(const Side& side, const std::string& name) {
  const auto found = side.metrics.find(name);
  return found == side.metrics.end() ? std::nullopt : found->second.exact;
}

Differences differences_of(const Evidence& evidence) {
  Differences made;
  add_metrics(evidence, made);
  const bool cpu = evidence.device == "cpu";
  // Where kernels have no names, ops of the device stand for them.
  const bool by_op = cpu || (!evidence.kernels_known && evidence.graph_known);
  if (evidence.kernels_known || by_op) {
    made.kernels = changed(moves(evidence, [&](const Work& work) {
      if (by_op && !cpu) return work.kind == Work::Kind::op && !work.on_cpu;
      return cpu ? work.kind == Work::Kind::op : work.kind == Work::Kind::kernel && !work.on_cpu;
    }));
  }
  if (evidence.cpu_ops_known && !cpu) {
    made.cpu_ops = changed(moves(
        evidence, [](const Work& work) { return work.kind == Work::Kind::op && work.on_cpu; }));
  }
  if (evidence.graph_known) {
    made.graph =
        changed(moves(evidence, [](const Work& work) { return work.kind == Work::Kind::op; }));
  }
  made.timed = moves(evidence, [](const Work& work) { return work.seconds.has_value(); });
  std::erase_if(made.timed,
                [](const Move& move) { return !move.seconds_before || !move.seconds_after; });
  return made;
}

}  // namespace weir::explain
