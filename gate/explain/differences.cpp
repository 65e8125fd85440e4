// Computes the differences between the two sides of the evidence.
#include "gate/base/text.hpp"
#include "gate/explain/patterns.hpp"

namespace weir::explain {
namespace {

using unit::Scope;
using WorkFilter = std::function<bool(const Work&)>;

std::optional<TimeRange> join_ranges(const std::optional<TimeRange>& a,
                                     const std::optional<TimeRange>& b) {
  if (!a || !b) return std::nullopt;
  return TimeRange{std::min(a->min_seconds, b->min_seconds),
                   std::max(a->max_seconds, b->max_seconds), a->times + b->times};
}

// Pairs kernels or ops (works) of both sides by name, and adds up how often and how long each ran.
// `filter` selects works.
std::vector<WorkChange> collect_work_changes(const Evidence& evidence, const WorkFilter& filter) {
  std::map<std::string, WorkChange> sums;
  for (const bool after : {false, true}) {
    for (const Work& work : after ? evidence.after.works : evidence.before.works) {
      if (!filter(work)) continue;
      WorkChange& change = sums[work.name];
      Rational& times = after ? change.after : change.before;
      times = times.plus(work.times).value_or(times);
      if (!work.seconds) continue;
      auto& seconds = after ? change.seconds_after : change.seconds_before;
      auto& range = after ? change.range_after : change.range_before;
      range = seconds ? join_ranges(range, work.range) : work.range;
      seconds = seconds.value_or(0) + *work.seconds;
      change.labels.insert(work.labels.begin(), work.labels.end());
    }
  }
  // A hostile profile may have 200 000 works: no more than one copy of them is held.
  std::vector<WorkChange> list;
  list.reserve(sums.size());
  while (!sums.empty()) {
    auto work = sums.extract(sums.begin());
    WorkChange& change = list.emplace_back(std::move(work.mapped()));
    change.name = std::move(work.key());
    change.parsed = kernel_name(change.name);
  }
  return list;
}

// Returns the works that ran more or less often, the largest change first.
std::vector<WorkChange> collect_changed(const Evidence& evidence, const WorkFilter& filter) {
  std::vector<WorkChange> list = collect_work_changes(evidence, filter);
  // A difference that does not fit a Rational cannot be shown, so it counts as 0.
  std::erase_if(list, [](const WorkChange& change) { return change.delta() == k_zero; });
  std::ranges::stable_sort(list, std::greater(), &WorkChange::absolute_delta);
  return list;
}

// Returns true if the metric counts the same unit as the works do, at the same length. Works
// without a unit go with counts per token.
bool counts_works(const Evidence& evidence, const unit::Metric& metric) {
  if (evidence.scope == Scope::whole_run && metric.scope == Scope::per_token) return true;
  return metric.scope == evidence.scope &&
         (metric.scope != Scope::at_length || !evidence.length || metric.length == evidence.length);
}

bool is_slope(Scope scope) { return scope == Scope::per_token || scope == Scope::per_prefill; }

bool is_called_changed(const Evidence& evidence, const std::string& name) {
  return evidence.gate && evidence.gate->changed.contains(name);
}

// Returns after / before of a time; 0 if there is none. A gate's change is estimated from pairs, so
// it may differ from the ratio of the two numbers.
double time_ratio(const Evidence& evidence, const std::string& name, double before, double after) {
  const std::optional<double>& change = evidence.gate->changed.at(name).change;
  if (change) return 1 + *change;
  return before > 0 ? after / before : 0;
}

struct Range {
  double low = 0, high = 0;
  [[nodiscard]] double width() const { return high - low; }
};
Range sample_range(const MetricValue& value) {
  const auto [low, high] = std::ranges::minmax(value.samples);
  return {low, high};
}

// Rounds a change of a varying count; nothing if that is 0 or too large.
std::optional<Rational> round_to_count(double delta) {
  if (std::fabs(delta) > 0x1p52 || std::llround(delta) == 0) return std::nullopt;
  return Rational(static_cast<std::int64_t>(std::llround(delta)));
}

// Returns the change of a count that varies from run to run; nothing if chance may explain it. The
// runs of both sides must not overlap, and the change must exceed three times their spread.
std::optional<Rational> sampled_change(const MetricValue& before, const MetricValue& after) {
  const auto as_samples = [](const MetricValue& value) {
    return value.exact ? MetricValue{{}, {value.exact->value()}} : value;
  };
  const MetricValue sampled_before = as_samples(before), sampled_after = as_samples(after);
  const std::size_t min_samples = before.exact || after.exact ? 1 : 3;
  if (std::min(sampled_before.samples.size(), sampled_after.samples.size()) < min_samples) {
    return std::nullopt;
  }
  const Range range_before = sample_range(sampled_before),
              range_after = sample_range(sampled_after);
  const double delta = sampled_after.value() - sampled_before.value(),
               spread = std::max(range_before.width(), range_after.width());
  if (!(range_before.high < range_after.low || range_after.high < range_before.low) ||
      !(std::fabs(delta) > spread)) {
    return std::nullopt;
  }
  // The gate's limit for nearly exact counts: three times their spread, and half a per cent.
  if (std::fabs(delta) <= std::max(3 * spread, 0.005 * std::fabs(sampled_before.value()))) {
    return std::nullopt;
  }
  return round_to_count(delta);
}

// Returns the change of a count if it exceeds the noise of both sides. Changes that a gate called
// count however few samples there are.
std::optional<Rational> count_change(const Evidence& evidence, const std::string& name,
                                     const MetricValue& before, const MetricValue& after) {
  if (before.exact && after.exact) {
    if (*before.exact == *after.exact) return std::nullopt;
    return after.exact->minus(*before.exact).value_or(k_zero);
  }
  return is_called_changed(evidence, name) ? round_to_count(after.value() - before.value())
                                           : sampled_change(before, after);
}

// Sorts every metric that changed into `result` by its scope: per token, at the start, per token
// of context. Times count only if the gate judged them as changed.
void add_metrics(const Evidence& evidence, Differences& result) {
  for (const auto& [name, before] : evidence.before.metrics) {
    const auto metric = metric_by_name(evidence, name);
    const auto match = evidence.after.metrics.find(name);
    if (!metric) continue;
    if (match == evidence.after.metrics.end()) {
      const bool has_lengths_after = std::ranges::any_of(
          evidence.after.metrics,
          [&](const auto& entry) { return entry.first.starts_with(metric->base + "_at_"); });
      if (is_slope(metric->scope) && has_lengths_after) result.unsteady.push_back(name);
      continue;
    }
    if (metric->kind == unit::Kind::count) {
      const auto delta = count_change(evidence, name, before, match->second);
      if (!delta) continue;
      result.moved[name] = {*metric, *delta};
      if (unit::is_level(metric->base)) {
        result.levels[metric->base] = *delta;
      } else if (metric->scope == Scope::fixed) {
        result.fixed[metric->base] = *delta;
      } else if (metric->scope == Scope::per_context_token) {
        result.context[metric->base] = *delta;
      } else if (counts_works(evidence, *metric)) {
        result.counts[metric->base] = *delta;
      }
    } else if (is_called_changed(evidence, name)) {
      const double ratio = time_ratio(evidence, name, before.value(), match->second.value());
      if (ratio > 0 && std::isfinite(ratio) && ratio != 1) result.times[name] = ratio;
    }
  }
}

}  // namespace

Rational WorkChange::delta() const { return after.minus(before).value_or(k_zero); }
double WorkChange::absolute_delta() const { return absolute_value(delta()); }
std::string WorkChange::work() const {
  const std::string_view op = profile::op_of(name);
  return op.empty() ? parsed.base() : std::string(op);
}

WorkChanges pointers_to(const std::vector<WorkChange>& changes) {
  return collect<const WorkChange*>(changes, [](const WorkChange& change) { return &change; });
}

WorkChanges select_changes(const std::vector<WorkChange>& changes, bool up) {
  WorkChanges list = pointers_to(changes);
  std::erase_if(list, [&](const WorkChange* change) { return change->is_increase() != up; });
  return list;
}

std::vector<KernelName> names_in(const WorkChanges& changes) {
  return collect<KernelName>(changes, &WorkChange::parsed);
}

bool has_no_name(std::string_view kernel) {
  constexpr std::size_t k_digits = 16;
  return kernel.size() > k_digits && kernel[kernel.size() - k_digits - 1] == '@' &&
         text::is_hex(kernel.substr(kernel.size() - k_digits));
}

Rational delta_of(const verdict::Changed& entry) {
  return entry.current.value_or(k_zero).minus(entry.baseline.value_or(k_zero)).value_or(k_zero);
}

Rational total_delta(const WorkChanges& changes) {
  Rational sum;
  for (const WorkChange* change : changes) sum = sum.plus(change->delta()).value_or(sum);
  return sum;
}

Rational Differences::count(const std::string& base) const { return look_up(counts, base, k_zero); }

bool Differences::work_changed() const {
  return !counts.empty() || !context.empty() || !unsteady.empty() || !kernels.empty() ||
         !cpu_ops.empty() || !graph.empty() || !buffers.empty() || !levels.empty();
}

bool Differences::only_works_changed() const {
  return counts.empty() && levels.empty() && fixed.empty();
}

bool Differences::any() const { return work_changed() || !fixed.empty() || !times.empty(); }

std::optional<unit::Metric> metric_by_name(const Evidence& evidence, const std::string& name) {
  if (is_called_changed(evidence, name)) return evidence.gate->changed.at(name).metric;
  return unit::find_metric(name);
}

std::string metric_name(const Evidence& evidence, const std::string& base) {
  for (const auto& [name, value] : evidence.after.metrics) {
    const auto metric = unit::find_metric(name);
    if (metric && metric->base == base && counts_works(evidence, *metric)) return name;
  }
  return "";
}

bool both_sides_count(const Evidence& evidence, const std::string& base) {
  const std::string name = metric_name(evidence, base);
  return evidence.before.metrics.contains(name) && evidence.after.metrics.contains(name);
}

std::optional<ExactCounts> exact_counts(const Evidence& evidence, const std::string& base) {
  return exact_values(evidence, metric_name(evidence, base));
}

std::optional<ExactCounts> exact_values(const Evidence& evidence, const std::string& name) {
  const MetricValue* before = look_up(evidence.before.metrics, name);
  const MetricValue* after = look_up(evidence.after.metrics, name);
  const bool exact = before != nullptr && after != nullptr && before->exact && after->exact;
  return exact ? std::optional(ExactCounts{*before->exact, *after->exact}) : std::nullopt;
}

bool place_known(const Evidence& evidence, const WorkChange& work) {
  const bool in_buffers =
      std::ranges::any_of(work.labels, [](const std::string& label) { return !label.empty(); });
  return evidence.kernels_known || evidence.cpu_ops_known || evidence.gate ||
         evidence.device == "cpu" || in_buffers;
}

// Collects all differences between the two sides: metrics, kernels, ops on the CPU, the graph,
// command buffers, and works with times.
Differences find_differences(const Evidence& evidence) {
  Differences result;
  add_metrics(evidence, result);
  const auto is_op = [](const Work& work) { return work.kind == Work::Kind::op; };
  const bool is_cpu = evidence.device == "cpu";
  // If kernels have no names, ops of the device stand for them.
  const bool by_op = is_cpu || (!evidence.kernels_known && evidence.graph_known);
  if (evidence.kernels_known || by_op) {
    result.kernels = collect_changed(evidence, [&](const Work& work) {
      const auto kind = is_cpu || by_op ? Work::Kind::op : Work::Kind::kernel;
      return work.kind == kind && (is_cpu || !work.on_cpu);
    });
  }
  if (evidence.cpu_ops_known && !is_cpu) {
    result.cpu_ops =
        collect_changed(evidence, [&](const Work& work) { return is_op(work) && work.on_cpu; });
  }
  if (evidence.graph_known) result.graph = collect_changed(evidence, is_op);
  const auto is_buffers = [](const Work& work) { return work.kind == Work::Kind::buffers; };
  result.buffers = collect_changed(evidence, is_buffers);
  result.timed_buffers = collect_work_changes(evidence, is_buffers);
  result.timed = collect_work_changes(
      evidence, [&](const Work& work) { return work.seconds.has_value() && !is_buffers(work); });
  for (std::vector<WorkChange>* list : {&result.timed, &result.timed_buffers}) {
    std::erase_if(*list, [](const WorkChange& change) {
      return !change.seconds_before || !change.seconds_after;
    });
  }
  return result;
}

}  // namespace weir::explain
