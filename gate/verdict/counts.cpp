// Counts: exact ones may not change; fewer is better only where the work is seen to have stayed.
#include <algorithm>
#include <cmath>

#include "gate/verdict/judging.hpp"

namespace weir::verdict {
namespace {

using baseline::Baseline;
using profile::Measurement;
using profile::Nature;

constexpr double k_nearly_least = 0.005;
constexpr double k_nearly_times = 3;

struct Judged {
  Outcome verdict = Outcome::pass;
  std::string reason;
};

bool is_count(const Measurement& measured) { return measured.metric.kind == unit::Kind::count; }

// How far a count that only nearly repeats may move, relative; 0 for an exact one.
double allowed_share(const Measurement& base) {
  if (base.nature == Nature::exact) return 0;
  return std::max(k_nearly_times * base.repeatability.value_or(0), k_nearly_least);
}

bool same_value(const Measurement& base, const Measurement& current) {
  if (base.exact) return current.exact && *base.exact == *current.exact;
  const double from = *base.value(), to = *current.value();
  return std::fabs(to - from) <= allowed_share(base) * std::fabs(from);
}

std::string difference(const Measurement& base, const Measurement& current) {
  if (base.exact && current.exact) {
    if (const auto changed = current.exact->minus(*base.exact)) {
      return (*changed > Rational(0) ? "+" : "") + changed->str();
    }
  }
  return fmt::format("{:+.6g}", *current.value() - *base.value());
}

// "65 to 67" of the values that processes of one side gave.
std::string range(const Measurement& measured) {
  const auto [low, high] = std::minmax_element(measured.samples.begin(), measured.samples.end());
  return fmt::format("{:.10g} to {:.10g}", *low, *high);
}

// What a change in either direction means when the count may not change at all.
Judged exact_change(const Question& question, const Measurement& base, const Measurement& current) {
  if (base.exact && !current.exact) {
    return {Outcome::fail, fmt::format("{} in every process before, now it varies: {}", shown(base),
                                       range(current))};
  }
  const bool rose = *current.value() > *base.value();
  const bool better = rose == (current.metric.better == unit::Better::higher);
  const std::string changed =
      fmt::format("{} to {} ({})", shown(base), shown(current), difference(base, current));
  if (!better && base.nature == Nature::nearly_exact) {
    return {Outcome::fail,
            fmt::format("{}, may vary by {:.2g} %", changed, 100 * allowed_share(base))};
  }
  if (!better) return {Outcome::fail, changed + ", must not change"};
  if (work_stayed(question)) {
    return {Outcome::improved,
            changed + ", with all work where it was: accept it as the new baseline"};
  }
  if (question.candidate.placement.state == profile::Placement::State::refuted) {
    return {Outcome::fail, changed + ": the work ran elsewhere, see placement"};
  }
  return {Outcome::fail, fmt::format("{}: {} {}, and nothing here sees where the work went",
                                     changed, rose ? "more" : "fewer", current.metric.base)};
}

// A count held by an allowance rather than exactly.
Judged allowed_change(const Limit& limit, const Measurement& base, const Measurement& current) {
  const double from = *base.value(), to = *current.value();
  const auto room = [&](const MaxChange& change) {
    return change.amount.relative ? change.amount.value * std::fabs(from) : change.amount.value;
  };
  // A rounding error must not fail 20 -> 21 under 5 %.
  constexpr double k_rounding = 1e-9;
  const double slack = k_rounding * std::max(std::fabs(from), std::fabs(to));
  const std::string changed =
      fmt::format("{} to {} ({})", shown(base), shown(current), difference(base, current));
  if (limit.max_increase && to - from > room(*limit.max_increase) + slack) {
    return {Outcome::fail,
            fmt::format("{}, may rise {}", changed, show(limit.max_increase->amount))};
  }
  if (limit.max_decrease && from - to > room(*limit.max_decrease) + slack) {
    return {Outcome::fail,
            fmt::format("{}, may fall {}", changed, show(limit.max_decrease->amount))};
  }
  return {Outcome::pass, from == to ? "" : changed + ", as the limit allows"};
}

std::optional<Judged> plain_number(const Limit& limit, const Measurement& current) {
  const double value = *current.value();
  if (limit.max && value > limit.max->value) {
    return Judged{Outcome::fail, fmt::format("{} is above {}", shown(current), show(*limit.max))};
  }
  if (limit.min && value < limit.min->value) {
    return Judged{Outcome::fail, fmt::format("{} is below {}", shown(current), show(*limit.min))};
  }
  if (limit.max || limit.min) return Judged{Outcome::pass, ""};
  return std::nullopt;
}

Judged without_base(const Question& question, const Limit& limit) {
  const std::string why = question.judge() != nullptr ? "the baseline does not hold this count"
                                                      : question.choice.reason;
  if (question.policy.require_baseline && limit.exact) {
    return {Outcome::error, fmt::format("a baseline is required: {}", why)};
  }
  return {Outcome::fresh, why};
}

// Instructions counted in two ways are two counts, which say nothing of each other.
bool counted_otherwise(const Measurement& base, const Measurement& current) {
  return current.metric.base == "instructions" && !base.source.empty() &&
         base.source != current.source;
}

Judged not_comparable(const Question& question, const Limit& limit, const Measurement& base,
                      const Measurement& current) {
  const std::string why =
      fmt::format("the baseline was counted by {}, this run by {}: accept it to compare",
                  base.source, current.source);
  if (question.policy.require_baseline && limit.exact) {
    return {Outcome::error, "a baseline is required: " + why};
  }
  return {Outcome::fresh, why};
}

Judged against_base(const Question& question, const Limit& limit, const Measurement& base,
                    const Measurement& current) {
  if (counted_otherwise(base, current)) return not_comparable(question, limit, base, current);
  const bool same = same_value(base, current);
  if (question.nearest()) {
    Judged judged;
    if (same) return judged;
    judged.reason = fmt::format("{} to {}", shown(base), shown(current));
    new_beside_nearest(question, limit.exact, judged.verdict, judged.reason);
    return judged;
  }
  // Kinds add up: an allowance beside `exact` makes nothing looser, and may be the tighter one.
  Judged judged = allowed_change(limit, base, current);
  if (!limit.exact) return judged;
  const Judged exactly = same ? Judged{} : exact_change(question, base, current);
  return judged.verdict < exactly.verdict ? judged : exactly;
}

MetricVerdict verdict_for(const Question& question, const Measurement& current,
                          const Measurement* base) {
  MetricVerdict made;
  made.metric = current.metric;
  made.nature =
      base != nullptr && base->nature == Nature::nearly_exact ? base->nature : current.nature;
  made.source = current.source;
  made.warnings = current.warnings;
  made.limit = resolve_limit(question.candidate.cell, current.metric, question.limits);
  // A count that was exact before must not change, whatever it does now.
  const Measurement& repeats = base == nullptr ? current : *base;
  if (made.limit.exact && repeats.nature == Nature::nearly_exact) {
    made.limit.repeats_within = allowed_share(repeats);
  }
  made.current = current.value();
  if (current.exact) made.current_text = current.exact->str();
  if (base != nullptr) {
    made.baseline = base->value();
    if (base->exact) made.baseline_text = base->exact->str();
  }
  if (made.baseline && made.current) made.change = relative(*made.baseline, *made.current);
  return made;
}

// The value at length n of a count that is known as a line.
std::optional<Measurement> on_line(const std::map<std::string, Measurement>& counts,
                                   const unit::Metric& at) {
  const auto fixed = counts.find(unit::count_metric(at.base, unit::Scope::fixed).name);
  if (fixed == counts.end() || !fixed->second.exact || !at.length) return std::nullopt;
  for (const unit::Scope scope : {unit::Scope::per_token, unit::Scope::per_prefill}) {
    const auto slope = counts.find(unit::count_metric(at.base, scope).name);
    if (slope == counts.end() || !slope->second.exact) continue;
    const auto risen = slope->second.exact->times(*at.length);
    const auto value = risen ? risen->plus(*fixed->second.exact) : std::nullopt;
    if (!value) return std::nullopt;
    Measurement made = slope->second;
    made.metric = at;
    made.exact = value;
    return made;
  }
  return std::nullopt;
}

bool has_lengths(const std::map<std::string, Measurement>& counts, const std::string& base) {
  return std::ranges::any_of(counts, [&](const auto& item) {
    return item.second.metric.base == base && item.second.metric.scope == unit::Scope::at_length;
  });
}

bool is_slope(const unit::Metric& metric) {
  return metric.scope == unit::Scope::per_token || metric.scope == unit::Scope::per_prefill;
}

// What the baseline holds and the candidate lacks. With an exact limit that is an error: a count
// that can no longer be measured must not pass in silence.
std::optional<MetricVerdict> missing(const Question& question, const Measurement& base) {
  MetricVerdict made;
  made.metric = base.metric;
  made.nature = base.nature;
  made.source = base.source;
  made.baseline = base.value();
  if (base.exact) made.baseline_text = base.exact->str();
  made.limit = resolve_limit(question.candidate.cell, base.metric, question.limits);
  if (!made.limit.any() || made.limit.mode == Mode::off) return std::nullopt;
  if (base.metric.base == "instructions" && question.candidate.instructions_skipped) {
    made.verdict = Outcome::skipped;
    made.reason = *question.candidate.instructions_skipped;
  } else if (question.candidate.counted_runs == 0) {
    made.verdict = Outcome::skipped;
    made.reason = question.candidate.counts_skipped.value_or("nothing was counted in this run");
  } else if (unit::over_context(base.metric)) {
    // Nothing passes in silence: each depth's own cell judges its count, or misses it.
    made.verdict = Outcome::info;
    made.reason = "the depths lie on no line any more: each is compared alone";
    return made;
  } else {
    made.verdict = Outcome::error;
    made.reason =
        fmt::format("could not be measured: the baseline holds {}, this run nothing", shown(base));
    new_beside_nearest(question, made.limit.exact, made.verdict, made.reason);
  }
  show_only(made.limit, made.verdict, made.reason);
  return made;
}

// An engine's own marks (weir/instrument.h) tell what happened: of a kind that never did there is
// no count, since an engine may mark some kinds alone. Beside other counts of theirs on the same
// side, none was none: the first copy a token is one more than before, not one that is new.
std::optional<Measurement> none_of_marks(const std::map<std::string, Measurement>& side,
                                         const Measurement& other) {
  constexpr std::string_view k_marks = "instrument";
  if (other.source != k_marks || !other.exact) return std::nullopt;
  const bool marks = std::ranges::any_of(side, [&](const auto& item) {
    return item.second.source == k_marks && item.second.metric.scope == other.metric.scope &&
           item.second.metric.length == other.metric.length;
  });
  if (!marks) return std::nullopt;
  Measurement none = other;
  none.exact = Rational(0);
  return none;
}

}  // namespace

const Baseline* Question::judge() const {
  using Choice = baseline::Choice;
  const bool may = choice.match == Choice::Match::same || choice.match == Choice::Match::nearest;
  return may && choice.baseline ? &*choice.baseline : nullptr;
}

void new_beside_nearest(const Question& question, bool exact, Outcome& verdict,
                        std::string& reason) {
  if (!question.nearest()) return;
  const bool required = question.policy.require_baseline && exact;
  verdict = required ? Outcome::error : Outcome::fresh;
  reason = fmt::format("{}{}: {}", required ? "a baseline is required: " : "", reason,
                       question.choice.reason);
}

std::string shown(const Measurement& measured) {
  if (measured.exact) return measured.exact->str();
  const auto value = measured.value();
  return value ? fmt::format("{:.10g}", *value) : "nothing";
}

std::optional<double> relative(double from, double to) {
  if (from == 0) return std::nullopt;
  return (to - from) / std::fabs(from);
}

bool work_stayed(const Question& question) {
  using State = profile::Placement::State;
  const Baseline* base = question.judge();
  const profile::Placement& now = question.candidate.placement;
  if (base == nullptr || base->placement.state != State::shown || now.state != State::shown) {
    return false;
  }
  return std::ranges::all_of(now.cpu_ops, [&](const auto& op) {
    const auto before = base->placement.cpu_ops.find(op.first);
    return before != base->placement.cpu_ops.end() && op.second <= before->second;
  });
}

MetricVerdict judge_count(const Question& question, const Measurement& current,
                          const Measurement* base) {
  MetricVerdict made = verdict_for(question, current, base);
  const Limit& limit = made.limit;
  if (!made.current || !limit.any() || limit.mode == Mode::off) {
    if (limit.mode == Mode::off) made.reason = "switched off";
    return made;
  }
  std::optional<Judged> judged = plain_number(limit, current);
  if (limit.exact || limit.max_increase || limit.max_decrease) {
    const bool may_judge = question.judge() != nullptr && base != nullptr;
    const Judged compared =
        may_judge ? against_base(question, limit, *base, current) : without_base(question, limit);
    if (!judged || compared.verdict < judged->verdict) judged = compared;
  }
  made.verdict = judged->verdict;
  made.reason = judged->reason;
  show_only(limit, made.verdict, made.reason);
  return made;
}

std::vector<MetricVerdict> judge_counts(const Question& question) {
  static const std::map<std::string, Measurement> k_none;
  const auto& base = question.choice.baseline ? question.choice.baseline->counts : k_none;
  const auto& current = question.candidate.metrics;
  const std::string crooked =
      "these counts lay on a straight line: each length is compared with it";
  std::vector<MetricVerdict> made;
  for (const auto& [name, measured] : current) {
    if (!is_count(measured)) continue;
    const auto found = base.find(name);
    if (found != base.end()) {
      made.push_back(judge_count(question, measured, &found->second));
      continue;
    }
    // One side has a line, the other numbers at lengths: a line gives numbers at lengths too.
    if (const auto from_line = on_line(base, measured.metric)) {
      made.push_back(judge_count(question, measured, &*from_line));
      made.back().warnings.push_back(crooked);
      continue;
    }
    const auto none = none_of_marks(base, measured);
    made.push_back(judge_count(question, measured, none ? &*none : nullptr));
    if (question.judge() != nullptr && is_slope(measured.metric) &&
        has_lengths(base, measured.metric.base)) {
      made.back().verdict = Outcome::info;
      made.back().reason = "compared at the lengths that the baseline holds";
    }
  }
  if (question.judge() == nullptr) return made;
  const bool unmeasured = !question.candidate.errors.empty();
  for (const auto& [name, stored] : base) {
    if (current.contains(name)) continue;
    if (const auto from_line = on_line(current, stored.metric)) {
      made.push_back(judge_count(question, *from_line, &stored));
      continue;
    }
    const bool at_lengths =
        stored.metric.scope != unit::Scope::at_length && has_lengths(current, stored.metric.base) &&
        on_line(base, unit::count_metric(stored.metric.base, unit::Scope::at_length, 1));
    // A pass that ended in an error has said so already, once.
    if (at_lengths || unmeasured) continue;
    if (const auto none = none_of_marks(current, stored)) {
      made.push_back(judge_count(question, *none, &stored));
      continue;
    }
    if (auto verdict = missing(question, stored)) made.push_back(std::move(*verdict));
  }
  return made;
}

}  // namespace weir::verdict
