// Reads which ops a token or prefill consists of, from probes that see ops.
#include "gate/base/add_capped.hpp"
#include "gate/base/find.hpp"
#include "gate/profile/marginal.hpp"
#include "gate/profile/passes.hpp"

namespace weir::profile {
namespace {

// Probes that see ops. The first one that saw some is used, because it also sees ops that nobody
// marked.
constexpr std::array<std::string_view, 2> k_probes{"ggml", k_engine_marks};

// Counts of each kind of op in each run of a pass.
struct Series {
  RunLengths runs;
  std::map<OpKey, RunCounts> counts;
};

// Returns the op probe's counts of every run; empty if a run has none.
std::vector<const ProbeCounts*> find_op_counts(const Records& counted_runs) {
  for (const std::string_view name : k_probes) {
    std::vector<const ProbeCounts*> probes;
    for (const RunRecord* record : counted_runs) {
      const ProbeCounts* probe = find_probe(*record, name);
      if (probe != nullptr && !probe->ops.empty()) probes.push_back(probe);
    }
    if (probes.size() == counted_runs.size()) return probes;
  }
  return {};
}

// Returns the counts of each kind of op.
Series collect_op_series(const CellFacts& facts, const Records& counted_runs) {
  Series series{run_lengths(counted_runs, facts.sweep), {}};
  const auto probes = find_op_counts(counted_runs);
  for (std::size_t run = 0; run < probes.size(); ++run) {
    for (const OpCount& op : probes[run]->ops) {
      add_count(series.counts[op_key(op)], run, op.count);
    }
  }
  return series;
}

// Returns the kind of graph that was computed most often, with `of_a_token` only among graphs of
// one token. Null if there is none.
const GraphCount* find_busiest_graph(const ProbeCounts& probe, bool of_a_token) {
  const GraphCount* result = nullptr;
  for (const GraphCount& graph : probe.graphs) {
    if (of_a_token && graph.rows != 1) continue;
    if (graph.computed > 0 && (result == nullptr || graph.computed > result->computed)) {
      result = &graph;
    }
  }
  return result;
}

// Returns the ops of one computation of the graph that was computed most often, with how often
// each occurs in it.
std::vector<OpRate> ops_per_graph(const ProbeCounts& probe) {
  std::vector<OpRate> ops;
  const GraphCount* graph = find_busiest_graph(probe, /*of_a_token=*/false);
  if (graph == nullptr) return ops;
  const std::ptrdiff_t graph_index = graph - probe.graphs.data();
  for (const OpCount& op : probe.ops) {
    if (op.graph != graph_index) continue;
    const auto per_graph = Rational::make(op.count, graph->computed);
    if (!per_graph || *per_graph <= Rational(0)) continue;
    ops.push_back({op_key(op), *per_graph});
  }
  return ops;
}

// Returns how often an op runs per length: by the exact line, else between the shortest and the
// longest run. An op whose shape grows with the length (attention) follows no line, but is work as
// well.
Rational ops_per_length(const RunLengths& runs, const RunCounts& counts) {
  if (const auto line = exact_line(runs, counts)) return line->slope;
  const std::size_t low = runs.first_shortest(), high = runs.last_longest();
  const auto increase = Rational(count_of_run(counts, high)).minus(count_of_run(counts, low));
  const auto rate =
      increase ? Rational::make(increase->numerator(), runs.of_run(high) - runs.of_run(low))
               : std::nullopt;
  return rate.value_or(Rational(0));
}

// Returns true if the probe listed every op that it counted.
bool saw_all_ops(const std::vector<const ProbeCounts*>& probes) {
  return std::ranges::all_of(probes, [](const ProbeCounts* probe) {
    std::int64_t listed = 0;
    for (const OpCount& op : probe->ops) add_capped(listed, op.count);
    // A probe that cannot list the ops of every graph does not count them either.
    return probe->counts.contains("cpu_ops") && listed == count_of(*probe, "ops");
  });
}

// Returns sequences of ops that could be one kernel, with their counts in each run; nothing if a
// graph's order of ops is unknown.
std::optional<KernelSeries> fusible_series(const CellFacts& facts, const Records& counted_runs) {
  KernelSeries series{run_lengths(counted_runs, facts.sweep), {}};
  const auto probes = find_op_counts(counted_runs);
  for (std::size_t run = 0; run < probes.size(); ++run) {
    for (const GraphCount& graph : probes[run]->graphs) {
      if (!graph.fusible) return std::nullopt;
      for (const auto& [ops, times] : *graph.fusible) {
        std::int64_t total = 0;
        const bool fits_int64 = !__builtin_mul_overflow(times, graph.computed, &total);
        add_count(series.counts[ops], run, fits_int64 ? total : INT64_MAX);
      }
    }
  }
  return series;
}

std::string name_with_type(const OpKey& key) {
  return key.type.empty() ? key.op : fmt::format("{} {}", key.op, key.type);
}
std::string name_with_shape(const OpKey& key) {
  return key.shape.empty() ? name_with_type(key)
                           : fmt::format("{} {}", name_with_type(key), key.shape);
}

// Fits ops as if they were kernels: how often each runs per token or prefill. `make_name` gives an
// op its name; ops of equal names are added up.
KernelFit fit_ops(const Series& series, Sweep sweep, std::string (*make_name)(const OpKey&)) {
  KernelSeries by_name{series.runs, {}};
  for (const auto& [key, counts] : series.counts) {
    RunCounts& counts_of_name = by_name.counts[make_name(key)];
    counts_of_name.insert(counts_of_name.end(), counts.begin(), counts.end());
  }
  for (auto& [name, counts] : by_name.counts) {
    std::ranges::stable_sort(counts, {}, &RunCount::run);
    RunCounts sums;
    for (const RunCount& run_count : counts) add_count(sums, run_count.run, run_count.count);
    counts = std::move(sums);
  }
  return fit_kernels(by_name, sweep);
}

}  // namespace

// Returns how often each op runs per token, prefill, request or computed graph. The unit depends
// on how the runs differ in length (`sweep`).
OpWork find_op_work(const CellFacts& facts, const Records& counted_runs) {
  OpWork work;
  const auto probes = find_op_counts(counted_runs);
  if (probes.empty()) return work;
  work.complete = saw_all_ops(probes);
  const bool cannot_fit_line = facts.sweep == Sweep::none || requests_share_batches(facts.sweep);
  if (cannot_fit_line || collect_lengths(counted_runs, facts.sweep).size() < 2) {
    work.unit = "a graph";
    work.ops = ops_per_graph(*probes.front());
    return work;
  }
  const bool is_per_request = facts.sweep == Sweep::request;
  work.unit = facts.sweep == Sweep::repeats ? "a prefill" : "a token";
  if (is_per_request) work.unit = "a request";
  const Series series = collect_op_series(facts, counted_runs);
  const std::size_t longest = series.runs.first_longest();
  for (const auto& [key, counts] : series.counts) {
    const Rational per_unit = is_per_request ? Rational(count_of_run(counts, longest))
                                             : ops_per_length(series.runs, counts);
    if (per_unit <= Rational(0)) continue;
    work.ops.push_back({key, per_unit});
  }
  return work;
}

// Adds ops as kernels if the profile has none. Their names contain shapes, unless shapes grow with
// the context.
void add_op_kernels(const CellFacts& facts, const Records& counted_runs, Profile& profile) {
  const Sweep sweep = actual_sweep(facts, counted_runs);
  if (sweep == Sweep::overlapping) return;  // as in add_kernels
  const Series series = collect_op_series(facts, counted_runs);
  if (series.counts.empty() || profile.kernels) return;
  // Shapes may grow with the context while the ops are the same for every token.
  bool shapes_grow = false;
  if (sweep != Sweep::none) {
    const Sweep length_sweep = sweep == Sweep::repeats ? sweep : Sweep::tokens;
    const KernelFit fit_with_shapes = fit_ops(series, length_sweep, name_with_shape);
    shapes_grow = fit_with_shapes.set.scope == unit::Scope::at_length;
  }
  KernelFit fit = fit_ops(series, sweep, name_with_shape);
  if (shapes_grow) {
    KernelFit shapeless = fit_ops(series, sweep, name_with_type);
    if (shapeless.set.scope != unit::Scope::at_length) fit = std::move(shapeless);
  }
  fit.set.has_names = facts.kernels_gated;
  profile.kernels = std::move(fit.set);
  for (const std::string& note : fit.notes) add_once(profile.warnings, note);
}

// Adds the ops that devices ran per token or prefill, and sequences of them that could be fused.
// Does nothing unless all ops are listed and each token has the same.
void add_graph_ops(const CellFacts& facts, const Records& counted_runs, Profile& profile) {
  const Sweep sweep = actual_sweep(facts, counted_runs);
  const bool has_same_batches = sweep != Sweep::none && sweep != Sweep::overlapping;
  if (facts.device == "cpu" || !has_same_batches || !saw_all_ops(find_op_counts(counted_runs)))
    return;
  Series on_devices = collect_op_series(facts, counted_runs);
  std::erase_if(on_devices.counts, [](const auto& entry) { return entry.first.on_cpu; });
  KernelFit fit = fit_ops(on_devices, sweep, [](const OpKey& key) { return key.op; });
  if (fit.set.runs_disagree || fit.set.scope == unit::Scope::at_length) return;
  fit.set.has_names = true;
  if (fit.set.counts.empty()) return;
  if (const auto sequences = fusible_series(facts, counted_runs)) {
    KernelSet fusible;
    fusible.scope = fit.set.scope;
    if (!sequences->counts.empty()) fusible = fit_kernels(*sequences, sweep).set;
    if (!fusible.runs_disagree && fusible.scope == fit.set.scope)
      profile.fusible = std::move(fusible);
  }
  profile.graph_ops = std::move(fit.set);
}

// Warns if the graph of one token has other numbers of CPU ops or splits than the fitted rates per
// token. Splits are stretches of a graph on one backend.
void check_graphs(const CellFacts& facts, const Records& counted_runs, Profile& profile) {
  const auto probes = find_op_counts(counted_runs);
  if (probes.empty()) return;
  const auto exact_per_token = [&](std::string_view base) -> std::optional<Rational> {
    const auto* metric = look_up(profile.metrics, fmt::format("{}_per_token", base));
    const bool same_source = metric != nullptr && metric->source == probes.front()->probe;
    return same_source ? metric->exact : std::nullopt;
  };
  // The slope is comparable with a graph only if each token is one graph.
  if (!varies_token_count(facts.sweep) || exact_per_token("graphs") != Rational(1)) return;
  for (const ProbeCounts* probe : probes) {
    const GraphCount* graph = find_busiest_graph(*probe, /*of_a_token=*/true);
    if (graph == nullptr) continue;
    for (const auto& [base, count] :
         std::array{std::pair{"cpu_ops", graph->cpu_ops}, std::pair{"splits", graph->splits}}) {
      const auto slope = exact_per_token(base);
      if (!slope || *slope == Rational(count)) continue;
      add_once(profile.warnings,
               fmt::format("{}: the graph of one token has {}, the slope says {} a token", base,
                           count, slope->str()));
    }
  }
}

}  // namespace weir::profile
