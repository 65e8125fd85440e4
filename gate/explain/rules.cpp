// Matches the rules that a team gives in weir.yaml with the differences.
#include "gate/explain/rules.hpp"

#include "gate/explain/patterns.hpp"

namespace weir::explain {
namespace {

using Change = Rule::Change;

// Returns true if a count changed as the rule asks.
bool fits_counts(Change change, const Rational& before, const Rational& after) {
  if (change == Change::any) return before != after;
  if (change == Change::more) return after > before;
  if (change == Change::fewer) return after < before;
  if (change == Change::appeared) return before == k_zero && after > k_zero;
  // Times are matched elsewhere, so slower and faster fit no count.
  return change == Change::vanished && after == k_zero && before > k_zero;
}

// Returns true if a metric changed as the rule asks. Values of a nearly exact count vary, so only
// its change is a count.
bool fits_metric(Change change, const MetricValue& before, const MetricValue& after,
                 const Rational& delta) {
  if (before.exact && after.exact) return fits_counts(change, *before.exact, *after.exact);
  if (change == Change::appeared && before.value() != 0) return false;
  if (change == Change::vanished && after.value() != 0) return false;
  return delta > k_zero ? fits_counts(change, k_zero, delta)
                        : fits_counts(change, k_zero.minus(delta).value_or(Rational(1)), k_zero);
}

// Returns true and records the change in `finding` if a kernel or op matching `pattern` changed as
// the user's rule asks. An empty pattern matches.
bool move_fits(const Rule& rule, const std::string& pattern,
               std::initializer_list<const std::vector<WorkChange>*> lists, Finding& finding) {
  if (pattern.empty()) return true;
  for (const std::vector<WorkChange>* list : lists) {
    const WorkChange* move = find_first(*list, [&](const WorkChange& candidate) {
      return text::glob_match(pattern, candidate.name) &&
             fits_counts(rule.change, candidate.before, candidate.after);
    });
    if (move == nullptr) continue;
    finding.ops.push_back(move->name);
    add_number({safe_name(move->name), move->delta()}, finding);
    return true;
  }
  return false;
}

// Returns true and records the change in `finding` if a time or count that the user's rule names
// changed as it asks. A rule without a metric matches.
bool metric_fits(const Rule& rule, const Evidence& evidence, const Differences& differences,
                 Finding& finding) {
  if (rule.metric.empty()) return true;
  for (const auto& [name, ratio] : differences.times) {
    if (!text::glob_match(rule.metric, name)) continue;
    const auto metric = metric_by_name(evidence, name);
    const bool is_slower = metric && unit::got_worse(metric->better, /*rose=*/ratio > 1);
    const Change direction = is_slower ? Change::slower : Change::faster;
    if (rule.change == Change::any || rule.change == direction) {
      finding.metric = name;
      return true;
    }
  }
  for (const auto& [name, change] : differences.moved) {
    const MetricValue &before = evidence.before.metrics.at(name),
                      &after = evidence.after.metrics.at(name);
    if (!text::glob_match(rule.metric, name) ||
        !fits_metric(rule.change, before, after, change.delta)) {
      continue;
    }
    finding.metric = name;
    finding.delta = change.delta;
    return true;
  }
  return false;
}

}  // namespace

// Returns a finding for each of the user's rules of which every part matches: cell, kernel, op and
// metric.
std::vector<Finding> user_findings(const Evidence& evidence, const Differences& differences,
                                   const std::vector<Rule>& rules) {
  std::vector<Finding> list;
  for (const Rule& rule : rules) {
    if (!rule.cell.empty() && !text::glob_match(rule.cell, evidence.cell)) continue;
    if (rule.kernel.empty() && rule.op.empty() && rule.metric.empty()) continue;
    Finding finding = make_finding(kind::user_rule);
    if (!move_fits(rule, rule.kernel, {&differences.kernels}, finding) ||
        !move_fits(rule, rule.op, {&differences.cpu_ops, &differences.graph}, finding) ||
        !metric_fits(rule, evidence, differences, finding)) {
      continue;
    }
    finding.headline = text::printable(rule.say.substr(0, 2000));
    list.push_back(std::move(finding));
  }
  return list;
}

}  // namespace weir::explain
