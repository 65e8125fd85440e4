// Times beside a base program: decided by pairs of processes, with an error guarantee.
#include "gate/verdict/paired_rule.hpp"

#include <limits>

#include "gate/stats/quantile.hpp"
#include "gate/stats/spread.hpp"
#include "gate/verdict/judging.hpp"

namespace weir::verdict {
namespace {

constexpr double k_slowest = std::numeric_limits<double>::infinity();

double in_pair(const profile::PairedMetric& metric, const std::optional<double>& value) {
  if (!value || !std::isfinite(*value)) return k_slowest;
  if (metric.line_unit) return *value / *metric.line_unit;
  const double number = *value + metric.added;
  if (!(number > 0)) return k_slowest;
  return metric.metric.better == unit::Better::higher ? -std::log(number) : std::log(number);
}

using stats::Decision;

void show_pairs(const profile::PairedMetric& metric, std::span<const stats::Pair> pairs,
                Judgement& made) {
  for (const profile::NumberPair& pair : metric.pairs) {
    // A ratio with what is not above 0 says nothing.
    const bool both =
        pair.base && pair.candidate && *pair.base > 0 && (*pair.candidate > 0 || !metric.line_unit);
    made.ratios.push_back(both ? std::optional(*pair.candidate / *pair.base) : std::nullopt);
  }
  made.baseline_runs = run_spread(metric, pairs, &stats::Pair::base);
  made.current_runs = run_spread(metric, pairs, &stats::Pair::candidate);
  const auto spreads = stats::compare_spreads(pairs);
  if (spreads && spreads->p <= stats::k_suspect_spread && spreads->ratio > 0 &&
      std::isfinite(spreads->ratio)) {
    made.spread_ratio = spreads->ratio;
  }
  if (made.baseline_runs) made.baseline = made.baseline_runs->median;
  if (made.current_runs) made.current = made.current_runs->median;
}

std::string unlike_words(const profile::PairedMetric& metric, const stats::PairedTest& test) {
  const auto spreads = stats::compare_spreads(test.all());
  const auto change = [&](double effect) {
    return percent(metric.line_unit ? effect : change_of(metric.metric, effect));
  };
  return fmt::format(
      "the candidate's runs spread {:.1f} x as wide as the base's, and they do not agree: fastest "
      "tenth {}, middle {}, mean {}, slowest tenth {}",
      spreads->ratio, change(spreads->by.p10), change(spreads->by.median), change(spreads->by.mean),
      change(spreads->by.p90));
}

std::string limit_words(const Judgement& made, bool tolerated) {
  const auto& change = change_in(made.limit, made.metric);
  return show(tolerated ? change->tolerate : change->amount);
}

// How the undecided could be decided; fills more_pairs and more_seconds.
std::string more_words(const stats::PairedTest& test, double pair_seconds, Judgement& made) {
  const auto more = test.more_pairs();
  if (!more) return "nothing points either way yet";
  made.more_pairs = static_cast<std::int64_t>(std::min(std::ceil(*more), 1e9));
  std::string words =
      fmt::format("about {} more", plural(static_cast<std::size_t>(*made.more_pairs), "pair"));
  if (pair_seconds > 0) {
    made.more_seconds = pair_seconds * static_cast<double>(*made.more_pairs);
    words += fmt::format(" ({})", unit::show_duration(*made.more_seconds));
  }
  return words + " would settle it";
}

// The numbers stand beside the reason, so it does not repeat them.
Ruling decided(const profile::PairedMetric& metric, const stats::PairedTest& test,
               const stats::PairedRule& rule, double pair_seconds, Judgement& made) {
  const std::string after = plural(test.decided_after(), "pair");
  const std::string_view worse = made.metric.better == unit::Better::higher ? "dropped" : "rose";
  switch (test.decision()) {
    case Decision::fail:
      return {Outcome::fail, fmt::format("it {} by more than {}, sure after {}", worse,
                                         limit_words(made, true), after)};
    case Decision::pass:
      if (stats::improved(test.all(), rule)) {
        return {Outcome::improved, fmt::format("better by more than {}", limit_words(made, true))};
      }
      return {Outcome::pass, fmt::format("it {} by less than {}, sure after {}", worse,
                                         limit_words(made, false), after)};
    case Decision::unlike:
      return {Outcome::inconclusive, unlike_words(metric, test)};
    case Decision::undecided:
      break;
  }
  if (test.pairs() == 0) {
    return {Outcome::inconclusive,
            fmt::format("no pair was run: {} at least, of about {} each, do not fit the budget",
                        stats::fewest_pairs(rule), unit::show_duration(pair_seconds))};
  }
  return {Outcome::inconclusive,
          fmt::format("not decided after {}; {}", plural(test.pairs(), "pair"),
                      more_words(test, pair_seconds, made))};
}

}  // namespace

stats::Pair rule_pair(const profile::PairedMetric& metric, const profile::NumberPair& pair) {
  return {in_pair(metric, pair.base), in_pair(metric, pair.candidate)};
}

std::vector<stats::Pair> rule_pairs(const profile::PairedMetric& metric) {
  return collect<stats::Pair>(metric.pairs,
                              [&](const auto& pair) { return rule_pair(metric, pair); });
}

const std::optional<MaxChange>& change_in(const Limit& limit, const unit::Metric& metric) {
  return metric.better == unit::Better::higher ? limit.max_drop : limit.max_increase;
}

double number_of(const profile::PairedMetric& metric, double in_pair) {
  if (metric.line_unit) return in_pair * *metric.line_unit;
  return std::exp(metric.metric.better == unit::Better::higher ? -in_pair : in_pair) - metric.added;
}

double change_of(const unit::Metric& metric, double effect) {
  return std::expm1(metric.better == unit::Better::higher ? -effect : effect);
}

std::optional<RunSpread> run_spread(const profile::PairedMetric& metric,
                                    std::span<const stats::Pair> pairs, double stats::Pair::*side) {
  const auto spread = stats::spread_of(collect<double>(pairs, side));
  if (!spread) return std::nullopt;
  return RunSpread{number_of(metric, spread->p10), number_of(metric, spread->median),
                   number_of(metric, spread->mean), number_of(metric, spread->p90)};
}

std::optional<stats::PairedRule> paired_rule(const Limit& limit,
                                             const profile::PairedMetric& metric,
                                             const Policy& policy) {
  constexpr double k_most = 0.9;
  const bool higher = metric.metric.better == unit::Better::higher;
  const auto& change = change_in(limit, metric.metric);
  if (!change || limit.mode == Mode::off) return std::nullopt;
  const auto effect = [&](const Amount& amount) {
    const double share = amount.relative
                             ? amount.value
                             : amount.value / (metric.warm_up.base.value_or(0) + metric.added);
    return !(share > 0) || (higher && share >= k_most) ? std::numeric_limits<double>::quiet_NaN()
           : higher                                    ? stats::effect_of_drop(share)
                                                       : stats::effect_of_increase(share);
  };
  stats::PairedRule rule;
  rule.tolerate = effect(change->tolerate);
  rule.limit = effect(change->amount);
  if (!(rule.tolerate > 0) || !(rule.limit > rule.tolerate)) return std::nullopt;
  rule.false_alarm =
      policy.false_alarm / static_cast<double>(std::max<std::int64_t>(1, policy.timed_metrics));
  rule.missed = policy.missed;
  rule.strict = policy.strict;
  rule.scale = metric.line_unit ? stats::Scale::line : stats::Scale::logarithm;
  return rule;
}

std::int64_t timed_metrics(std::span<const profile::CellFacts> cells,
                           std::span<const profile::PairedRuns> runs,
                           std::span<const LimitEntry> limits) {
  std::int64_t metrics = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (const profile::PairedMetric& metric : runs[i].metrics) {
      const Limit limit = resolve_limit(cells[i].cell, metric.metric, limits);
      if (limit.mode != Mode::gate) continue;
      metrics += limit.max_drop || limit.max_increase ? 1 : 0;
    }
  }
  return metrics;
}

std::string percent(double share) {
  return std::isfinite(share) ? fmt::format("{:+.1f} %", share * 100)
                              : std::string(share > 0 ? "+∞" : "-100 %");
}

void judge_pairs(const Question& question, const profile::PairedMetric& metric, Judgement& made) {
  const std::vector<stats::Pair> pairs = rule_pairs(metric);
  show_pairs(metric, pairs, made);
  made.pairs = static_cast<std::int64_t>(pairs.size());
  // A metric without a limit is shown with an interval all the same.
  Limit limit = made.limit;
  const bool judged = limit.max_drop || limit.max_increase;
  if (!judged) {
    const MaxChange shown{{0.10, true}, {0.05, true}};
    if (metric.metric.better == unit::Better::higher) {
      limit.max_drop = shown;
    } else {
      limit.max_increase = shown;
    }
  }
  const auto rule = paired_rule(limit, metric, question.policy);
  if (!rule) {
    made.verdict = Outcome::error;
    made.reason = fmt::format("the limit cannot be held to the base program's {}: {}",
                              metric.warm_up.base ? unit::show(metric.metric, *metric.warm_up.base)
                                                  : std::string("warm-up, which did not end"),
                              made.limit.words());
    return;
  }
  if (const auto interval = stats::effect_interval(pairs, *rule)) {
    // Better and worse change places where a rate is concerned.
    const double whole = metric.added + made.baseline.value_or(0);
    const double scale = metric.added > 0 ? whole / made.baseline.value_or(0) : 1;
    const double one = scale * change_of(metric.metric, interval->low);
    const double other = scale * change_of(metric.metric, interval->high);
    if (std::isfinite(scale)) made.change = scale * change_of(metric.metric, interval->estimate);
    if (std::isfinite(std::min(one, other)) && std::min(one, other) > -1)
      made.low = std::min(one, other);
    if (std::isfinite(std::max(one, other))) made.high = std::max(one, other);
  }
  if (!judged) return;
  stats::PairedTest test(*rule);
  for (const stats::Pair& pair : pairs) test.add(pair);
  const auto run = static_cast<double>(question.pairs->pairs);
  const double pair_seconds = question.pairs->seconds / (run + 1);  // 1: the warm-ups
  static_cast<Ruling&>(made) = decided(metric, test, *rule, pair_seconds, made);
  if (test.decision() != Decision::undecided) {
    made.pairs = static_cast<std::int64_t>(test.decided_after());
  }
}

}  // namespace weir::verdict
