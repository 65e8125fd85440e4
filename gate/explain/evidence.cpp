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

Work work_of(Work::Kind kind, const std::string& name, bool on_cpu, const Rational& times) {
  return {kind, name, {}, {}, {}, on_cpu, times, {}};
}

Side side_of(const profile::Profile& profile) {
  Side side;
  for (const auto& [name, measured] : profile.metrics) {
    // Of sums over what kernels run: other kernels or other code tell why they changed.
    const auto label = unit::buffer_label(name);
    if (label && measured.exact) {
      side.works.push_back(
          work_of(Work::Kind::buffers, std::string(*label), false, *measured.exact));
    } else if (measured.value() && !unit::is_summed_cost(measured.metric.base)) {
      side.metrics[name] = {measured.exact, measured.samples};
    }
  }
  const bool cpu = profile.device == "cpu";
  if (profile.kernels && !profile.kernels->varies) {
    for (const auto& [name, count] : profile.kernels->counts) {
      side.works.push_back(work_of(cpu ? Work::Kind::op : Work::Kind::kernel, name, cpu, count));
    }
  }
  if (cpu) return side;
  for (const auto& [op, count] : profile.placement.cpu_ops) {
    side.works.push_back(work_of(Work::Kind::op, op, true, count));
  }
  return side;
}

// What a side mostly counts by: requests to a server, then tokens, where it has any count of these.
constexpr std::array k_scopes = {unit::Scope::per_request, unit::Scope::per_token,
                                 unit::Scope::per_prefill, unit::Scope::at_zero_context,
                                 unit::Scope::at_length};

std::optional<unit::Scope> main_scope(const std::vector<unit::Scope>& told) {
  const auto* found = first_of(k_scopes, [&](unit::Scope scope) { return holds(told, scope); });
  return found == nullptr ? std::nullopt : std::optional(*found);
}

std::optional<unit::Scope> scope_of(const profile::Profile& profile) {
  std::vector<unit::Scope> told;
  for (const auto& [name, measured] : profile.metrics) {
    if (measured.metric.kind == unit::Kind::count) told.push_back(measured.metric.scope);
  }
  return main_scope(told);
}

// The same of metrics that have both sides; of others, the first that tells one.
std::optional<unit::Scope> scope_of(const Evidence& evidence,
                                    std::span<const verdict::Judgement> metrics) {
  const Side& side = evidence.before.metrics.empty() ? evidence.after : evidence.before;
  std::vector<unit::Scope> told;
  for (const verdict::Judgement& one : metrics) {
    const unit::Metric& metric = one.metric;
    if (metric.kind != unit::Kind::count || metric.scope == unit::Scope::fixed) continue;
    if (side.metrics.contains(metric.name)) told.push_back(metric.scope);
  }
  if (told.empty()) return std::nullopt;
  return main_scope(told).value_or(told.front());
}

using Length = std::optional<std::int64_t>;

Length longest(const Length& a, const unit::Metric& metric) {
  if (metric.kind != unit::Kind::count || metric.scope != unit::Scope::at_length) return a;
  return std::max(a, metric.length);  // nothing is less than any
}

// The length that kernels were counted over, else the longest that both sides have.
Length length_of(const profile::Profile& before, const profile::Profile& after) {
  Length found;
  for (const auto& [name, measured] : after.metrics) {
    if (before.metrics.contains(name)) found = longest(found, measured.metric);
  }
  const bool told = after.kernels && after.kernels->scope == unit::Scope::at_length &&
                    before.kernels && before.kernels->length == after.kernels->length;
  return told && after.kernels->length ? after.kernels->length : found;
}

// Ops are told where the state says so, or where some are named.
bool tells_cpu_ops(const profile::Profile& profile) {
  return profile.placement.state == profile::Placement::State::shown ||
         !profile.placement.cpu_ops.empty();
}

bool comparable(const std::optional<profile::KernelSet>& a,
                const std::optional<profile::KernelSet>& b) {
  return a && b && !a->varies && !b->varies && a->named == b->named && a->scope == b->scope &&
         a->length == b->length;
}

// Kernels without names tell little of a graph with other ops: the device's ops stand for them.
bool told_by_ops(const profile::Profile& before, const profile::Profile& after) {
  return before.kernels && after.kernels && !before.kernels->named && !after.kernels->named &&
         comparable(before.graph_ops, after.graph_ops) &&
         before.graph_ops->counts != after.graph_ops->counts;
}

void add_ops(const profile::KernelSet& ops, Side& side) {
  for (const auto& [op, count] : ops.counts) {
    side.works.push_back(work_of(Work::Kind::op, op, false, count));
  }
}

bool is_call(const verdict::Changed& one) { return one.name.starts_with(profile::k_system_call); }

void drop_works(Evidence& evidence, Work::Kind kind, bool on_cpu) {
  for (Side* side : {&evidence.before, &evidence.after}) {
    std::erase_if(side->works,
                  [&](const Work& work) { return work.kind == kind && work.on_cpu == on_cpu; });
  }
}

Known known_of(const std::optional<double>& value, const std::optional<std::string>& text,
               profile::Nature nature) {
  constexpr double k_exact = 9007199254740992;  // 2^53: beyond it a double is no count any more
  Known known;
  if (nature == profile::Nature::exact) {
    const bool whole = value && std::fabs(*value) <= k_exact && *value == std::trunc(*value);
    if (text) known.exact = Rational::parse(*text);
    if (!known.exact && whole) known.exact = Rational(static_cast<std::int64_t>(*value));
  }
  if (!known.exact && value) known.samples = {*value};
  return known;
}

void add_changed(const std::vector<verdict::Changed>& changed, Work::Kind kind, bool on_cpu,
                 Evidence& evidence) {
  for (const verdict::Changed& one : changed) {
    if (one.baseline) {
      evidence.before.works.push_back(work_of(kind, one.name, on_cpu, *one.baseline));
    }
    if (one.current) evidence.after.works.push_back(work_of(kind, one.name, on_cpu, *one.current));
  }
}

// Failed, improved or accepted.
bool decided(const verdict::Judgement& metric) {
  using verdict::Outcome;
  return metric.verdict == Outcome::fail || metric.verdict == Outcome::improved ||
         metric.verdict == Outcome::accepted;
}

// What a gate calls changed. A limit on the value itself also fails what did not change.
bool called_changed(const verdict::Judgement& metric) {
  return decided(metric) && (!metric.low || !metric.high || *metric.low > 0 || *metric.high < 0);
}

// Why the cell is not a pass, by the first that says so.
std::string reason_of(const verdict::CellVerdict& cell) {
  if (!cell.reason.empty()) return text::first_line(cell.reason);
  const auto says = [&](const verdict::Judgement& one) {
    return one.verdict == cell.verdict && !one.reason.empty();
  };
  // Counts change with where the work ran.
  const auto* said = &cell.of(verdict::k_placement);
  if (!says(*said)) said = first_of(cell.judgements, says);
  if (said == nullptr) return "";
  const std::string reason = text::first_line(said->reason);
  // No metric of a new cell has a baseline.
  const bool of_cell = cell.verdict == verdict::Outcome::new_;
  return of_cell ? reason : unit::label(said->metric) + ": " + reason;
}

CellRuling ruling_of(const verdict::CellVerdict& cell) {
  CellRuling made{cell.verdict,
                  cell.of(verdict::k_kernels).verdict,
                  cell.of(verdict::k_placement).verdict,
                  {},
                  {},
                  cell.findings,
                  cell.not_allowed};
  if (cell.verdict != verdict::Outcome::pass) made.reason = reason_of(cell);
  for (const verdict::Judgement& metric : cell.metrics()) {
    if (called_changed(metric)) {
      made.changed[metric.metric.name] = {metric.metric, metric.change};
    }
  }
  return made;
}

}  // namespace

double Known::value() const { return exact ? exact->value() : stats::median(samples).value_or(0); }

Evidence evidence_of(const profile::Profile& before, const profile::Profile& after) {
  Evidence evidence;
  evidence.cell = after.cell.str();
  evidence.device = after.device;
  evidence.scope = scope_of(after).value_or(scope_of(before).value_or(unit::Scope::per_token));
  evidence.length = length_of(before, after);
  evidence.fusible = fusible_of(after);
  for (const auto& [profile, side] : {std::pair(&before, "before"), std::pair(&after, "after")}) {
    std::ranges::move(profile::cross_checks(*profile, side), std::back_inserter(evidence.doubts));
  }
  evidence.before = side_of(before);
  evidence.after = side_of(after);
  const bool cpu = after.device == "cpu" && before.device == "cpu";
  const auto kind = cpu ? Work::Kind::op : Work::Kind::kernel;
  if (comparable(before.functions, after.functions)) {
    evidence.calls = verdict::differences(before.functions->counts, after.functions->counts);
    std::erase_if(evidence.calls, [](const auto& one) { return !is_call(one); });
  }
  evidence.code = verdict::other_code(verdict::code_of(before), verdict::code_of(after));
  const auto labels = [](const Side& side) {
    return std::ranges::count(side.works, Work::Kind::buffers, &Work::kind) != 0;
  };
  if (!labels(evidence.before) || !labels(evidence.after)) {
    drop_works(evidence, Work::Kind::buffers, false);
  }
  evidence.kernels_known = comparable(before.kernels, after.kernels);
  // Everything that a device did may be gone from it.
  if (!evidence.kernels_known) drop_works(evidence, kind, cpu);
  evidence.cpu_ops_known = !cpu && tells_cpu_ops(before) && tells_cpu_ops(after);
  if (!cpu && !evidence.cpu_ops_known) drop_works(evidence, Work::Kind::op, true);
  evidence.same_graph = evidence.cpu_ops_known && comparable(before.graph_ops, after.graph_ops) &&
                        before.graph_ops->counts == after.graph_ops->counts &&
                        before.placement.cpu_ops == after.placement.cpu_ops;
  if (evidence.cpu_ops_known && told_by_ops(before, after)) {
    drop_works(evidence, kind, cpu);
    add_ops(*before.graph_ops, evidence.before);
    add_ops(*after.graph_ops, evidence.after);
    evidence.kernels_known = false;
    evidence.graph_known = true;
  }
  return evidence;
}

namespace {

// What is doubted of both sides is doubted once, of no side.
Evidence alone(Evidence evidence) {
  evidence.alone = true;
  std::erase_if(evidence.doubts, [](const auto& doubt) { return doubt.starts_with("before: "); });
  for (std::string& doubt : evidence.doubts) {
    for (const std::string_view side : {"after: ", "both sides: "}) {
      if (doubt.starts_with(side)) doubt.erase(0, side.size());
    }
  }
  return evidence;
}

}  // namespace

Evidence evidence_of(const profile::Profile& profile) {
  return alone(evidence_of(profile, profile));
}

Evidence evidence_of(const observed::Observed& observed) {
  return alone(evidence_of(observed, observed));
}

Evidence evidence_of(const verdict::CellVerdict& cell) {
  Evidence evidence;
  evidence.cell = cell.cell.str();
  evidence.device = cell.device;
  evidence.gate = ruling_of(cell);
  for (const verdict::Judgement& metric : cell.metrics()) {
    const bool judged = decided(metric) || metric.nature == profile::Nature::exact;
    if (metric.current && !judged && metric.metric.kind == unit::Kind::count) {
      evidence.unjudged[metric.metric.name] = *metric.current;
    }
    if (!metric.current || !judged) continue;
    if (metric.metric.name == verdict::k_cell_metric) continue;  // it is gone: no work to explain
    const std::string& name = metric.metric.name;
    const Known before = known_of(metric.baseline, metric.baseline_text, metric.nature);
    const Known after = known_of(metric.current, metric.current_text, metric.nature);
    if (const auto label = unit::buffer_label(name)) {
      if (!before.exact || !after.exact) continue;
      const verdict::Changed buffers{std::string(*label), before.exact, after.exact};
      add_changed({buffers}, Work::Kind::buffers, false, evidence);
      continue;
    }
    // Kernels that changed are told below, by their own names.
    if (unit::names_work(name) && metric.metric.kind == unit::Kind::count) continue;
    if (unit::is_summed_cost(metric.metric.base)) continue;
    if (metric.baseline) evidence.before.metrics[name] = before;
    evidence.after.metrics[name] = after;
    evidence.length = longest(evidence.length, metric.metric);
  }
  evidence.scope = scope_of(evidence, cell.metrics()).value_or(evidence.scope);
  const bool cpu = cell.device == "cpu";
  const auto& kernels = cell.of(verdict::k_kernels).changed;
  const auto& ops = cell.of(verdict::k_placement).changed;
  add_changed(kernels, cpu ? Work::Kind::op : Work::Kind::kernel, cpu, evidence);
  add_changed(ops, Work::Kind::op, true, evidence);
  std::ranges::copy_if(cell.functions, std::back_inserter(evidence.calls), is_call);
  evidence.code = cell.of(verdict::k_kernel_code).code;
  evidence.kernels_known = !kernels.empty();
  evidence.cpu_ops_known = !ops.empty();
  return evidence;
}

}  // namespace weir::explain
