#include "gate/explain/rules.hpp"

#include "gate/explain/patterns.hpp"

namespace weir::explain {
namespace {

using Change = Rule::Change;

bool fits_counts(Change change, const Rational& before, const Rational& after) {
  if (change == Change::any) return before != after;
  if (change == Change::more) return after > before;
  if (change == Change::fewer) return after < before;
  if (change == Change::appeared) return before == k_none && after > k_none;
  // What is slower or faster patterns find among the times.
  return change == Change::vanished && after == k_none && before > k_none;
}

// Of counts that are nearly exact only the change is one, not the values.
bool fits_metric(Change change, const Known& before, const Known& after, const Rational& delta) {
  if (before.exact && after.exact) return fits_counts(change, *before.exact, *after.exact);
  if (change == Change::appeared && before.value() != 0) return false;
  if (change == Change::vanished && after.value() != 0) return false;
  return delta > k_none ? fits_counts(change, k_none, delta)
                        : fits_counts(change, k_none.minus(delta).value_or(Rational(1)), k_none);
}

// Whether a kernel or op that `pattern` names moved so, which is told then. No pattern asks
// nothing.
bool move_fits(const Rule& rule, const std::string& pattern,
               std::initializer_list<const std::vector<Move>*> lists, Finding& finding) {
  if (pattern.empty()) return true;
  for (const std::vector<Move>* list : lists) {
    const Move* move = first_of(*list, [&](const Move& one) {
      return text::glob_match(pattern, one.name) && fits_counts(rule.change, one.before, one.after);
    });
    if (move == nullptr) continue;
    finding.ops.push_back(move->name);
    add_number({safe(move->name), move->delta()}, finding);
    return true;
  }
  return false;
}

bool metric_fits(const Rule& rule, const Evidence& evidence, const Differences& found,
                 Finding& finding) {
  if (rule.metric.empty()) return true;
  for (const auto& [name, ratio] : found.times) {
    if (!text::glob_match(rule.metric, name)) continue;
    const auto metric = metric_of(evidence, name);
    const bool worse = metric && (metric->better == unit::Better::lower) == (ratio > 1);
    if (rule.change == Change::any || rule.change == (worse ? Change::slower : Change::faster)) {
      finding.metric = name;
      return true;
    }
  }
  for (const auto& [name, moved] : found.moved) {
    const Known &before = evidence.before.metrics.at(name),
                &after = evidence.after.metrics.at(name);
    if (!text::glob_match(rule.metric, name) ||
        !fits_metric(rule.change, before, after, moved.delta)) {
      continue;
    }
    finding.metric = name;
    finding.delta = moved.delta;
    return true;
  }
  return false;
}

}  // namespace

std::vector<Finding> user_findings(const Evidence& evidence, const Differences& found,
                                   const std::vector<Rule>& rules) {
  std::vector<Finding> list;
  for (const Rule& rule : rules) {
    if (!rule.cell.empty() && !text::glob_match(rule.cell, evidence.cell)) continue;
    if (rule.kernel.empty() && rule.op.empty() && rule.metric.empty()) continue;
    Finding finding = finding_of(kind::user_rule);
    if (!move_fits(rule, rule.kernel, {&found.kernels}, finding) ||
        !move_fits(rule, rule.op, {&found.cpu_ops, &found.graph}, finding) ||
        !metric_fits(rule, evidence, found, finding)) {
      continue;
    }
    finding.headline = text::printable(rule.say.substr(0, 2000));
    list.push_back(std::move(finding));
  }
  return list;
}

}  // namespace weir::explain
