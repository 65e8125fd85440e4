// Runs the patterns over the differences and puts their findings in order.
#include "gate/explain/explain.hpp"

#include "gate/base/find.hpp"
#include "gate/explain/patterns.hpp"

namespace weir::explain {
namespace {

// In causal order: a difference that an earlier one claims is no cause for a later one.
constexpr std::array k_patterns = {
    &find_served,     &find_batches,        &find_graphs,    &find_unfused,  &find_moved,
    &find_read_backs, &find_syncs,          &find_pieces,    &find_products, &find_matrix_cores,
    &find_stream_k,   &find_tensor_kernels, &find_kernels,   &find_totals,   &find_barriers,
    &find_code,       &find_splits,         &find_copies,    &find_submits,  &find_context,
    &find_slow,       &find_memory,         &find_made_late, &find_python,   &find_calls,
    &find_threads,    &find_fixed,          &find_rest,      &find_times};

// Turns names from outside into short printable lines.
void make_safe(Finding& finding) {
  constexpr std::size_t k_max_ops = 64;
  if (finding.ops.size() > k_max_ops) finding.ops.resize(k_max_ops);
  for (std::string& op : finding.ops) op = safe_name(op);
  for (std::string& tensor : finding.tensors) tensor = safe_name(tensor);
}

void sort_entries(std::vector<ExplainState::Entry>& entries) {
  std::ranges::stable_sort(entries, {}, [](const ExplainState::Entry& entry) {
    return std::pair(entry.rank, -entry.units);
  });
}

// Returns the findings, each with its share of everything explained as a score.
std::vector<Finding> take_findings(std::vector<ExplainState::Entry> entries) {
  double total = 0;
  for (const ExplainState::Entry& entry : entries) total += entry.units;
  std::vector<Finding> findings;
  for (ExplainState::Entry& entry : entries) {
    entry.finding.score = total > 0 ? entry.units / total : 0;
    findings.push_back(std::move(entry.finding));
  }
  return findings;
}

// Returns the totals of exact counts that both sides have; the less important ones only if they
// differ.
std::vector<Total> read_totals(const Evidence& evidence) {
  std::vector<Total> totals;
  const auto add = [&](const char* count, bool is_always_shown) {
    const auto both = exact_counts(evidence, count);
    if (both && (is_always_shown || both->before != both->after))
      totals.push_back({count, both->before, both->after});
  };
  for (const char* count : {"dispatches", "barriers", "syncs"}) add(count, true);
  for (const char* count : {"submits", "copies"}) add(count, false);
  return totals;
}

// Returns how many more dispatches there are at `length`, from those of the start and of each
// token.
std::optional<Rational> more_dispatches(const Evidence& evidence, std::int64_t length) {
  const auto each = exact_values(evidence, "dispatches_per_token");
  if (!each) return std::nullopt;
  const ExactCounts start =
      exact_values(evidence, "dispatches_fixed").value_or(ExactCounts{k_zero, k_zero});
  const auto each_delta = each->delta(), start_delta = start.delta();
  const auto tokens_delta = each_delta ? each_delta->times(Rational(length)) : std::nullopt;
  return tokens_delta && start_delta ? tokens_delta->plus(*start_delta) : std::nullopt;
}

// Returns evidence of those counts that differ from token to token, at the longest length that
// both sides have. Counts that exist per token are left out: they are explained with the kernels.
Evidence counts_at_longest(const Evidence& evidence) {
  Evidence result;
  result.cell = evidence.cell;
  result.device = evidence.device;
  result.scope = unit::Scope::at_length;
  result.gate = evidence.gate;
  result.cpu_ops_known = evidence.cpu_ops_known;
  result.graph_known = evidence.graph_known;
  result.host_calls = evidence.host_calls;  // with rates per token, also off a line
  result.host_lines = evidence.host_lines;
  if (evidence.scope == result.scope) return result;  // they are explained with the works
  std::set<std::string> names;
  for (const auto& [name, value] : evidence.after.metrics) {
    const auto metric = metric_by_name(evidence, name);
    if (!metric || metric->scope != result.scope || !evidence.before.metrics.contains(name)) {
      continue;
    }
    // If a count per token exists, only that is compared.
    if (evidence.before.metrics.contains(unit::count_metric(metric->base, evidence.scope).name)) {
      continue;
    }
    result.length = std::max(result.length, metric->length);
    names.insert(name);
  }
  for (const std::string& name : names) {
    if (metric_by_name(evidence, name)->length != result.length) continue;
    result.before.metrics[name] = evidence.before.metrics.at(name);
    result.after.metrics[name] = evidence.after.metrics.at(name);
  }
  if (result.length) result.more_dispatches = more_dispatches(evidence, *result.length);
  if (result.gate) {
    // Changes at shorter lengths count as well; they go with the longest.
    std::erase_if(result.gate->changed, [&](const auto& entry) {
      return entry.second.metric.scope != unit::Scope::at_length;
    });
  }
  return result;
}

// Runs all patterns, functions that each explain one kind of change, over the evidence and its
// differences. Returns their findings in the order of the report.
std::vector<ExplainState::Entry> run_patterns(const Evidence& evidence,
                                              const Differences& differences,
                                              const ModelFacts* model) {
  ExplainState state{evidence, differences, model};
  for (const auto& pattern : k_patterns) {
    pattern(state);
    state.end_pattern();
  }
  sort_entries(state.entries);
  add_claims(state);
  return std::move(state.entries);
}

std::set<std::string> collect_claims(const std::vector<ExplainState::Entry>& entries) {
  std::set<std::string> claims;
  for (const ExplainState::Entry& entry : entries) {
    claims.insert(entry.finding.claims.begin(), entry.finding.claims.end());
  }
  return claims;
}

// Lets the finding that explains the dispatches explain the barriers at lengths too, if no other
// does. Barriers stand between dispatches, so they change for the same reason.
void claim_barriers_at_lengths(const Evidence& at_lengths, const std::string& dispatches,
                               std::vector<ExplainState::Entry>& entries) {
  if (!at_lengths.gate || !at_lengths.more_dispatches) return;
  ExplainState::Entry* dispatches_entry = find_first(
      entries,
      [&](const ExplainState::Entry& entry) { return holds(entry.finding.claims, dispatches); });
  if (dispatches_entry == nullptr) return;
  const std::set<std::string> claims = collect_claims(entries);
  for (const auto& [name, change] : at_lengths.gate->changed) {
    if (change.metric.base != "barriers" || claims.contains(name)) continue;
    dispatches_entry->finding.claims.push_back(name);
  }
}

}  // namespace

Finding make_finding(const char* kind, std::string metric) {
  Finding finding;
  finding.kind = kind;
  finding.metric = std::move(metric);
  return finding;
}

void ExplainState::mark_explained(const WorkChanges& kernels) {
  for (const WorkChange* kernel : kernels) mark_explained("kernel " + kernel->name);
}

Finding ExplainState::finding_about(const char* kind, const std::string& base) const {
  Finding finding = make_finding(kind, metric_name(evidence, base));
  if (const Rational delta = differences.count(base); delta != k_zero) finding.delta = delta;
  return finding;
}

std::string ExplainState::per_unit_text() const {
  const std::string words = per_text(evidence.scope);
  return text::prefix_if_any(" ", words);
}

std::string per_text(unit::Scope scope) {
  if (scope == unit::Scope::per_token || scope == unit::Scope::at_zero_context) return "a token";
  if (scope == unit::Scope::per_prefill) return "a prefill";
  if (scope == unit::Scope::per_request) return "a request";
  return "";
}

Explanation explain(const Evidence& evidence, const ModelFacts* model, const Options& options) {
  const Differences differences = find_differences(evidence);
  // A request runs each layer for its prompt and for each token, so its sums are no multiples of
  // layers.
  std::optional<ModelFacts> without_layers;
  if (model != nullptr && evidence.scope == unit::Scope::per_request) {
    model = &without_layers.emplace(*model);
    without_layers->layers = 0;
  }
  std::vector<ExplainState::Entry> entries = run_patterns(evidence, differences, model);
  const Evidence longest = counts_at_longest(evidence);
  const bool has_findings = !entries.empty();
  const auto claims = collect_claims(entries);
  const auto is_claimed = [&](const std::string& claim) { return claims.contains(claim); };
  // Findings at the longest length follow those per token.
  for (ExplainState::Entry& entry : run_patterns(longest, find_differences(longest), model)) {
    // Next to an explained change the rest says little, and kernels explain dispatches better.
    if (has_findings && entry.finding.kind == kind::count_changed) continue;
    if (!differences.kernels.empty() && entry.finding.metric.starts_with("dispatches_")) continue;
    std::erase_if(entry.finding.claims, is_claimed);
    entries.push_back(std::move(entry));
  }
  claim_barriers_at_lengths(longest, metric_name(evidence, "dispatches"), entries);
  Explanation result;
  result.cell = evidence.cell;
  result.scope = evidence.scope;
  result.is_alone = evidence.is_alone;
  result.totals = read_totals(evidence);
  result.findings = take_findings(std::move(entries));
  std::ranges::move(user_findings(evidence, differences, options.rules),
                    std::back_inserter(result.findings));
  for (Finding& finding : result.findings) make_safe(finding);
  const bool use_gate_findings =
      model == nullptr && evidence.gate && !evidence.gate->findings.empty();
  if (use_gate_findings) result.findings = evidence.gate->findings;
  result.sides_differ = differences.any() || !result.findings.empty();
  result.hints = find_hints(evidence, options.bands);
  result.has_work = evidence.has_work;
  if (result.has_work) result.checklist = fill_checklist(evidence, options, result.findings);
  result.warnings = evidence.warnings;
  // Without these counts nothing says how often the device was waited for.
  const bool has_waits = evidence.gate || both_sides_count(evidence, "syncs") ||
                         both_sides_count(evidence, "barriers");
  if (!evidence.is_alone && result.findings.empty() && !has_waits &&
      !evidence.after.works.empty()) {
    result.warnings.emplace_back(
        "barriers, syncs, submits and copies are not compared: they are not counted in these files "
        "(weir gate, weir ab and weir run count them)");
  }
  if (evidence.gate && evidence.gate->cell != verdict::Outcome::pass) {
    result.verdict = verdict::to_string(evidence.gate->cell);
    constexpr std::size_t k_longest_reason = 2000;
    result.reason = text::printable(evidence.gate->reason.substr(0, k_longest_reason));
  }
  return result;
}

}  // namespace weir::explain
