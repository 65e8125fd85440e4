// Judges times beside a base program by pairs of processes, with an error guarantee.
#include "gate/verdict/paired_rule.hpp"

#include <limits>

#include "gate/base/text.hpp"
#include "gate/stats/quantile.hpp"
#include "gate/stats/spread.hpp"
#include "gate/unit/metric.hpp"
#include "gate/verdict/judging.hpp"

namespace weir::verdict {
namespace {

constexpr double k_slowest = std::numeric_limits<double>::infinity();

// Returns the number that evidence is made of (rule_pair()); +infinity if the process did not end.
double rule_number(const profile::PairedMetric& metric, const std::optional<double>& value) {
  if (!value || !std::isfinite(*value)) return k_slowest;
  if (metric.line_unit) return *value / *metric.line_unit;
  const double number = *value + metric.added;
  if (!(number > 0)) return k_slowest;
  return metric.metric.better == unit::Better::higher ? -std::log(number) : std::log(number);
}

using stats::Decision;

// Fills the numbers of the pairs into the judgement: a ratio for each, empty for a run that
// failed, and the spread of each side's runs. The medians become baseline and current.
void show_pairs(const profile::PairedMetric& metric, std::span<const stats::Pair> pairs,
                Judgement& judgement) {
  for (const profile::NumberPair& pair : metric.pairs) {
    const bool is_comparable =
        pair.base && pair.candidate && *pair.base > 0 && (*pair.candidate > 0 || !metric.line_unit);
    judgement.ratios.push_back(is_comparable ? std::optional(*pair.candidate / *pair.base)
                                             : std::nullopt);
  }
  judgement.baseline_runs = run_spread(metric, pairs, &stats::Pair::base);
  judgement.current_runs = run_spread(metric, pairs, &stats::Pair::candidate);
  const auto spreads = stats::compare_spreads(pairs);
  if (spreads && spreads->p && *spreads->p <= stats::k_suspect_spread && spreads->ratio > 0 &&
      std::isfinite(spreads->ratio)) {
    judgement.spread_ratio = spreads->ratio;
  }
  if (judgement.baseline_runs) judgement.baseline = judgement.baseline_runs->median;
  if (judgement.current_runs) judgement.current = judgement.current_runs->median;
}

// Returns how the two sides differ at several percentiles. Precondition: the test ended as
// Decision::unlike, so the candidate's runs spread wider than the base's.
std::string unlike_spreads_text(const profile::PairedMetric& metric,
                                const stats::PairedTest& test) {
  const auto spreads = stats::compare_spreads(test.all());
  const auto change_text = [&](double effect) {
    return unit::signed_percent(metric.line_unit ? effect
                                                 : effect_to_change(metric.metric, effect));
  };
  return fmt::format(
      "the candidate's runs spread {:.1f} x as wide as the base's, and they do not agree: fastest "
      "tenth {}, middle {}, mean {}, slowest tenth {}",
      spreads->ratio, change_text(spreads->by.p10), change_text(spreads->by.median),
      change_text(spreads->by.mean), change_text(spreads->by.p90));
}

enum class LimitPart { amount, tolerated };

// "5 %": one part of the limit on the metric's change.
std::string limit_text(const Judgement& judgement, LimitPart part) {
  const auto& change = change_limit(judgement.limit, judgement.metric);
  return show(part == LimitPart::tolerated ? change->tolerate : change->amount);
}

// Returns "about 12 more pairs (40 s) would settle it", and fills more_pairs and more_seconds. If
// no trend shows yet, both stay empty.
std::string more_pairs_text(const stats::PairedTest& test, Judgement& judgement) {
  const auto more_pairs = test.more_pairs();
  if (!more_pairs) return "nothing points either way yet";
  judgement.more_pairs = static_cast<std::int64_t>(std::min(std::ceil(*more_pairs), 1e9));
  std::string duration_text = fmt::format(
      "about {} more", text::plural(static_cast<std::size_t>(*judgement.more_pairs), "pair"));
  if (judgement.pair_seconds > 0) {
    judgement.more_seconds = judgement.pair_seconds * static_cast<double>(*judgement.more_pairs);
    duration_text += fmt::format(" ({})", unit::show_duration(*judgement.more_seconds));
  }
  return duration_text + " would settle it";
}

// Turns the outcome of the paired test into a ruling with its reason. Pairs too few for the test,
// or spreads that differ, make it inconclusive.
Ruling decide(const profile::PairedMetric& metric, const stats::PairedTest& test,
              const stats::PairedRule& rule, Judgement& judgement) {
  const std::string pairs_text = text::plural(test.decided_after(), "pair");
  const std::string_view worse =
      judgement.metric.better == unit::Better::higher ? "dropped" : "rose";
  switch (test.decision()) {
    case Decision::fail:
      return {Outcome::fail, fmt::format("it {} by more than {}, sure after {}", worse,
                                         limit_text(judgement, LimitPart::tolerated), pairs_text)};
    case Decision::pass:
      if (stats::improved(test.all(), rule)) {
        return {Outcome::improved,
                fmt::format("better by more than {}", limit_text(judgement, LimitPart::tolerated))};
      }
      return {Outcome::pass, fmt::format("it {} by less than {}, sure after {}", worse,
                                         limit_text(judgement, LimitPart::amount), pairs_text)};
    case Decision::unlike:
      return {Outcome::inconclusive, unlike_spreads_text(metric, test)};
    case Decision::undecided:
      break;
  }
  if (test.pairs() == 0) {
    return {Outcome::inconclusive,
            fmt::format("no pair was run: {} at least, of about {} each, do not fit the budget",
                        stats::fewest_pairs(rule), unit::show_duration(judgement.pair_seconds))};
  }
  return {Outcome::inconclusive,
          fmt::format("not decided after {}; {}", text::plural(test.pairs(), "pair"),
                      more_pairs_text(test, judgement))};
}

// Estimates how many pairs an undecided time lacks. If nothing points either way yet, that is as
// many as there were.
double estimate_missing_pairs(const stats::PairedTest& test, const stats::PairedRule& rule) {
  if (test.pairs() == 0) return static_cast<double>(stats::fewest_pairs(rule));
  return std::ceil(test.more_pairs().value_or(static_cast<double>(test.pairs())));
}

}  // namespace

stats::Pair rule_pair(const profile::PairedMetric& metric, const profile::NumberPair& pair) {
  return {rule_number(metric, pair.base), rule_number(metric, pair.candidate)};
}

std::vector<stats::Pair> rule_pairs(const profile::PairedMetric& metric) {
  return collect<stats::Pair>(metric.pairs,
                              [&](const auto& pair) { return rule_pair(metric, pair); });
}

const std::optional<MaxChange>& change_limit(const Limit& limit, const unit::Metric& metric) {
  return metric.better == unit::Better::higher ? limit.max_drop : limit.max_increase;
}

double number_of(const profile::PairedMetric& metric, double number) {
  if (metric.line_unit) return number * *metric.line_unit;
  return std::exp(metric.metric.better == unit::Better::higher ? -number : number) - metric.added;
}

double effect_to_change(const unit::Metric& metric, double effect) {
  return std::expm1(metric.better == unit::Better::higher ? -effect : effect);
}

std::optional<RunSpread> run_spread(const profile::PairedMetric& metric,
                                    std::span<const stats::Pair> pairs, double stats::Pair::*side) {
  const auto spread = stats::spread_of(collect<double>(pairs, side));
  if (!spread) return std::nullopt;
  return RunSpread{number_of(metric, spread->p10), number_of(metric, spread->median),
                   number_of(metric, spread->mean), number_of(metric, spread->p90)};
}

// Returns the rule of the paired test for a limit on a change; nothing if there is none, or a
// limit on a drop is 90 % or more. An effect is the size of a change in the test's own scale.
std::optional<stats::PairedRule> paired_rule(const Limit& limit,
                                             const profile::PairedMetric& metric,
                                             const Policy& policy) {
  constexpr double k_max_drop_share = 0.9;
  const bool higher = metric.metric.better == unit::Better::higher;
  const auto& change = change_limit(limit, metric.metric);
  if (!change || limit.mode == Mode::off) return std::nullopt;
  // Returns the limit as an effect; NaN if it makes no share below 90 %.
  const auto to_effect = [&](const Amount& amount) {
    const double warm_up_value = metric.warm_up.base.value_or(0) + metric.added;
    const double share = amount.relative ? amount.value : amount.value / warm_up_value;
    if (!(share > 0) || (higher && share >= k_max_drop_share)) {
      return std::numeric_limits<double>::quiet_NaN();
    }
    return higher ? stats::effect_of_drop(share) : stats::effect_of_increase(share);
  };
  stats::PairedRule rule;
  rule.tolerate = to_effect(change->tolerate);
  rule.limit = to_effect(change->amount);
  if (!(rule.tolerate > 0) || !(rule.limit > rule.tolerate)) return std::nullopt;
  rule.false_alarm =
      policy.false_alarm / static_cast<double>(std::max<std::int64_t>(1, policy.timed_metrics));
  rule.missed = policy.missed;
  rule.strict = policy.strict;
  rule.scale = metric.line_unit ? stats::Scale::linear : stats::Scale::logarithmic;
  return rule;
}

// Counts the metrics that pairs judge: those with a limit on their change that gates. The share of
// false alarms is divided among them.
std::int64_t timed_metrics(std::span<const profile::CellFacts> cells,
                           std::span<const profile::PairedRuns> runs, const LimitTable& limits) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (const profile::PairedMetric& metric : runs[i].metrics) {
      const Limit limit = resolve_limit(cells[i].cell, metric.metric, limits);
      if (limit.mode != Mode::gate) continue;
      if (limit.max_drop || limit.max_increase) ++count;
    }
  }
  return count;
}

std::string budget_text(double seconds) {
  const double rounded = seconds < 60 ? std::ceil(seconds) : 60 * std::ceil(seconds / 60);
  return unit::show_duration(std::max(10.0, rounded));
}

void judge_pairs(const Comparison& comparison, const profile::PairedMetric& metric,
                 Judgement& judgement) {
  const std::vector<stats::Pair> pairs = rule_pairs(metric);
  show_pairs(metric, pairs, judgement);
  judgement.pairs = static_cast<std::int64_t>(pairs.size());
  // A metric without a limit is not judged, but shown with an interval all the same.
  Limit limit = judgement.limit;
  const bool has_limit = limit.max_drop || limit.max_increase;
  if (!has_limit) {
    const MaxChange for_interval{{0.10, true}, {0.05, true}};
    if (metric.metric.better == unit::Better::higher) {
      limit.max_drop = for_interval;
    } else {
      limit.max_increase = for_interval;
    }
  }
  const auto rule = paired_rule(limit, metric, comparison.policy);
  if (!rule) {
    judgement.verdict = Outcome::error;
    judgement.reason =
        fmt::format("the limit cannot be held to the base program's {}: {}",
                    metric.warm_up.base ? unit::show(metric.metric, *metric.warm_up.base)
                                        : std::string("warm-up, which did not end"),
                    judgement.limit.words());
    return;
  }
  if (const auto interval = stats::effect_interval(pairs, *rule)) {
    const double baseline = judgement.baseline.value_or(0);
    const double scale = metric.added > 0 ? (metric.added + baseline) / baseline : 1;
    // A larger effect is a lower rate, so the ends of the interval may change places.
    const double of_low = scale * effect_to_change(metric.metric, interval->low);
    const double of_high = scale * effect_to_change(metric.metric, interval->high);
    const double low = std::min(of_low, of_high), high = std::max(of_low, of_high);
    if (std::isfinite(scale)) {
      judgement.change = scale * effect_to_change(metric.metric, interval->estimate);
    }
    if (std::isfinite(low) && low > -1) judgement.low = low;
    if (std::isfinite(high)) judgement.high = high;
  }
  if (!has_limit) return;
  stats::PairedTest test(*rule);
  for (const stats::Pair& pair : pairs) test.add(pair);
  const auto pairs_run = static_cast<double>(comparison.pairs->pairs);
  judgement.pair_seconds = comparison.pairs->seconds / (pairs_run + 1);  // 1: the warm-ups
  judgement.set_ruling(decide(metric, test, *rule, judgement));
  if (test.decision() != Decision::undecided) {
    judgement.pairs = static_cast<std::int64_t>(test.decided_after());
  } else if (!comparison.pairs->error) {
    judgement.missing_pairs = estimate_missing_pairs(test, *rule);
  }
}

}  // namespace weir::verdict
