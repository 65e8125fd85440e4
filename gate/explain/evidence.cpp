// Turns profiles and verdicts into evidence.
#include "gate/explain/evidence.hpp"

#include <cmath>

#include "gate/base/find.hpp"
#include "gate/base/text.hpp"
#include "gate/observed/totals.hpp"
#include "gate/stats/quantile.hpp"
#include "gate/unit/kernel_cost.hpp"
#include "gate/verdict/removed.hpp"

namespace weir::explain {
namespace {

Work make_work(Work::Kind kind, const std::string& name, bool on_cpu, const Rational& times) {
  return {kind, name, {}, {}, {}, on_cpu, times, {}};
}

// Reads the metrics of a profile, and its kernels, ops and command buffers as works: what runs
// some times per token.
Side read_side(const profile::Profile& profile) {
  Side side;
  for (const auto& [name, measurement] : profile.metrics) {
    // Sums of costs over kernels are left out: other kernels or other code explain those.
    const auto label = unit::buffer_label(name);
    if (label && measurement.exact) {
      side.works.push_back(make_work(Work::Kind::buffers, std::string(*label), /*on_cpu=*/false,
                                     *measurement.exact));
    } else if (measurement.value() && !unit::is_summed_cost(measurement.metric.base)) {
      side.metrics[name] = {measurement.exact, measurement.samples};
    }
  }
  const bool is_cpu = profile.device == "cpu";
  if (profile.kernels && !profile.kernels->runs_disagree) {
    for (const auto& [name, count] : profile.kernels->counts) {
      side.works.push_back(
          make_work(is_cpu ? Work::Kind::op : Work::Kind::kernel, name, is_cpu, count));
    }
  }
  if (is_cpu) return side;
  for (const auto& [op, count] : profile.placement.cpu_ops) {
    side.works.push_back(make_work(Work::Kind::op, op, /*on_cpu=*/true, count));
  }
  return side;
}

// Scopes of counts, the preferred first.
constexpr std::array k_scopes = {unit::Scope::per_request, unit::Scope::per_token,
                                 unit::Scope::per_prefill, unit::Scope::at_zero_context,
                                 unit::Scope::at_length};

// Returns the first of k_scopes that is among `scopes`; nothing if none is.
std::optional<unit::Scope> main_scope(const std::vector<unit::Scope>& scopes) {
  const auto* match = find_first(k_scopes, [&](unit::Scope scope) { return holds(scopes, scope); });
  return match == nullptr ? std::nullopt : std::optional(*match);
}

// Returns the scope (per token, per prefill) of the counts that both sides have; that of the first
// one if no scope is preferred. Nothing without counts.
std::optional<unit::Scope> find_scope(const profile::Profile& profile) {
  std::vector<unit::Scope> scopes;
  for (const auto& [name, measurement] : profile.metrics) {
    if (measurement.metric.kind == unit::Kind::count) scopes.push_back(measurement.metric.scope);
  }
  return main_scope(scopes);
}

// Returns the scope (per token, per prefill) of the counts that both sides have; that of the first
// one if no scope is preferred. Nothing without counts.
std::optional<unit::Scope> find_scope(const Evidence& evidence,
                                      std::span<const verdict::Judgement> metrics) {
  const Side& side = evidence.before.metrics.empty() ? evidence.after : evidence.before;
  std::vector<unit::Scope> scopes;
  for (const verdict::Judgement& judgement : metrics) {
    const unit::Metric& metric = judgement.metric;
    if (metric.kind != unit::Kind::count || metric.scope == unit::Scope::fixed) continue;
    if (side.metrics.contains(metric.name)) scopes.push_back(metric.scope);
  }
  if (scopes.empty()) return std::nullopt;
  return main_scope(scopes).value_or(scopes.front());
}

using Length = std::optional<std::int64_t>;

// Returns the greater of `length` and the metric's length, if it is a count at a length.
Length longer(const Length& length, const unit::Metric& metric) {
  if (metric.kind != unit::Kind::count || metric.scope != unit::Scope::at_length) return length;
  return std::max(length, metric.length);  // no length compares less than any
}

// Returns the length that kernels were counted over, else the longest that both sides have.
Length find_length(const profile::Profile& before, const profile::Profile& after) {
  Length longest_length;
  for (const auto& [name, measurement] : after.metrics) {
    if (before.metrics.contains(name)) longest_length = longer(longest_length, measurement.metric);
  }
  const bool same_kernel_length = after.kernels && after.kernels->scope == unit::Scope::at_length &&
                                  before.kernels && before.kernels->length == after.kernels->length;
  return same_kernel_length && after.kernels->length ? after.kernels->length : longest_length;
}

// Returns true if the profile lists all ops that ran on the CPU.
bool reports_cpu_ops(const profile::Profile& profile) {
  return profile.placement.state == profile::Placement::State::shown ||
         !profile.placement.cpu_ops.empty();
}

// Returns true if both kernel sets count the same thing.
bool comparable(const std::optional<profile::KernelSet>& a,
                const std::optional<profile::KernelSet>& b) {
  return a && b && !a->runs_disagree && !b->runs_disagree && a->has_names == b->has_names &&
         a->scope == b->scope && a->length == b->length;
}

// Returns true if ops of the device have to stand for kernels: these have no names, and the ops
// differ.
bool ops_replace_kernels(const profile::Profile& before, const profile::Profile& after) {
  return before.kernels && after.kernels && !before.kernels->has_names &&
         !after.kernels->has_names && comparable(before.graph_ops, after.graph_ops) &&
         before.graph_ops->counts != after.graph_ops->counts;
}

void add_ops(const profile::KernelSet& ops, Side& side) {
  for (const auto& [op, count] : ops.counts) {
    side.works.push_back(make_work(Work::Kind::op, op, /*on_cpu=*/false, count));
  }
}

// Adds what changed among functions: system calls, reads of few bytes, calls and lines of Python.
void add_functions(const std::vector<verdict::Changed>& changed, Evidence& evidence) {
  for (const verdict::Changed& entry : changed) {
    if (entry.name.starts_with(profile::k_system_call)) evidence.calls.push_back(entry);
    if (entry.name.starts_with(profile::k_read_back)) evidence.read_backs.push_back(entry);
    constexpr std::string_view k_calls[] = {profile::k_host_call, profile::k_thread_call,
                                            profile::k_host_wait};
    if (std::ranges::any_of(k_calls, [&](auto kind) { return entry.name.starts_with(kind); }))
      evidence.host_calls.push_back(entry);
    if (entry.name.starts_with(profile::k_host_lines)) evidence.host_lines.push_back(entry);
  }
}

void drop_works(Evidence& evidence, Work::Kind kind, bool on_cpu) {
  for (Side* side : {&evidence.before, &evidence.after}) {
    std::erase_if(side->works,
                  [&](const Work& work) { return work.kind == kind && work.on_cpu == on_cpu; });
  }
}

// Returns a metric's value from a number in a verdict: exact if it is a whole number or has an
// exact text, else a sample; empty without a number.
MetricValue make_value(const std::optional<double>& value, const std::optional<std::string>& text,
                       profile::Nature nature) {
  constexpr double k_max_exact_double =
      9007199254740992;  // 2^53: beyond it a double is no count any more
  MetricValue result;
  if (nature == profile::Nature::exact) {
    const bool is_whole =
        value && std::fabs(*value) <= k_max_exact_double && *value == std::trunc(*value);
    if (text) result.exact = Rational::parse(*text);
    if (!result.exact && is_whole) result.exact = Rational(static_cast<std::int64_t>(*value));
  }
  if (!result.exact && value) result.samples = {*value};
  return result;
}

// Adds works (kernels or ops) that changed to both sides, each with how often it ran there; a side
// that lacks one gets no entry.
void add_changed(const std::vector<verdict::Changed>& changed, Work::Kind kind, bool on_cpu,
                 Evidence& evidence) {
  std::vector<Work>&before = evidence.before.works, &after = evidence.after.works;
  for (const verdict::Changed& entry : changed) {
    if (entry.baseline) {
      before.push_back(make_work(kind, entry.name, on_cpu, *entry.baseline));
    }
    if (entry.current) {
      after.push_back(make_work(kind, entry.name, on_cpu, *entry.current));
    }
  }
}

// Returns true if the gate decided this metric: failed, improved or waived.
bool is_decided(const verdict::Judgement& metric) {
  using verdict::Outcome;
  return metric.verdict == Outcome::fail || metric.verdict == Outcome::improved ||
         metric.verdict == Outcome::waived;
}

// Returns true if the gate says that the metric changed. A limit on the value itself also fails
// metrics that did not change.
bool is_called_changed(const verdict::Judgement& metric) {
  return is_decided(metric) && (!metric.low || !metric.high || *metric.low > 0 || *metric.high < 0);
}

// Returns why the cell is not a pass, in one line: the cell's own reason, else that of placement,
// else of the first metric with the same verdict.
std::string find_reason(const verdict::CellVerdict& cell) {
  if (!cell.reason.empty()) return text::first_line(cell.reason);
  const auto gives_reason = [&](const verdict::Judgement& judgement) {
    return judgement.verdict == cell.verdict && !judgement.reason.empty();
  };
  // Placement goes first, because counts depend on where the work ran.
  const auto* source = &cell.judgement_of(verdict::k_placement);
  if (!gives_reason(*source)) source = find_first(cell.judgements, gives_reason);
  if (source == nullptr) return "";
  const std::string reason = text::first_line(source->reason);
  // No metric of a new cell has a baseline, so its name says nothing.
  const bool is_new_cell = cell.verdict == verdict::Outcome::new_;
  return is_new_cell ? reason : unit::display_name(source->metric) + ": " + reason;
}

// Copies what a gate decided about a cell: verdicts, reason, findings, and the metrics that it
// judged as changed.
CellRuling read_ruling(const verdict::CellVerdict& cell) {
  CellRuling result{cell.verdict,
                    cell.judgement_of(verdict::k_kernels).verdict,
                    cell.judgement_of(verdict::k_placement).verdict,
                    {},
                    {},
                    cell.findings,
                    cell.not_allowed,
                    text::first_line(cell.not_compared.value_or(""))};
  if (cell.verdict != verdict::Outcome::pass) result.reason = find_reason(cell);
  for (const verdict::Judgement& metric : cell.metrics()) {
    if (is_called_changed(metric)) {
      result.changed[metric.metric.name] = {metric.metric, metric.change};
    }
  }
  return result;
}

}  // namespace

double MetricValue::value() const {
  return exact ? exact->value() : stats::median(samples).value_or(0);
}

// Compares two profiles. Works (kernels and ops) are dropped unless both sides report them in the
// same way.
Evidence make_evidence(const profile::Profile& before, const profile::Profile& after) {
  Evidence evidence;
  evidence.cell = after.cell.str();
  evidence.device = after.device;
  evidence.scope = find_scope(after).value_or(find_scope(before).value_or(unit::Scope::per_token));
  evidence.length = find_length(before, after);
  evidence.fusible = find_fusible(after);
  for (const auto& [profile, side] : {std::pair(&before, "before"), std::pair(&after, "after")}) {
    std::ranges::move(profile::cross_checks(*profile, side), std::back_inserter(evidence.warnings));
  }
  evidence.before = read_side(before);
  evidence.after = read_side(after);
  const bool is_cpu = after.device == "cpu" && before.device == "cpu";
  const auto kind = is_cpu ? Work::Kind::op : Work::Kind::kernel;
  if (comparable(before.functions, after.functions)) {
    add_functions(verdict::differences(before.functions->counts, after.functions->counts),
                  evidence);
  }
  evidence.code =
      verdict::find_kernel_changes(verdict::collect_code(before), verdict::collect_code(after));
  const auto has_buffers = [](const Side& side) {
    return std::ranges::count(side.works, Work::Kind::buffers, &Work::kind) != 0;
  };
  if (!has_buffers(evidence.before) || !has_buffers(evidence.after)) {
    drop_works(evidence, Work::Kind::buffers, /*on_cpu=*/false);
  }
  evidence.kernels_known = comparable(before.kernels, after.kernels);
  // The device may have lost all its work, so works are compared only with kernels on both sides.
  if (!evidence.kernels_known) drop_works(evidence, kind, is_cpu);
  evidence.cpu_ops_known = !is_cpu && reports_cpu_ops(before) && reports_cpu_ops(after);
  if (!is_cpu && !evidence.cpu_ops_known) drop_works(evidence, Work::Kind::op, /*on_cpu=*/true);
  evidence.same_graph = evidence.cpu_ops_known && comparable(before.graph_ops, after.graph_ops) &&
                        before.graph_ops->counts == after.graph_ops->counts &&
                        before.placement.cpu_ops == after.placement.cpu_ops;
  if (evidence.cpu_ops_known && ops_replace_kernels(before, after)) {
    drop_works(evidence, kind, is_cpu);
    add_ops(*before.graph_ops, evidence.before);
    add_ops(*after.graph_ops, evidence.after);
    evidence.kernels_known = false;
    evidence.graph_known = true;
  }
  return evidence;
}

namespace {

// Marks evidence of one profile, which stands on both sides. Doubts are listed once, without a
// side.
Evidence make_alone(Evidence evidence) {
  evidence.is_alone = true;
  std::erase_if(evidence.warnings,
                [](const auto& warning) { return warning.starts_with("before: "); });
  for (std::string& warning : evidence.warnings) {
    for (const std::string_view side : {"after: ", "both sides: "}) {
      if (warning.starts_with(side)) warning.erase(0, side.size());
    }
  }
  return evidence;
}

}  // namespace

Evidence make_evidence(const profile::Profile& profile) {
  return make_alone(make_evidence(profile, profile));
}

Evidence make_evidence(const observed::Observed& observed) {
  return make_alone(make_evidence(observed, observed));
}

// Reads both sides from a verdict, which holds metrics as they were judged and works only if they
// changed.
Evidence make_evidence(const verdict::CellVerdict& cell) {
  Evidence evidence;
  evidence.cell = cell.cell.str();
  evidence.device = cell.device;
  evidence.gate = read_ruling(cell);
  for (const verdict::Judgement& metric : cell.metrics()) {
    const bool judged = is_decided(metric) || metric.nature == profile::Nature::exact;
    if (metric.current && !judged && metric.metric.kind == unit::Kind::count) {
      evidence.varying_counts[metric.metric.name] = *metric.current;
    }
    if (!metric.current || !judged) continue;
    if (metric.metric.name == verdict::k_cell_metric) {
      continue;
    }  // the cell was removed: no work to explain
    const std::string& name = metric.metric.name;
    const MetricValue before = make_value(metric.baseline, metric.baseline_text, metric.nature);
    const MetricValue after = make_value(metric.current, metric.current_text, metric.nature);
    if (const auto label = unit::buffer_label(name)) {
      if (!before.exact || !after.exact) continue;
      const verdict::Changed buffers{std::string(*label), before.exact, after.exact};
      add_changed({buffers}, Work::Kind::buffers, /*on_cpu=*/false, evidence);
      continue;
    }
    // Changed kernels follow below, under their own names.
    if (unit::is_op_or_kernel_metric(name) && metric.metric.kind == unit::Kind::count) continue;
    if (unit::is_summed_cost(metric.metric.base)) continue;
    if (metric.baseline) evidence.before.metrics[name] = before;
    evidence.after.metrics[name] = after;
    evidence.length = longer(evidence.length, metric.metric);
  }
  evidence.scope = find_scope(evidence, cell.metrics()).value_or(evidence.scope);
  const bool cpu = cell.device == "cpu";
  const auto& kernels = cell.judgement_of(verdict::k_kernels).changed;
  const auto& cpu_ops = cell.judgement_of(verdict::k_placement).changed;
  // A hostile profile may have 200 000 of them: growing would need half as much again.
  for (std::vector<Work>* works : {&evidence.before.works, &evidence.after.works}) {
    works->reserve(works->size() + kernels.size() + cpu_ops.size());
  }
  add_changed(kernels, cpu ? Work::Kind::op : Work::Kind::kernel, cpu, evidence);
  add_changed(cpu_ops, Work::Kind::op, /*on_cpu=*/true, evidence);
  add_functions(cell.functions, evidence);
  evidence.code = cell.judgement_of(verdict::k_kernel_code).code;
  evidence.kernels_known = !kernels.empty();
  evidence.cpu_ops_known = !cpu_ops.empty();
  return evidence;
}

}  // namespace weir::explain
