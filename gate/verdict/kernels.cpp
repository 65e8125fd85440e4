// Kernels and placement, single kernels and ops that limits name, and whether both sides did the
// same work at all.

#include "gate/base/find.hpp"
#include "gate/profile/costly_calls.hpp"
#include "gate/profile/marginal.hpp"
#include "gate/verdict/kernel_paths.hpp"
#include "gate/verdict/proposal.hpp"

namespace weir::verdict {
namespace {

using profile::KernelSet;
using profile::Placement;

Numbers exact_counts(const std::map<std::string, std::int64_t>& counts) {
  return {counts.begin(), counts.end()};
}

// The judgement of the count that `kernels` adds up to: dispatches, or ops on the CPU.
const Judgement* find_total(const KernelSet& kernels, const CellVerdict& cell) {
  return find_first(cell.judgements, [&](const Judgement& metric) {
    return metric.metric.base == (cell.device == "cpu" ? "cpu_ops" : "dispatches") &&
           metric.metric.scope == kernels.scope && metric.metric.length == kernels.length;
  });
}

// The ops of the engine's graph if they are for the same unit of work as `kernels`; else null.
const Numbers* ops_of_same_scope(const std::optional<KernelSet>& ops, const KernelSet& kernels) {
  return ops && ops->scope == kernels.scope ? &ops->counts : nullptr;
}

// Judges the cell's changed `kernels` by the total of dispatches or ops that they belong to. If
// the total changed, its verdict decides, unless other kernels now do the same work.
Ruling judge_changed_kernels(const Comparison& comparison, const KernelSet& current,
                             const CellVerdict& cell, std::span<const Changed> kernels) {
  if (only_renamed(kernels)) return {Outcome::pass, "the same kernels by other names"};
  if (comparison.is_other_device()) return {Outcome::fail, "other kernels"};
  const Judgement* total = find_total(current, cell);
  if (total == nullptr) {
    // No probe sees the device, so the sum of the kernels takes the place of a total.
    const auto base_sum = comparison.base->kernels->sum(), sum = current.sum();
    if (base_sum && sum && *sum < *base_sum && has_no_moved_ops(comparison)) {
      const std::string dropped = describe_dropped_ops(comparison);
      return {Outcome::improved,
              fmt::format("{} to {} in all{}", base_sum->str(), sum->str(),
                          dropped.empty() ? ", with all work where it was" : ": " + dropped)};
    }
  }
  if (total == nullptr || !total->current) return {Outcome::fail, "other kernels than before"};
  if (!total->baseline || *total->baseline == *total->current) {
    return {Outcome::fail,
            fmt::format("{} {}", unit::show(total->metric, *total->current),
                        cell.device == "cpu" ? "ops as before, but others"
                                             : "dispatches as before, by other kernels")};
  }
  const Ruling with_total{total->verdict, fmt::format("the kernels changed with {}",
                                                      unit::display_name(total->metric))};
  if (cell.device == "cpu") return with_total;  // on the CPU kernels are the ops themselves
  const bool fell = *total->current < *total->baseline;
  const KernelPaths paths =
      find_kernel_paths(kernels, ops_of_same_scope(comparison.base->graph_ops, current),
                        ops_of_same_scope(comparison.candidate.graph_ops, current), fell);
  if (!paths.replaced.empty()) {
    std::vector<std::string> replaced_works;
    for (const auto& [work, times] : paths.replaced) {
      replaced_works.push_back(fmt::format("{} {} times", work, times.str()));
    }
    return {Outcome::fail, "the same work by other kernels: " + text::join(replaced_works)};
  }
  if (!paths.unexplained.empty()) {
    return {Outcome::fail,
            fmt::format("{} fell, and the engine's graph does not explain {}",
                        unit::display_name(total->metric), text::join(paths.unexplained))};
  }
  return with_total;
}

// Compares the kernels of both sides; `changed` gets those that differ. `gated`: kernels that are
// not compared are worth a note.
Ruling compare_kernels(const Comparison& comparison, bool gated, CellVerdict& cell,
                       std::vector<Changed>& changed) {
  const Ruling nothing{Outcome::info};
  const auto& current = comparison.candidate.kernels;
  const bool named = current && current->has_names;  // hashes of code only explain
  if (comparison.base == nullptr) {
    return named ? Ruling{Outcome::new_, comparison.baseline_choice.reason} : nothing;
  }
  const auto& stored = comparison.base->kernels;
  if (!stored)
    return named ? comparison.ruling_without_base(/*exact=*/false, "the baseline holds no kernels")
                 : nothing;
  if (!current) {
    const bool counted =
        comparison.candidate.errors.empty() && comparison.candidate.counted_runs > 0;
    if (!stored->has_names || !counted) return nothing;
    return {Outcome::error, "could not be measured: the baseline holds kernels, this run none"};
  }
  if (stored->runs_disagree || current->runs_disagree) {
    if (!named) return nothing;
    if (same_counting_scope(*stored, *current))
      changed = differences(stored->counts, current->counts);
    if (varies_only_now(comparison, *stored, *current)) {
      return {outcome_of_new_variation(comparison),
              "the same kernels in all runs of one length before, now they vary from run to run"};
    }
    std::string reason = fmt::format(
        "the kernels of {} were not the same in all runs of one length: they are not compared",
        stored->runs_disagree ? "the baseline" : "this run");
    if (gated) cell.notes.push_back(reason);
    return {Outcome::info, std::move(reason)};
  }
  if (stored->has_names && !named) {
    return {Outcome::error,
            "cannot be compared: the program named its kernels before and does so no longer"};
  }
  if (!stored->has_names && named) return {Outcome::new_, "the baseline's kernels have no names"};
  if (!same_counting_scope(*stored, *current)) {
    if (!named) return nothing;
    if (stored->scope == unit::Scope::at_length || current->scope != unit::Scope::at_length) {
      return {Outcome::new_, "the baseline's kernels were counted over another length"};
    }
    return {Outcome::fail, "the kernels are no longer the same for every token or prefill"};
  }
  changed = differences(stored->counts, current->counts);
  if (!named) return nothing;
  if (changed.empty()) return {};
  std::vector<Changed> others = changed;
  std::vector<std::string> names;
  const Limit by_name = comparison.non_metric_limit("kernel_names");
  if (!by_name.exact || by_name.mode != Mode::gate) {
    std::set<std::string> renamed;
    for (const auto& [before, now] : find_renamed_kernels(comparison, changed)) {
      renamed.insert({before, now});
      names.push_back(fmt::format("{} is {} now", before, now));
    }
    std::erase_if(others, [&](const Changed& kernel) { return renamed.contains(kernel.name); });
  }
  if (others.empty()) return {Outcome::pass, "the same code by other names: " + list_some(names)};
  return judge_changed_kernels(comparison, *current, cell, others);
}

// Collects facts of the base's work that are others of the candidate's, as "WHAT CURRENT, before
// BASE".
struct WorkDifferences {
  bool misses_facts = false;  // a fact that the base alone states is a difference as well
  std::vector<std::string> parts{};

  template <class T>
  void add(std::string_view what, const std::optional<T>& base, const std::optional<T>& current) {
    if (current == base) return;
    add(what, base, current, [](const T& value) { return fmt::format("{}", value); });
  }
  // How many values of a metric were printed.
  void add_printed(const std::string& metric, std::int64_t base,
                   const std::optional<std::int64_t>& current) {
    if (current == base || (!current && !misses_facts)) return;
    const auto times = [](std::int64_t number) {
      return text::plural(static_cast<std::size_t>(number), "time");
    };
    parts.push_back(fmt::format("{} was printed {} by the base and {}", metric, times(base),
                                current ? times(*current) + " here" : "not here"));
  }
  void add_mean(std::string_view what, const std::optional<double>& base,
                const std::optional<double>& current) {
    if (base && current && profile::is_same_mean(*base, *current)) return;
    add(what, base, current, [](double value) { return fmt::format("{:.4g}", value); });
  }

 private:
  template <class T, class Show>
  void add(std::string_view what, const std::optional<T>& base, const std::optional<T>& current,
           const Show& show) {
    if (!base || (!current && !misses_facts)) return;
    parts.push_back(fmt::format("{} {}, before {}", what, current ? show(*current) : "not reported",
                                show(*base)));
  }
};

using Calls = Numbers;  // by metric name

constexpr std::size_t k_max_listed = 20;

std::string_view call_prefix(bool cpu) { return cpu ? "op_calls:" : "kernel_calls:"; }

// "MUL_MAT q8_0,f32->f32 256x64,256->64" is the op MUL_MAT: on the CPU kernels are ops.
std::string call_metric_name(const std::string& name, bool cpu) {
  return unit::work_name(call_prefix(cpu), cpu ? name.substr(0, name.find(' ')) : name);
}

// Returns the calls of each kernel, by metric name. Nothing if the program does not name its
// kernels, or they varied.
std::optional<Calls> sum_calls(const std::optional<KernelSet>& kernels, bool cpu) {
  if (!kernels || !kernels->has_names || kernels->runs_disagree) return std::nullopt;
  Calls calls;
  for (const auto& [name, count] : kernels->counts) {
    Rational& sum = calls[call_metric_name(name, cpu)];
    sum = sum.plus(count).value_or(sum);
  }
  return calls;
}

// Adds the metrics of `calls` that a pattern matches.
void add_named(const Calls& calls, const LimitTable& limits, const PatternSet& patterns,
               std::set<std::string>& names) {
  for (const auto& [name, count] : calls) {
    // A kernel without a name, in a file from outside, is no metric.
    if (intersects(limits.matching(name), patterns) && unit::find_metric(name)) names.insert(name);
  }
}

// The calls of one kernel. If the side names its kernels and this is not among them, it ran 0
// times.
Measurement exact_calls(const std::string& name, const Calls& calls) {
  const Rational count = look_up(calls, name, Rational(0));
  return profile::exact_measurement(*unit::find_metric(name), "kernels", count);
}

}  // namespace

// Returns the patterns of metric names in the limits that fit this cell, as indices into
// limits.patterns(), if they begin with one of `prefixes`.
WantedPatterns patterns_starting_with(const Comparison& comparison,
                                      std::span<const std::string> prefixes) {
  const LimitTable& limits = comparison.limits;
  WantedPatterns wanted{{}, limits.no_patterns()};
  PatternSet seen = limits.no_patterns();
  for (std::size_t entry = 0; entry < limits.entries().size(); ++entry) {
    if (!contains(comparison.fitting_limits, entry)) continue;
    for (const std::size_t pattern : limits.patterns_of(entry)) {
      if (contains(seen, pattern)) continue;
      insert(seen, pattern);
      const bool has_prefix = std::ranges::any_of(prefixes, [&](const std::string& prefix) {
        return limits.patterns()[pattern].starts_with(prefix);
      });
      if (!has_prefix) continue;
      wanted.places.push_back(pattern);
      insert(wanted.set, pattern);
    }
  }
  return wanted;
}

std::vector<Changed> differences(const Numbers& base, const Numbers& current) {
  std::map<std::string, Changed> all;
  for (const auto& [name, count] : base) all[name].baseline = count;
  for (const auto& [name, count] : current) all[name].current = count;
  std::vector<Changed> changed;
  for (auto& [name, change] : all) {
    change.name = name;
    if (change.baseline != change.current) changed.push_back(std::move(change));
  }
  return changed;
}

bool same_counting_scope(const KernelSet& a, const KernelSet& b) {
  return a.scope == b.scope && a.length == b.length;
}

bool varies_only_now(const Comparison& comparison, const KernelSet& base, const KernelSet& now) {
  return now.runs_disagree && !base.runs_disagree && !comparison.candidate.requests;
}

Outcome outcome_of_new_variation(const Comparison& comparison) {
  return comparison.baseline_choice.processes > 0 ? Outcome::inconclusive : Outcome::fail;
}

// Judges how often each kernel is called, all kernels together. Without an exact limit the
// judgement only carries the changes, which help to explain other verdicts.
Judgement judge_kernels(const Comparison& comparison, CellVerdict& cell) {
  Judgement judgement(k_kernels, comparison.non_metric_limit(k_kernels));
  const Limit& limit = judgement.limit;
  Ruling ruling = compare_kernels(comparison, limit.exact, cell, judgement.changed);
  if (ruling.verdict == Outcome::fail || ruling.verdict == Outcome::error) {
    make_new_if_other_device(comparison, limit.exact, ruling);
  }
  if (!limit.exact) return judgement;  // the changes stay as an explanation
  apply_limit_mode(limit, ruling);
  judgement.set_ruling(std::move(ruling));
  return judgement;
}

// Adds the system calls that are made more or less often, if a metric of the host (the CPU side)
// failed or improved. A rate has to change by half a call per unit of work. One that is no whole
// number varies with scheduling, so it has to change by a quarter as well.
static void list_changed_calls(const std::vector<Changed>& changed, CellVerdict& cell) {
  constexpr double k_min_change = 0.5, k_min_share = 0.25;
  const bool host_changed = std::ranges::any_of(cell.judgements, [](const Judgement& metric) {
    const bool is_of_host = metric.source == "host" || metric.metric.kind == unit::Kind::usage;
    return is_of_host && (metric.verdict == Outcome::fail || metric.verdict == Outcome::improved);
  });
  if (!host_changed) return;
  for (const Changed& call : changed) {
    const double before = call.baseline ? call.baseline->value() : 0;
    const double now = call.current ? call.current->value() : 0;
    const bool is_integer = (!call.baseline || call.baseline->is_integer()) &&
                            (!call.current || call.current->is_integer());
    const double min_change =
        is_integer ? k_min_change : std::max(k_min_change, k_min_share * before);
    if (std::fabs(now - before) >= min_change) cell.functions.push_back(call);
  }
}

// Returns true if a limit on the calls of Python is broken or met by less.
static bool has_host_work_changed(const CellVerdict& cell) {
  return std::ranges::any_of(cell.judgements, [](const Judgement& metric) {
    return metric.source == profile::k_python &&
           (metric.verdict == Outcome::fail || metric.verdict == Outcome::improved);
  });
}

// Adds the 60 most telling Python functions that are called, or run lines, more or less often.
// Costly functions come first, then new ones, then the largest changes.
static void list_changed_host_work(std::vector<Changed> changed, CellVerdict& cell) {
  constexpr std::size_t k_max_functions = 60;
  if (!has_host_work_changed(cell)) return;
  std::ranges::stable_sort(changed, std::greater(), [](const Changed& item) {
    const double before = item.baseline ? item.baseline->value() : 0;
    const double now = item.current ? item.current->value() : 0;
    const bool is_costly = item.name.starts_with(profile::k_host_wait) ||
                           profile::rank_costly_call(profile::function_of(item.name)).has_value();
    return std::tuple(is_costly, before == 0, std::fabs(now - before));
  });
  if (changed.size() > k_max_functions) changed.resize(k_max_functions);
  std::ranges::move(changed, std::back_inserter(cell.functions));
}

// Adds the functions behind a change: read-backs and differences of ranks, system calls, Python
// functions. Compiled functions follow if the total of instructions was judged as changed.
void list_changed_functions(const Comparison& comparison, CellVerdict& cell) {
  // A function that moved by a smaller share of the total says nothing about why the total moved.
  constexpr double k_least_share = 0.001;
  constexpr std::size_t k_max_functions = 40;
  const Baseline* base = comparison.base;
  const auto& now = comparison.candidate.functions;
  if (base == nullptr || !base->functions || !now || base->functions->scope != now->scope) return;
  std::vector<Changed> changed = differences(base->functions->counts, now->counts);
  const auto is_named = std::ranges::stable_partition(changed, [](const Changed& item) {
    return !item.name.starts_with(profile::k_read_back) &&
           !item.name.starts_with(profile::k_rank_difference);
  });
  std::ranges::copy(is_named, std::back_inserter(cell.functions));
  changed.erase(is_named.begin(), is_named.end());
  const auto calls = std::ranges::stable_partition(
      changed, [](const Changed& item) { return !item.name.starts_with(profile::k_system_call); });
  list_changed_calls({calls.begin(), calls.end()}, cell);
  changed.erase(calls.begin(), calls.end());
  const auto host_work = std::ranges::stable_partition(changed, [](const Changed& item) {
    return !item.name.starts_with(profile::k_host_call) &&
           !item.name.starts_with(profile::k_thread_call) &&
           !item.name.starts_with(profile::k_host_wait) &&
           !item.name.starts_with(profile::k_host_lines);
  });
  list_changed_host_work({host_work.begin(), host_work.end()}, cell);
  changed.erase(host_work.begin(), host_work.end());
  const Judgement* total = find_first(cell.judgements, [&](const Judgement& metric) {
    return metric.metric.base == "instructions" && metric.metric.scope == now->scope;
  });
  if (total == nullptr || !total->baseline || !total->current) return;
  if (total->verdict != Outcome::fail && total->verdict != Outcome::improved) return;
  // Relative to the larger total: a function that is small on one side may be left out there.
  const double least =
      k_least_share * std::max(std::fabs(*total->baseline), std::fabs(*total->current));
  for (Changed& function : changed) {
    const double from = function.baseline ? function.baseline->value() : 0;
    const double to = function.current ? function.current->value() : 0;
    // A function that is missing on one side may have been just too small there to be listed.
    const double enough = function.baseline && function.current ? least : 2 * least;
    if (std::fabs(to - from) >= enough) cell.functions.push_back(std::move(function));
    if (cell.functions.size() == k_max_functions) return;
  }
}

// Returns a ruling on where the candidate's work ran, without a baseline.
static Ruling judge_state(const Placement& placement) {
  using State = Placement::State;
  if (placement.state == State::unknown) return {Outcome::info, placement.reason};
  if (placement.state != State::ran_elsewhere) return {Outcome::pass, placement.reason};
  if (placement.reason.empty()) return {Outcome::fail, "the work ran elsewhere than asked"};
  return {Outcome::fail, placement.reason};
}

// Returns true if the ops that ran elsewhere are known: a pass that saw single ops lists them, or
// says that it saw all ops.
static bool lists_ops_elsewhere(const Placement& placement) {
  return placement.state == Placement::State::shown || !placement.ops_elsewhere().empty();
}

// Returns "moved to the CPU: ADD; moved to another device: ROPE on blas"; "" if no op ran more
// often off the requested device than in the base.
static std::string describe_moved_ops(const Comparison& comparison,
                                      std::span<const Changed> changed) {
  const Placement& placement = comparison.candidate.placement;
  std::vector<std::string> to_cpu, to_others, parts;
  for (const Changed& op : changed) {
    if (op.current.value_or(Rational(0)) <= op.baseline.value_or(Rational(0))) continue;
    auto& destination = placement.other_ops.contains(op.name) ? to_others : to_cpu;
    destination.push_back(op.name);
  }
  const std::string_view verb = comparison.is_other_device() ? "more often on" : "moved to";
  const std::string_view here = comparison.is_other_device() ? " here" : "";
  const auto add = [&](std::string_view place, const std::vector<std::string>& ops) {
    if (ops.empty()) return;
    parts.push_back(fmt::format("{} {}{}: {}", verb, place, here, text::join(ops)));
  };
  add("the CPU", to_cpu);
  add("another device", to_others);
  return text::join(parts, "; ");
}

// Judges placement: if ops ran on the requested device, and if any moved elsewhere since the
// baseline. Without an exact limit the judgement only carries the changes.
Judgement judge_placement(const Comparison& comparison, CellVerdict& cell) {
  Judgement judgement(k_placement, comparison.non_metric_limit(k_placement));
  const Placement& placement = comparison.candidate.placement;
  Ruling ruling = judge_state(placement);
  const Baseline* base = comparison.base;
  if (base != nullptr && lists_ops_elsewhere(base->placement) && lists_ops_elsewhere(placement)) {
    judgement.changed = differences(exact_counts(base->placement.ops_elsewhere()),
                                    exact_counts(placement.ops_elsewhere()));
    const std::string moved = describe_moved_ops(comparison, judgement.changed);
    // A refuted placement already has a reason that says more.
    if (!moved.empty() && ruling.verdict == Outcome::pass) {
      ruling = {Outcome::fail, moved};
      make_new_if_other_device(comparison, judgement.limit.exact, ruling);
    }
  }
  cell.ran_elsewhere = placement.state == Placement::State::ran_elsewhere;
  cell.not_allowed = placement.not_allowed;
  if (!judgement.limit.exact) return judgement;
  apply_limit_mode(judgement.limit, ruling);
  judgement.set_ruling(std::move(ruling));
  return judgement;
}

// Returns true if both sides report which tokens were likely: these judge the output then, not its
// digest.
static bool are_judged_by_likely_tokens(const profile::WorkDone& base,
                                        const profile::WorkDone& candidate) {
  return profile::divergence(base.likely, candidate.likely).has_value();
}

// Adds what differs between the work of two runs: tokens, model, load, and the output where it can
// be compared.
static void add_differences(const profile::WorkDone& before, const profile::WorkDone& now,
                            bool is_output_comparable, WorkDifferences& differences) {
  differences.add("tokens generated:", before.generated_tokens, now.generated_tokens);
  differences.add("prompt tokens:", before.prompt_tokens, now.prompt_tokens);
  differences.add("model:", before.model, now.model);
  differences.add("load:", before.load, now.load);
  differences.add_mean("prompt tokens a request:", before.prompt_tokens_per_request,
                       now.prompt_tokens_per_request);
  differences.add_mean("tokens generated a request:", before.generated_tokens_per_request,
                       now.generated_tokens_per_request);
  if (is_output_comparable && !are_judged_by_likely_tokens(before, now))
    differences.add("output digest:", before.output_digest, now.output_digest);
}

// Returns true if a limit can fail by the metric, and what a process prints of it is its value: a
// probe's count replaces the engine's.
static bool is_gated_as_printed(const Comparison& comparison, const std::string& name) {
  const Measurement* measured = look_up(comparison.candidate.metrics, name);
  if (measured == nullptr || profile::counts_from_outside(measured->source)) return false;
  const Limit limit = comparison.start_judgement(*measured).limit;
  return limit.is_set() && limit.mode == Mode::gate;
}

// Adds gated metrics of which a process of the candidate printed another number of values: what
// they add up to, and the best of them, would be its own choice. Adds those that it printed in
// another form than the base as well: in another unit, or beside more numbers.
static void add_printed_values(const Comparison& comparison, const profile::WorkDone& before,
                               const profile::WorkDone& now, WorkDifferences& differences) {
  for (const auto& [name, count] : before.printed_values) {
    const std::string metric = profile::printed_metric(name);
    if (!is_gated_as_printed(comparison, metric)) continue;
    const std::int64_t* current = look_up(now.printed_values, name);
    if (metric != name) {
      if (current == nullptr) differences.parts.push_back(name + ": printed by the base only");
      continue;
    }
    differences.add_printed(name, count, current ? std::optional(*current) : std::nullopt);
  }
  for (const auto& [name, count] : now.printed_values) {
    const std::string metric = profile::printed_metric(name);
    const unit::Metric* own = nullptr;
    if (const Measurement* measured = look_up(comparison.candidate.metrics, metric))
      own = &measured->metric;
    // A unit that is converted may be missing in the base.
    const bool is_own_unit =
        own != nullptr &&
        name == profile::printed_form(metric, std::string(unit::to_string(own->unit)));
    if (metric == name || is_own_unit || before.printed_values.contains(name) ||
        !is_gated_as_printed(comparison, metric))
      continue;
    differences.parts.push_back(name + ": not printed by the base");
  }
}

// The ops of a side's graph for one unit of work, wherever they ran.
struct GraphOps {
  unit::Scope scope = unit::Scope::per_token;
  Numbers counts;
};

// Returns how often each op of a side's graph ran; nothing if that is not known. `side`: a profile
// or baseline, with its `counts`. On the CPU the kernels are the ops, unless dispatches are
// counted.
static std::optional<GraphOps> find_graph_ops(const auto& side, bool is_on_cpu,
                                              const std::map<std::string, Measurement>& counts) {
  const bool has_dispatches = std::ranges::any_of(
      counts, [](const auto& count) { return count.second.metric.base == "dispatches"; });
  const bool are_kernels = is_on_cpu && !has_dispatches;
  const std::optional<KernelSet>& set = are_kernels ? side.kernels : side.graph_ops;
  if (!set || set->runs_disagree || set->scope == unit::Scope::at_length) return std::nullopt;
  GraphOps ops{set->scope, {}};
  const auto add = [&](const std::string& name, const Rational& times) {
    Rational& sum = ops.counts[name];
    sum = sum.plus(times).value_or(sum);
  };
  // A kernel of the CPU is an op with its types and shapes.
  for (const auto& [name, times] : set->counts) add(name.substr(0, name.find(' ')), times);
  for (const auto& [name, times] : side.placement.cpu_ops) add(name, Rational(times));
  return ops;
}

// Returns which ops run less often than in the base, "ADD ran 4 → 2 times a token, …"; "" if there
// are none. Outputs on both sides would show equal work, so then it is "" too.
std::string describe_dropped_ops(const Comparison& comparison) {
  const Profile& candidate = comparison.candidate;
  if (comparison.base == nullptr) return "";
  const profile::WorkDone &before_work = comparison.base->work, &work = candidate.work;
  if ((before_work.output_digest && work.output_digest) ||
      are_judged_by_likely_tokens(before_work, work))
    return "";
  const bool is_on_cpu = candidate.device == "cpu";
  const auto before = find_graph_ops(*comparison.base, is_on_cpu, comparison.base->counts);
  const auto now = find_graph_ops(candidate, is_on_cpu, candidate.metrics);
  if (!before || !now || before->scope != now->scope) return "";
  std::vector<std::string> dropped;
  for (const Changed& op : differences(before->counts, now->counts)) {
    const Rational before_times = op.baseline.value_or(Rational(0)),
                   now_times = op.current.value_or(Rational(0));
    if (now_times < before_times)
      dropped.push_back(
          fmt::format("{} ran {} → {} times", op.name, before_times.str(), now_times.str()));
  }
  if (dropped.empty()) return "";
  return fmt::format(
      "{} a {}, and the engine reports no output: that both sides did the same work is not checked",
      list_some(dropped), now->scope == unit::Scope::per_prefill ? "prefill" : "token");
}

// Returns how the work of the two sides differs, in counted runs or in pairs; nothing if it does
// not. Times and counts of different work are not compared.
std::optional<std::string> work_difference(const Comparison& comparison) {
  const Profile& candidate = comparison.candidate;
  WorkDifferences differences;
  if (const Baseline* base = comparison.base) {
    // Counted and timed runs may state different facts, so none is missed of the other pass.
    const bool is_counted = candidate.counted_runs > 0, has_counts = !base->counts.empty();
    const bool has_runs = is_counted || candidate.timed_runs > 0;
    differences.misses_facts = has_runs && is_counted == has_counts;
    add_differences(base->work, candidate.work, !comparison.is_other_device(), differences);
    // A count that is not printed any more is missed as a count.
    differences.misses_facts = false;
    if (base->lengths == candidate.provenance.lengths)
      add_printed_values(comparison, base->work, candidate.work, differences);
  }
  if (comparison.pairs != nullptr && differences.parts.empty()) {
    differences.misses_facts = true;
    add_differences(comparison.pairs->base_work, comparison.pairs->candidate_work,
                    /*is_output_comparable=*/true, differences);
    add_printed_values(comparison, comparison.pairs->base_work, comparison.pairs->candidate_work,
                       differences);
  }
  if (differences.parts.empty()) return std::nullopt;
  return fmt::format("the two sides did not do the same work ({})",
                     text::join(differences.parts, "; "));
}

std::optional<std::string> output_difference(const Comparison& comparison) {
  const profile::WorkDone &before = comparison.base->work, &now = comparison.candidate.work;
  if (!comparison.is_other_device() && !are_judged_by_likely_tokens(before, now))
    return std::nullopt;
  WorkDifferences differences;
  differences.add("output digest:", before.output_digest, now.output_digest);
  if (differences.parts.empty()) return std::nullopt;
  return differences.parts.front() + (comparison.is_other_device()
                                          ? ": another device class may round otherwise"
                                          : ": output_kl judges it");
}

// Judges how far the probabilities of likely tokens are from the base's. If the base has some and
// the candidate none, that is an error. Empty if no limit asks for it.
std::vector<Judgement> judge_likely_tokens(const Comparison& comparison) {
  const Profile& candidate = comparison.candidate;
  const profile::Likely& likely = candidate.work.likely;
  const bool has_base = comparison.base != nullptr;
  const auto divergence =
      has_base ? profile::divergence(comparison.base->work.likely, likely) : std::nullopt;
  Measurement measurement;
  measurement.metric = *unit::find_metric(unit::k_divergence);
  measurement.nature = profile::Nature::nearly_exact;  // greedy, one request at a time
  measurement.source = "requests";
  if (divergence) measurement.samples = {*divergence};
  Judgement judgement = judge_count(comparison, measurement, std::nullopt);
  Ruling& ruling = judgement;
  if (likely.empty()) {
    // An output that was judged before must not pass in silence.
    const bool was_judged = has_base && !comparison.base->work.likely.empty();
    const bool ran = candidate.errors.empty() && candidate.counted_runs + candidate.timed_runs > 0;
    const bool has_limit = judgement.limit.is_set() && judgement.limit.mode != Mode::off;
    if (!was_judged || !ran || !has_limit) return {};
    ruling = {Outcome::error,
              "the server reported no probabilities of tokens: nothing judges its output"};
    apply_limit_mode(judgement.limit, ruling);
  } else if (!divergence && judgement.limit.is_set()) {
    ruling = comparison.ruling_without_base(
        /*exact=*/false, has_base ? "the baseline holds no likely tokens: accept it"
                                  : comparison.baseline_choice.reason);
  }
  return {judgement};
}

// Judges the calls of single kernels or ops that limits name. Patterns that cannot be judged go
// into `not_judged`.
std::vector<Judgement> judge_kernel_calls(const Comparison& comparison,
                                          std::vector<std::string>& not_judged) {
  const bool cpu = comparison.candidate.device == "cpu";
  const std::array prefixes{std::string(call_prefix(cpu))};
  const LimitTable& limits = comparison.limits;
  const WantedPatterns wanted = patterns_starting_with(comparison, prefixes);
  if (wanted.places.empty()) return {};
  const auto& kernels = comparison.candidate.kernels;
  const auto current = sum_calls(kernels, cpu);
  if (!current) {
    // Calls that the engine's own profile counted are judged as any count.
    PatternSet reported = limits.no_patterns();
    for (const auto& [name, metric] : comparison.candidate.metrics) {
      insert_all(reported, limits.matching(name));
    }
    std::vector<std::string> patterns;
    for (const std::size_t place : wanted.places) {
      if (!contains(reported, place)) patterns.emplace_back(limits.patterns()[place]);
    }
    if (patterns.empty()) return {};
    // A pass that ended in an error has said so already.
    if (comparison.candidate.errors.empty() && comparison.candidate.counted_runs > 0) {
      not_judged.push_back(
          fmt::format("{}: not judged, no probe named {} here, or they varied from run to run",
                      list_some(patterns, k_max_listed), cpu ? "ops" : "kernels"));
    }
    return {};
  }
  const bool comparable = comparison.base != nullptr && comparison.base->kernels &&
                          same_counting_scope(*comparison.base->kernels, *kernels);
  const auto before = comparable ? sum_calls(comparison.base->kernels, cpu) : std::nullopt;
  std::set<std::string> names;
  add_named(*current, limits, wanted.set, names);
  if (before) add_named(*before, limits, wanted.set, names);
  for (const std::size_t place : wanted.places) {
    const std::string_view pattern = limits.patterns()[place];
    const bool names_one_kernel = pattern.find('*') == std::string_view::npos;
    if (names_one_kernel && unit::find_metric(pattern)) names.emplace(pattern);
  }
  std::vector<Judgement> judgements;
  for (const std::string& name : names) {
    const auto base_calls = before ? std::optional(exact_calls(name, *before)) : std::nullopt;
    judgements.push_back(judge_count(comparison, exact_calls(name, *current), base_calls));
  }
  return judgements;
}

namespace {

// A cell of a gate, ready to be asked by many entries.
struct MeasuredCell {
  EntrySet fitting;
  PatternSet matching;  // the patterns that some metric of it has
  bool is_unmeasured = false, has_counts = false, has_times = false;

  MeasuredCell(const CellVerdict& cell, const LimitTable& limits)
      : fitting(limits.fitting(cell.cell)),
        matching(limits.no_patterns()),
        is_unmeasured(cell.verdict == Outcome::error || cell.verdict == Outcome::skipped) {
    for (const Judgement& metric : cell.metrics()) {
      if (metric.metric.kind == unit::Kind::count) {
        has_counts = true;
      } else {
        has_times = true;
      }
      insert_all(matching, limits.matching(metric.metric.name));
    }
  }
};

}  // namespace

// Warns of each limit on an op or kernel that no measured cell has. A cell that failed or was
// skipped might have had it, so its limits give no warning.
std::vector<std::string> limits_on_nothing(std::span<const CellVerdict> verdicts,
                                           const LimitTable& limits, const Policy& policy) {
  std::vector<MeasuredCell> cells;
  for (const CellVerdict& verdict : verdicts) cells.emplace_back(verdict, limits);
  std::vector<std::string> lines;
  for (std::size_t entry = 0; entry < limits.entries().size(); ++entry) {
    for (const std::size_t pattern_index : limits.patterns_of(entry)) {
      const std::string_view pattern = limits.patterns()[pattern_index];
      if (!unit::is_op_or_kernel_metric(pattern)) continue;
      const bool is_time = pattern.starts_with("op:") || pattern.starts_with("kernel:") ||
                           pattern.starts_with("buffer:");
      if (is_time && policy.counts_only) continue;
      bool is_unknown = false, any_metric = false, is_measured = false;
      for (const MeasuredCell& cell : cells) {
        if (!contains(cell.fitting, entry)) continue;
        const bool has_such_metric = is_time ? cell.has_times : cell.has_counts;
        is_unknown = is_unknown || cell.is_unmeasured;
        any_metric = any_metric || has_such_metric;
        is_measured = is_measured || contains(cell.matching, pattern_index);
      }
      if (is_unknown || is_measured || !any_metric) continue;
      lines.push_back(fmt::format("\"{}\": nothing by that name was measured ({})", pattern,
                                  limits.entries()[entry].source));
    }
  }
  return lines;
}

}  // namespace weir::verdict
