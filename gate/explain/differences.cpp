
#include "gate/explain/patterns.hpp"

namespace weir::explain {
namespace {

using unit::Scope;
using Wanted = std::function<bool(const Work&)>;

std::optional<TimeRange> joined(const std::optional<TimeRange>& a,
                                const std::optional<TimeRange>& b) {
  if (!a || !b) return std::nullopt;
  return TimeRange{std::min(a->least, b->least), std::max(a->most, b->most), a->times + b->times};
}

// Where works are one and the same on both sides: kernels go by their name, ops too.
std::vector<Move> moves(const Evidence& evidence, const Wanted& wanted) {
  std::map<std::string, Move> sums;
  for (const bool after : {false, true}) {
    for (const Work& work : after ? evidence.after.works : evidence.before.works) {
      if (!wanted(work)) continue;
      Move& move = sums[work.name];
      Rational& times = after ? move.after : move.before;
      times = times.plus(work.times).value_or(times);
      if (!work.seconds) continue;
      auto& seconds = after ? move.seconds_after : move.seconds_before;
      auto& range = after ? move.range_after : move.range_before;
      range = seconds ? joined(range, work.range) : work.range;
      seconds = seconds.value_or(0) + *work.seconds;
      move.labels.insert(work.labels.begin(), work.labels.end());
    }
  }
  std::vector<Move> list;
  for (auto& [name, move] : sums) {
    move.name = name;
    move.parsed = kernel_name(name);
    list.push_back(std::move(move));
  }
  return list;
}

std::vector<Move> changed(const Evidence& evidence, const Wanted& wanted) {
  std::vector<Move> list = moves(evidence, wanted);
  // (A difference that is no Rational is none that can be told.)
  std::erase_if(list, [](const Move& move) { return move.delta() == k_none; });
  std::ranges::stable_sort(list, std::greater(), &Move::size);
  return list;
}

// Counts that stand beside the works: of their scope, and of one length. Beside works in all those
// per token are told too, without saying what they are of.
bool beside_works(const Evidence& evidence, const unit::Metric& metric) {
  if (evidence.scope == Scope::whole && metric.scope == Scope::per_token) return true;
  return metric.scope == evidence.scope &&
         (metric.scope != Scope::at_length || !evidence.length || metric.length == evidence.length);
}

bool slope(Scope scope) { return scope == Scope::per_token || scope == Scope::per_prefill; }

bool called_changed(const Evidence& evidence, const std::string& name) {
  return evidence.gate && evidence.gate->changed.contains(name);
}

// Now by before, 0 where there is none. The change that a gate shows, an estimate of pairs, is not
// always that of the two numbers beside it.
double time_ratio(const Evidence& evidence, const std::string& name, double from, double to) {
  const std::optional<double>& change = evidence.gate->changed.at(name).change;
  if (change) return 1 + *change;
  return from > 0 ? to / from : 0;
}

struct Range {
  double low = 0, high = 0;
  [[nodiscard]] double width() const { return high - low; }
};
Range range_of(const Known& known) {
  const auto [low, high] = std::ranges::minmax(known.samples);
  return {low, high};
}

// What varies is told in whole numbers.
std::optional<Rational> whole(double delta) {
  if (std::fabs(delta) > 0x1p52 || std::llround(delta) == 0) return std::nullopt;
  return Rational(static_cast<std::int64_t>(std::llround(delta)));
}

// Of samples on one side at least: beyond doubt, where no run of one side is among those of the
// other, and the step is larger than either side varies.
std::optional<Rational> sampled_change(const Known& before, const Known& after) {
  const auto samples = [](const Known& known) {
    return known.exact ? Known{{}, {known.exact->value()}} : known;
  };
  const Known a = samples(before), b = samples(after);
  const std::size_t least = before.exact || after.exact ? 1 : 3;
  if (std::min(a.samples.size(), b.samples.size()) < least) return std::nullopt;
  const Range x = range_of(a), y = range_of(b);
  const double delta = b.value() - a.value(), varies = std::max(x.width(), y.width());
  if (!(x.high < y.low || y.high < x.low) || !(std::fabs(delta) > varies)) return std::nullopt;
  // As the gate has it for what is nearly exact: three times its own repeatability, and half a per
  // cent.
  if (std::fabs(delta) <= std::max(3 * varies, 0.005 * std::fabs(a.value()))) return std::nullopt;
  return whole(delta);
}

// The change of a count, where both sides are known, and more than samples of either vary by
// themselves. What a gate called changed is, however few its samples are here.
std::optional<Rational> count_change(const Evidence& evidence, const std::string& name,
                                     const Known& before, const Known& after) {
  if (before.exact && after.exact) {
    if (*before.exact == *after.exact) return std::nullopt;
    return after.exact->minus(*before.exact).value_or(k_none);
  }
  return called_changed(evidence, name) ? whole(after.value() - before.value())
                                        : sampled_change(before, after);
}

void add_metrics(const Evidence& evidence, Differences& made) {
  for (const auto& [name, before] : evidence.before.metrics) {
    const auto metric = metric_of(evidence, name);
    const auto found = evidence.after.metrics.find(name);
    if (!metric) continue;
    if (found == evidence.after.metrics.end()) {
      const bool now_at_lengths = std::ranges::any_of(evidence.after.metrics, [&](const auto& one) {
        return one.first.starts_with(metric->base + "_at_");
      });
      if (slope(metric->scope) && now_at_lengths) made.unsteady.push_back(name);
      continue;
    }
    if (metric->kind == unit::Kind::count) {
      const auto delta = count_change(evidence, name, before, found->second);
      if (!delta) continue;
      made.moved[name] = {*metric, *delta};
      if (unit::is_level(metric->base)) {
        made.levels[metric->base] = *delta;
      } else if (metric->scope == Scope::fixed) {
        made.fixed[metric->base] = *delta;
      } else if (metric->scope == Scope::per_context_token) {
        made.context[metric->base] = *delta;
      } else if (beside_works(evidence, *metric)) {
        made.counts[metric->base] = *delta;
      }
    } else if (called_changed(evidence, name)) {
      const double ratio = time_ratio(evidence, name, before.value(), found->second.value());
      if (ratio > 0 && std::isfinite(ratio) && ratio != 1) made.times[name] = ratio;
    }
    // A time that nobody judged is none: of many metrics one always differs by chance.
  }
}

}  // namespace

Rational Move::delta() const { return after.minus(before).value_or(k_none); }
double Move::size() const { return size_of(delta()); }
std::string Move::work() const {
  const std::string_view op = profile::op_of(name);
  return op.empty() ? parsed.base() : std::string(op);
}

Moves pointers_to(const std::vector<Move>& moves) {
  return collect<const Move*>(moves, [](const Move& move) { return &move; });
}

Moves one_way(const std::vector<Move>& moves, bool up) {
  Moves list = pointers_to(moves);
  std::erase_if(list, [&](const Move* move) { return move->up() != up; });
  return list;
}

std::vector<KernelName> names_in(const Moves& moves) {
  return collect<KernelName>(moves, &Move::parsed);
}

bool has_no_name(std::string_view kernel) {
  constexpr std::size_t k_digits = 16;
  return kernel.size() > k_digits && kernel[kernel.size() - k_digits - 1] == '@' &&
         kernel.find_first_not_of("0123456789abcdef", kernel.size() - k_digits) ==
             std::string::npos;
}

Rational sum_of(const Moves& moves) {
  Rational sum;
  for (const Move* move : moves) sum = sum.plus(move->delta()).value_or(sum);
  return sum;
}

Rational Differences::count(const std::string& base) const { return look_up(counts, base, k_none); }

bool Differences::work_changed() const {
  return !counts.empty() || !context.empty() || !unsteady.empty() || !kernels.empty() ||
         !cpu_ops.empty() || !graph.empty() || !buffers.empty() || !levels.empty();
}

bool Differences::only_works() const { return counts.empty() && levels.empty() && fixed.empty(); }

bool Differences::any() const { return work_changed() || !fixed.empty() || !times.empty(); }

std::optional<unit::Metric> metric_of(const Evidence& evidence, const std::string& name) {
  if (called_changed(evidence, name)) return evidence.gate->changed.at(name).metric;
  return unit::find_metric(name);
}

std::string metric_name(const Evidence& evidence, const std::string& base) {
  for (const auto& [name, known] : evidence.after.metrics) {
    const auto metric = unit::find_metric(name);
    if (metric && metric->base == base && beside_works(evidence, *metric)) return name;
  }
  return "";
}

bool counted(const Evidence& evidence, const std::string& base) {
  const std::string name = metric_name(evidence, base);
  return evidence.before.metrics.contains(name) && evidence.after.metrics.contains(name);
}

std::optional<ExactCounts> exact_counts(const Evidence& evidence, const std::string& base) {
  return exact_values(evidence, metric_name(evidence, base));
}

std::optional<ExactCounts> exact_values(const Evidence& evidence, const std::string& name) {
  const Known* before = look_up(evidence.before.metrics, name);
  const Known* after = look_up(evidence.after.metrics, name);
  const bool exact = before != nullptr && after != nullptr && before->exact && after->exact;
  return exact ? std::optional(ExactCounts{*before->exact, *after->exact}) : std::nullopt;
}

bool place_known(const Evidence& evidence, const Move& work) {
  const bool in_buffers =
      std::ranges::any_of(work.labels, [](const std::string& label) { return !label.empty(); });
  return evidence.kernels_known || evidence.cpu_ops_known || evidence.gate ||
         evidence.device == "cpu" || in_buffers;
}

Differences differences_of(const Evidence& evidence) {
  Differences made;
  add_metrics(evidence, made);
  const auto op = [](const Work& work) { return work.kind == Work::Kind::op; };
  const bool cpu = evidence.device == "cpu";
  // Where kernels have no names, ops of the device stand for them.
  const bool by_op = cpu || (!evidence.kernels_known && evidence.graph_known);
  if (evidence.kernels_known || by_op) {
    made.kernels = changed(evidence, [&](const Work& work) {
      const auto kind = cpu || by_op ? Work::Kind::op : Work::Kind::kernel;
      return work.kind == kind && (cpu || !work.on_cpu);
    });
  }
  if (evidence.cpu_ops_known && !cpu) {
    made.cpu_ops = changed(evidence, [&](const Work& work) { return op(work) && work.on_cpu; });
  }
  if (evidence.graph_known) made.graph = changed(evidence, op);
  const auto buffers = [](const Work& work) { return work.kind == Work::Kind::buffers; };
  made.buffers = changed(evidence, buffers);
  made.timed_buffers = moves(evidence, buffers);
  made.timed =
      moves(evidence, [&](const Work& work) { return work.seconds.has_value() && !buffers(work); });
  for (std::vector<Move>* list : {&made.timed, &made.timed_buffers}) {
    std::erase_if(*list,
                  [](const Move& move) { return !move.seconds_before || !move.seconds_after; });
  }
  return made;
}

}  // namespace weir::explain
