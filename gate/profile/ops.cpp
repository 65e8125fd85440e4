#include "gate/base/add_capped.hpp"
#include "gate/base/find.hpp"
#include "gate/profile/marginal.hpp"
#include "gate/profile/passes.hpp"

namespace weir::profile {
namespace {

// Those that see ops; where several do, the first is taken: it sees those that nobody marked.
constexpr std::array<std::string_view, 2> k_probes{"ggml", k_marks};

using Series = std::map<OpKey, std::vector<LengthCount>>;  // a point for every run

// The probe's counts of every run; empty where one of them saw no op.
std::vector<const ProbeCounts*> seen(const Records& counted) {
  for (const std::string_view name : k_probes) {
    std::vector<const ProbeCounts*> probes;
    for (const RunRecord* record : counted) {
      const ProbeCounts* probe = find_probe(*record, name);
      if (probe != nullptr && !probe->ops.empty()) probes.push_back(probe);
    }
    if (probes.size() == counted.size()) return probes;
  }
  return {};
}

Series series_of(const CellFacts& facts, const Records& counted) {
  Series series;
  const auto probes = seen(counted);
  for (const ProbeCounts* probe : probes) {
    for (const OpCount& op : probe->ops) series[key_of(op)];
  }
  for (auto& [key, points] : series) {
    for (const RunRecord* record : counted) points.push_back({length_of(*record, facts.sweep), 0});
  }
  for (std::size_t i = 0; i < probes.size(); ++i) {
    for (const OpCount& op : probes[i]->ops) add_capped(series[key_of(op)][i].count, op.count);
  }
  return series;
}

// The kind of graph that was computed most often; with one token a graph where `of_a_token`.
const GraphCount* busiest(const ProbeCounts& probe, bool of_a_token) {
  const GraphCount* found = nullptr;
  for (const GraphCount& graph : probe.graphs) {
    if (of_a_token && graph.rows != 1) continue;
    if (graph.computed > 0 && (found == nullptr || graph.computed > found->computed)) {
      found = &graph;
    }
  }
  return found;
}

std::vector<OpRate> of_a_graph(const ProbeCounts& probe) {
  std::vector<OpRate> ops;
  const GraphCount* graph = busiest(probe, false);
  if (graph == nullptr) return ops;
  for (const OpCount& op : probe.ops) {
    if (op.graph != graph - probe.graphs.data()) continue;
    const auto each = Rational::make(op.count, graph->computed);
    if (!each || *each <= Rational(0)) continue;
    ops.push_back({key_of(op), *each});
  }
  return ops;
}

// Per length: by the exact line, else between the shortest and the longest run. An op whose shape
// depends on the length (attention over a growing cache) lies on no line and is work all the same.
Rational rate_of(const std::vector<LengthCount>& points) {
  if (const auto line = exact_line(points)) return line->slope;
  const auto [low, high] = std::ranges::minmax_element(points, {}, &LengthCount::length);
  const auto rise = Rational(high->count).minus(low->count);
  const auto rate =
      rise ? Rational::make(rise->numerator(), high->length - low->length) : std::nullopt;
  return rate.value_or(Rational(0));
}

bool is_complete(const std::vector<const ProbeCounts*>& probes) {
  return std::ranges::all_of(probes, [](const ProbeCounts* probe) {
    std::int64_t listed = 0;
    for (const OpCount& op : probe->ops) add_capped(listed, op.count);
    // Where the probe cannot tell the ops of every graph, it does not give their number.
    return probe->counts.contains("cpu_ops") && listed == count_of(*probe, "ops");
  });
}

// Rows of ops that could be one kernel, a point for every run; nothing where a graph's order is not
// known.
std::optional<KernelSeries> fusible_series(const CellFacts& facts, const Records& counted) {
  KernelSeries series;
  const auto probes = seen(counted);
  for (std::size_t i = 0; i < probes.size(); ++i) {
    for (const GraphCount& graph : probes[i]->graphs) {
      if (!graph.fusible) return std::nullopt;
      for (const auto& [ops, times] : *graph.fusible) {
        auto& points = series[ops];
        for (std::size_t j = points.size(); j < counted.size(); ++j) {
          points.push_back({length_of(*counted[j], facts.sweep), 0});
        }
        std::int64_t all = 0;
        const bool fits = !__builtin_mul_overflow(times, graph.computed, &all);
        add_capped(points[i].count, fits ? all : INT64_MAX);
      }
    }
  }
  return series;
}

std::string typed(const OpKey& key) {
  return key.type.empty() ? key.op : fmt::format("{} {}", key.op, key.type);
}
std::string shaped(const OpKey& key) {
  return key.shape.empty() ? typed(key) : fmt::format("{} {}", typed(key), key.shape);
}

KernelFit fit_ops(const Series& series, Sweep sweep, std::string (*name_of)(const OpKey&)) {
  KernelSeries named;
  for (const auto& [key, points] : series) {
    auto& sums = named[name_of(key)];
    if (sums.empty()) {
      sums = points;
      continue;
    }
    for (std::size_t i = 0; i < points.size(); ++i) add_capped(sums[i].count, points[i].count);
  }
  return fit_kernels(named, sweep);
}

}  // namespace

OpWork op_work(const CellFacts& facts, const Records& counted) {
  OpWork work;
  const auto probes = seen(counted);
  if (probes.empty()) return work;
  work.complete = is_complete(probes);
  const bool no_line = facts.sweep == Sweep::none || shares_batches(facts.sweep);
  if (no_line || lengths_of(counted, facts.sweep).size() < 2) {
    work.unit = "a graph";
    work.ops = of_a_graph(*probes.front());
    return work;
  }
  const bool of_requests = facts.sweep == Sweep::request;
  work.unit = of_requests ? "a request" : facts.sweep == Sweep::repeats ? "a prefill" : "a token";
  for (const auto& [key, points] : series_of(facts, counted)) {
    const Rational each = of_requests
                              ? std::ranges::max_element(points, {}, &LengthCount::length)->count
                              : rate_of(points);
    if (each <= Rational(0)) continue;
    work.ops.push_back({key, each});
  }
  return work;
}

void add_op_kernels(const CellFacts& facts, const Records& counted, Profile& profile) {
  const Sweep sweep = sweep_seen(facts, counted);
  if (sweep == Sweep::overlapping) return;  // as in add_kernels
  const Series series = series_of(facts, counted);
  if (series.empty() || profile.kernels) return;
  // Shapes that grow with the context: the ops alone may still be the same for every token.
  const bool grow =
      sweep != Sweep::none &&
      fit_ops(series, sweep == Sweep::repeats ? sweep : Sweep::tokens, shaped).set.scope ==
          unit::Scope::at_length;
  KernelFit fit = fit_ops(series, sweep, shaped);
  if (grow) {
    KernelFit shapeless = fit_ops(series, sweep, typed);
    if (shapeless.set.scope != unit::Scope::at_length) fit = std::move(shapeless);
  }
  fit.set.named = facts.kernels_gated;
  profile.kernels = std::move(fit.set);
  for (const std::string& note : fit.notes) add_once(profile.warnings, note);
}

void add_graph_ops(const CellFacts& facts, const Records& counted, Profile& profile) {
  const Sweep sweep = sweep_seen(facts, counted);
  const bool alike = sweep != Sweep::none && sweep != Sweep::overlapping;
  if (facts.device == "cpu" || !alike || !is_complete(seen(counted))) return;
  Series on_devices = series_of(facts, counted);
  std::erase_if(on_devices, [](const auto& item) { return item.first.on_cpu; });
  KernelFit fit = fit_ops(on_devices, sweep, [](const OpKey& key) { return key.op; });
  if (fit.set.varies || fit.set.scope == unit::Scope::at_length) return;
  fit.set.named = true;
  if (fit.set.counts.empty()) return;
  if (const auto rows = fusible_series(facts, counted)) {
    KernelSet fusible;
    fusible.scope = fit.set.scope;
    if (!rows->empty()) fusible = fit_kernels(*rows, sweep).set;
    if (!fusible.varies && fusible.scope == fit.set.scope) profile.fusible = std::move(fusible);
  }
  profile.graph_ops = std::move(fit.set);
}

void check_graphs(const CellFacts& facts, const Records& counted, Profile& profile) {
  const auto probes = seen(counted);
  if (probes.empty()) return;
  const auto exact = [&](std::string_view base) -> std::optional<Rational> {
    const auto* found = look_up(profile.metrics, fmt::format("{}_per_token", base));
    const bool seen_here = found != nullptr && found->source == probes.front()->probe;
    return seen_here ? found->exact : std::nullopt;
  };
  // Only where a token is a graph does one tell what the other should.
  if (!over_tokens(facts.sweep) || exact("graphs") != Rational(1)) return;
  for (const ProbeCounts* probe : probes) {
    const GraphCount* graph = busiest(*probe, true);
    if (graph == nullptr) continue;
    for (const auto& [base, count] :
         std::array{std::pair{"cpu_ops", graph->cpu_ops}, std::pair{"splits", graph->splits}}) {
      const auto slope = exact(base);
      if (!slope || *slope == Rational(count)) continue;
      add_once(profile.warnings,
               fmt::format("{}: the graph of one token has {}, the slope says {} a token", base,
                           count, slope->str()));
    }
  }
}

}  // namespace weir::profile
