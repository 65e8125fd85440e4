// Decides about one timed metric from pairs of runs.
#include "gate/stats/paired.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "gate/stats/spread.hpp"

namespace weir::stats {
namespace {

// Shifts in gaps: the effects that each evidence bets on, chosen by simulation
// (docs/explanation/decision-rule.md).
constexpr std::array<double, 2> k_slower = {2, 5};
constexpr std::array<double, 2> k_beyond = {1, 3};
constexpr std::array<double, 1> k_within = {2};

double gap_between_limits(const PairedRule& rule) { return rule.limit - rule.tolerate; }

// Returns true if the evidences "slower at all" and "beyond what is tolerated" suffice to act.
bool is_enough(const PairedRule& rule, double log_slower, double log_beyond) {
  const double sure = -std::log(rule.false_alarm);
  if (rule.strict) return log_beyond >= sure;
  return log_slower >= sure && log_beyond >= -std::log(rule.blamed);
}

// Suspect spreads that disagree with a decision delay it, up to twice the pairs that it took, and
// so do those that cannot be tested yet, because most runs took the same time. If they are unlike
// at a level of 1 in 200, there is no decision at all. From 64 pairs on the level is 1 in 2000: so
// many pairs show differences that are too small to matter.
constexpr double k_sure = 0.005, k_sure_of_many = 0.0005;
constexpr std::size_t k_many = 64;
constexpr std::size_t k_patience = 2;

// Returns true if fast runs, typical ones, slow ones and their mean all agree with `decided`.
bool all_parts_agree(const PairedRule& rule, Decision decided, const Spread& by) {
  const double all[] = {by.p10, by.median, by.mean, by.p90};
  return std::all_of(std::begin(all), std::end(all), [&](double effect) {
    return decided == Decision::fail ? effect > rule.tolerate : effect < rule.tolerate;
  });
}

// About how many more pairs it takes until a log evidence that grows evenly reaches `threshold`.
// Nothing if it does not grow.
std::optional<double> more_until(double pairs, double log_now, double threshold) {
  if (log_now >= threshold) return 0;
  if (log_now <= 0) return std::nullopt;
  return pairs * (threshold / log_now - 1);
}

// About how many more pairs it takes until both evidences suffice to report a change.
std::optional<double> more_until_change(const PairedRule& rule, double pairs,
                                        const Evidence& changed, const Evidence& beyond) {
  const double sure = -std::log(rule.false_alarm);
  if (rule.strict) return more_until(pairs, beyond.log_value(), sure);
  const auto first = more_until(pairs, changed.log_value(), sure);
  const auto second = more_until(pairs, beyond.log_value(), -std::log(rule.blamed));
  if (!first || !second) return std::nullopt;
  return std::max(*first, *second);
}

}  // namespace

double effect_of_drop(double share) { return -std::log1p(-share); }
double effect_of_increase(double share) { return std::log1p(share); }

std::size_t fewest_pairs(const PairedRule& rule) {
  return static_cast<std::size_t>(std::ceil(-std::log2(rule.missed))) + 1;
}

PairedTest::PairedTest(const PairedRule& rule)
    : rule_(rule),
      slower_(Side::larger, 0, gap_between_limits(rule), k_slower, rule.scale),
      beyond_(Side::larger, rule.tolerate, gap_between_limits(rule), k_beyond, rule.scale),
      within_(Side::smaller, rule.limit, gap_between_limits(rule), k_within, rule.scale) {}

// Adds a pair, and decides once the evidence suffices. If the spreads of the two sides differ, the
// decision waits for more pairs, or becomes `unlike` if fast and slow runs disagree.
void PairedTest::add(const Pair& pair) {
  all_.push_back(pair);
  slower_.add(pair);
  beyond_.add(pair);
  within_.add(pair);
  if (decision_ != Decision::undecided) return;
  decided_after_ = all_.size();
  if (reached_ == Decision::undecided) {
    if (is_enough(rule_, slower_.max_log_value(), beyond_.max_log_value())) {
      reached_ = Decision::fail;
    } else if (within_.max_log_value() >= -std::log(rule_.missed)) {
      reached_ = Decision::pass;
    }
    reached_after_ = all_.size();
  }
  if (reached_ == Decision::undecided) return;
  const auto spreads = compare_spreads(all_);
  const double p = spreads ? spreads->p.value_or(k_suspect_spread) : 1;
  if (p > k_suspect_spread || all_parts_agree(rule_, reached_, spreads->by)) {
    decision_ = reached_;
  } else if (p <= (all_.size() < k_many ? k_sure : k_sure_of_many)) {
    decision_ = Decision::unlike;
  } else if (all_.size() >= k_patience * reached_after_) {
    decision_ = reached_;
  }
}

std::optional<double> PairedTest::more_pairs() const {
  if (decision_ != Decision::undecided) return 0;
  const auto pairs = static_cast<double>(all_.size());
  const auto act = more_until_change(rule_, pairs, slower_, beyond_);
  const auto pass = more_until(pairs, within_.log_value(), -std::log(rule_.missed));
  if (!act || !pass) return act ? act : pass;
  return std::min(*act, *pass);
}

bool improved(std::span<const Pair> pairs, const PairedRule& rule) {
  return more_pairs_to_improved(pairs, rule) == 0;
}

std::optional<double> more_pairs_to_improved(std::span<const Pair> pairs, const PairedRule& rule) {
  Evidence faster(Side::smaller, 0, gap_between_limits(rule), k_slower, rule.scale);
  Evidence beyond(Side::smaller, -rule.tolerate, gap_between_limits(rule), k_beyond, rule.scale);
  for (const Pair& pair : pairs) {
    faster.add(pair);
    beyond.add(pair);
    if (is_enough(rule, faster.max_log_value(), beyond.max_log_value())) return 0;
  }
  return more_until_change(rule, static_cast<double>(pairs.size()), faster, beyond);
}

namespace {

struct LogEvidence {
  double log_value, max_log_value;
};

// The evidence against an effect of `null`, after all pairs.
LogEvidence evidence_for(std::span<const Pair> pairs, const PairedRule& rule, Side side,
                         double null) {
  Evidence evidence(side, null, gap_between_limits(rule), k_beyond, rule.scale);
  for (const Pair& pair : pairs) evidence.add(pair);
  return {evidence.log_value(), evidence.max_log_value()};
}

// Bisects for the point where `holds` changes from true (at `inside`) to false (towards `outside`),
// to within `resolution`. Returns `outside` if it holds there too.
double find_edge(double inside, double outside, double resolution, const auto& holds) {
  if (holds(outside)) return outside;
  while (std::abs(outside - inside) > resolution) {
    const double middle = (inside + outside) / 2;
    if (holds(middle)) {
      inside = middle;
    } else {
      outside = middle;
    }
  }
  return (inside + outside) / 2;
}

}  // namespace

// Returns the effects that the evidence does not reject at `level`, by bisection, and the most
// likely one. An end that no pair rejects is infinite; nothing if no pair has two times.
std::optional<EffectInterval> effect_interval(std::span<const Pair> pairs, const PairedRule& rule,
                                              double level) {
  const std::vector<double> differences = finite_differences(pairs);
  if (differences.empty()) return std::nullopt;
  auto [lowest, highest] = std::ranges::minmax(differences);
  const double gap = gap_between_limits(rule), resolution = gap / 200;
  // Beyond every difference seen, all pairs speak for one side.
  lowest -= 8 * gap;
  highest += 8 * gap;
  if (rule.scale == Scale::linear) {
    // On this scale differences are no effects. Beyond a factor of 20 nothing can be distinguished.
    constexpr double k_farthest = 3;
    lowest = -k_farthest;
    highest = k_farthest;
  }

  EffectInterval interval;
  interval.estimate = find_edge(lowest, highest, resolution, [&](double assumed_effect) {
    const double log_larger = evidence_for(pairs, rule, Side::larger, assumed_effect).log_value;
    return log_larger > evidence_for(pairs, rule, Side::smaller, assumed_effect).log_value;
  });
  const double threshold = std::log(2 / level);
  const auto side_edge = [&](Side side, double outside) {
    const double end =
        find_edge(interval.estimate, outside, resolution, [&](double assumed_effect) {
          return evidence_for(pairs, rule, side, assumed_effect).max_log_value < threshold;
        });
    if (end != outside) return end;
    return std::copysign(std::numeric_limits<double>::infinity(), outside - interval.estimate);
  };
  // The larger side speaks against small effects, the smaller side against large ones.
  interval.low = side_edge(Side::larger, lowest);
  interval.high = side_edge(Side::smaller, highest);
  return interval;
}

}  // namespace weir::stats
