#include "gate/explain/explain.hpp"

#include "gate/base/find.hpp"
#include "gate/explain/patterns.hpp"

namespace weir::explain {
namespace {

// In causal order: what an earlier one claims is no cause for a later one.
constexpr std::array k_patterns = {
    &find_served,  &find_batches, &find_graphs,   &find_moved,  &find_syncs,     &find_pieces,
    &find_kernels, &find_totals,  &find_barriers, &find_code,   &find_splits,    &find_copies,
    &find_submits, &find_context, &find_slow,     &find_memory, &find_made_late, &find_calls,
    &find_threads, &find_fixed,   &find_rest,     &find_times};

// Names from outside, as short lines.
void make_safe(Finding& finding) {
  constexpr std::size_t k_most_ops = 64;
  if (finding.ops.size() > k_most_ops) finding.ops.resize(k_most_ops);
  for (std::string& op : finding.ops) op = safe(op);
  for (std::string& tensor : finding.tensors) tensor = safe(tensor);
}

void put_in_order(std::vector<Board::Entry>& entries) {
  std::ranges::stable_sort(
      entries, {}, [](const Board::Entry& entry) { return std::pair(entry.rank, -entry.units); });
}

std::vector<Finding> findings_of(std::vector<Board::Entry> entries) {
  double whole = 0;
  for (const Board::Entry& entry : entries) whole += entry.units;
  std::vector<Finding> findings;
  for (Board::Entry& entry : entries) {
    entry.finding.score = whole > 0 ? entry.units / whole : 0;
    findings.push_back(std::move(entry.finding));
  }
  return findings;
}

std::vector<Total> totals_of(const Evidence& evidence) {
  std::vector<Total> totals;
  for (const char* base : {"dispatches", "barriers", "syncs"}) {
    if (const auto both = exact_counts(evidence, base)) {
      totals.push_back({base, both->before, both->after});
    }
  }
  return totals;
}

// How many more dispatches there are at `length`, where each token has as many.
std::optional<Rational> more_dispatches(const Evidence& evidence, std::int64_t length) {
  const auto each = exact_values(evidence, "dispatches_per_token");
  if (!each) return std::nullopt;
  const ExactCounts start =
      exact_values(evidence, "dispatches_fixed").value_or(ExactCounts{k_none, k_none});
  const auto of_each = each->delta(), of_start = start.delta();
  const auto of_tokens = of_each ? of_each->times(Rational(length)) : std::nullopt;
  return of_tokens && of_start ? of_tokens->plus(*of_start) : std::nullopt;
}

// Counts that are the same for no two tokens, beside others that are: those at the longest length
// that both sides know, alone.
Evidence at_length_alone(const Evidence& evidence) {
  Evidence alone;
  alone.cell = evidence.cell;
  alone.device = evidence.device;
  alone.scope = unit::Scope::at_length;
  alone.gate = evidence.gate;
  alone.cpu_ops_known = evidence.cpu_ops_known;
  alone.graph_known = evidence.graph_known;
  if (evidence.scope == alone.scope) return alone;  // they are looked at with the works
  std::set<std::string> names;
  for (const auto& [name, known] : evidence.after.metrics) {
    const auto metric = metric_of(evidence, name);
    if (!metric || metric->scope != alone.scope || !evidence.before.metrics.contains(name))
      continue;
    // Of those per token only the line is compared.
    if (evidence.before.metrics.contains(unit::count_metric(metric->base, evidence.scope).name)) {
      continue;
    }
    alone.length = std::max(alone.length, metric->length);
    names.insert(name);
  }
  for (const std::string& name : names) {
    if (metric_of(evidence, name)->length != alone.length) continue;
    alone.before.metrics[name] = evidence.before.metrics.at(name);
    alone.after.metrics[name] = evidence.after.metrics.at(name);
  }
  if (alone.length) alone.more_dispatches = more_dispatches(evidence, *alone.length);
  if (alone.gate) {
    // At shorter lengths too, which change with the longest.
    std::erase_if(alone.gate->changed, [&](const auto& one) {
      return one.second.metric.scope != unit::Scope::at_length;
    });
  }
  return alone;
}

// What the patterns find in `evidence`, of which `found` differs; in the order in which it is told.
std::vector<Board::Entry> entries_of(const Evidence& evidence, const Differences& found,
                                     const ModelFacts* model) {
  Board board{evidence, found, model};
  for (const auto& pattern : k_patterns) {
    pattern(board);
    board.end_pattern();
  }
  put_in_order(board.entries);
  add_claims(board);
  return std::move(board.entries);
}

std::set<std::string> claims_of(const std::vector<Board::Entry>& entries) {
  std::set<std::string> claims;
  for (const Board::Entry& entry : entries) {
    claims.insert(entry.finding.claims.begin(), entry.finding.claims.end());
  }
  return claims;
}

// Barriers stand between dispatches: those at lengths that no finding takes follow from what
// changed these.
void claim_barriers(const Evidence& at_lengths, const std::string& dispatches,
                    std::vector<Board::Entry>& entries) {
  if (!at_lengths.gate || !at_lengths.more_dispatches) return;
  Board::Entry* owner = first_of(
      entries, [&](const Board::Entry& entry) { return holds(entry.finding.claims, dispatches); });
  if (owner == nullptr) return;
  const std::set<std::string> claimed = claims_of(entries);
  for (const auto& [name, changed] : at_lengths.gate->changed) {
    if (changed.metric.base != "barriers" || claimed.contains(name)) continue;
    owner->finding.claims.push_back(name);
  }
}

}  // namespace

Finding finding_of(const char* kind, std::string metric) {
  Finding finding;
  finding.kind = kind;
  finding.metric = std::move(metric);
  return finding;
}

void Board::take(const Moves& kernels) {
  for (const Move* kernel : kernels) take("kernel " + kernel->name);
}

Finding Board::about(const char* kind, const std::string& base) const {
  Finding finding = finding_of(kind, metric_name(evidence, base));
  if (const Rational delta = found.count(base); delta != k_none) finding.delta = delta;
  return finding;
}

std::string Board::per() const {
  const std::string words = per_words(evidence.scope);
  return words.empty() ? "" : " " + words;
}

std::string per_words(unit::Scope scope) {
  if (scope == unit::Scope::per_token || scope == unit::Scope::at_zero_context) return "a token";
  if (scope == unit::Scope::per_prefill) return "a prefill";
  if (scope == unit::Scope::per_request) return "a request";
  return "";
}

Explanation explain(const Evidence& evidence, const ModelFacts* model, const Options& options) {
  const Differences found = differences_of(evidence);
  // A request runs each layer for its prompt and for each token: its sums tell nothing of a layer.
  std::optional<ModelFacts> without_layers;
  if (model != nullptr && evidence.scope == unit::Scope::per_request) {
    model = &without_layers.emplace(*model);
    without_layers->layers = 0;
  }
  std::vector<Board::Entry> entries = entries_of(evidence, found, model);
  const Evidence longest = at_length_alone(evidence);
  const bool explained = !entries.empty();
  const auto claimed = [of = claims_of(entries)](const std::string& one) {
    return of.contains(one);
  };
  // Told behind all that holds for each token.
  for (Board::Entry& entry : entries_of(longest, differences_of(longest), model)) {
    // Beside something that is explained the rest says little, and kernels tell dispatches better.
    if (explained && entry.finding.kind == kind::count_changed) continue;
    if (!found.kernels.empty() && entry.finding.metric.starts_with("dispatches_")) continue;
    std::erase_if(entry.finding.claims, claimed);
    entries.push_back(std::move(entry));
  }
  claim_barriers(longest, metric_name(evidence, "dispatches"), entries);
  Explanation made;
  made.cell = evidence.cell;
  made.scope = evidence.scope;
  made.alone = evidence.alone;
  made.totals = totals_of(evidence);
  made.findings = findings_of(std::move(entries));
  std::ranges::move(user_findings(evidence, found, options.rules),
                    std::back_inserter(made.findings));
  for (Finding& finding : made.findings) make_safe(finding);
  const bool gate_knew_more = model == nullptr && evidence.gate && !evidence.gate->findings.empty();
  if (gate_knew_more) made.findings = evidence.gate->findings;
  made.differs = found.any() || !made.findings.empty();
  made.hints = hints_of(evidence, options.bands);
  made.checklist = checklist_of(evidence, options, made.findings);
  made.doubts = evidence.doubts;
  // Of profiles: nothing else tells how often the device was waited for.
  const bool told = evidence.gate || counted(evidence, "syncs") || counted(evidence, "barriers");
  if (!evidence.alone && made.findings.empty() && !told && !evidence.after.works.empty()) {
    made.doubts.emplace_back(
        "barriers, syncs, submits and copies are not compared: they are not counted in these files "
        "(weir gate, weir ab and weir run count them)");
  }
  if (evidence.gate && evidence.gate->cell != verdict::Outcome::pass) {
    made.verdict = verdict::to_string(evidence.gate->cell);
    constexpr std::size_t k_longest_reason = 2000;
    made.reason = text::printable(evidence.gate->reason.substr(0, k_longest_reason));
  }
  return made;
}

}  // namespace weir::explain
