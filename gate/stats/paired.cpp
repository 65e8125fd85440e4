#include "gate/stats/paired.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "gate/stats/spread.hpp"

namespace weir::stats {
namespace {

// Shifts in gaps: what each evidence hopes to see, chosen by simulation
// (docs/explanation/decision-rule.md).
constexpr std::array<double, 2> k_slower = {2, 5};
constexpr std::array<double, 2> k_beyond = {1, 3};
constexpr std::array<double, 1> k_within = {2};

double gap_of(const PairedRule& rule) { return rule.limit - rule.tolerate; }

// Whether the evidences "slower at all" and "beyond what is tolerated" are enough to act on.
bool enough(const PairedRule& rule, double log_slower, double log_beyond) {
  const double sure = -std::log(rule.false_alarm);
  if (rule.strict) return log_beyond >= sure;
  return log_slower >= sure && log_beyond >= -std::log(rule.blamed);
}

// Spreads that are suspect hold a decision that they disagree with up to twice the pairs it took.
// They end it in 1 of 200, and of many pairs in 1 of 2000: those show a difference that matters all
// the same, and where they are needed noise alone makes the parts of the two sides disagree.
constexpr double k_sure = 0.005, k_sure_of_many = 0.0005;
constexpr std::size_t k_many = 64;
constexpr std::size_t k_patience = 2;

// Do fast runs, typical ones, slow ones and their mean all say what was decided?
bool agree(const PairedRule& rule, Decision decided, const Spread& by) {
  const double all[] = {by.p10, by.median, by.mean, by.p90};
  return std::all_of(std::begin(all), std::end(all), [&](double effect) {
    return decided == Decision::fail ? effect > rule.tolerate : effect < rule.tolerate;
  });
}

std::optional<double> more_for(double pairs, double log_now, double threshold) {
  if (log_now >= threshold) return 0;
  if (log_now <= 0) return std::nullopt;
  return pairs * (threshold / log_now - 1);
}

// Pairs until both evidences of acting on a change are enough.
std::optional<double> more_to_act(const PairedRule& rule, double pairs, const Evidence& changed,
                                  const Evidence& beyond) {
  const double sure = -std::log(rule.false_alarm);
  if (rule.strict) return more_for(pairs, beyond.log_value(), sure);
  const auto first = more_for(pairs, changed.log_value(), sure);
  const auto second = more_for(pairs, beyond.log_value(), -std::log(rule.blamed));
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
      slower_(Side::larger, 0, gap_of(rule), k_slower, rule.scale),
      beyond_(Side::larger, rule.tolerate, gap_of(rule), k_beyond, rule.scale),
      within_(Side::smaller, rule.limit, gap_of(rule), k_within, rule.scale) {}

void PairedTest::add(const Pair& pair) {
  all_.push_back(pair);
  slower_.add(pair);
  beyond_.add(pair);
  within_.add(pair);
  if (decision_ != Decision::undecided) return;
  decided_after_ = all_.size();
  if (reached_ == Decision::undecided) {
    if (enough(rule_, slower_.log_most(), beyond_.log_most())) {
      reached_ = Decision::fail;
    } else if (within_.log_most() >= -std::log(rule_.missed)) {
      reached_ = Decision::pass;
    }
    reached_after_ = all_.size();
  }
  if (reached_ == Decision::undecided) return;
  const auto spreads = compare_spreads(all_);
  if (!spreads || spreads->p > k_suspect_spread || agree(rule_, reached_, spreads->by)) {
    decision_ = reached_;
  } else if (spreads->p <= (all_.size() < k_many ? k_sure : k_sure_of_many)) {
    decision_ = Decision::unlike;
  } else if (all_.size() >= k_patience * reached_after_) {
    decision_ = reached_;
  }
}

std::optional<double> PairedTest::more_pairs() const {
  if (decision_ != Decision::undecided) return 0;
  const auto pairs = static_cast<double>(all_.size());
  const auto act = more_to_act(rule_, pairs, slower_, beyond_);
  const auto pass = more_for(pairs, within_.log_value(), -std::log(rule_.missed));
  if (!act || !pass) return act ? act : pass;
  return std::min(*act, *pass);
}

bool improved(std::span<const Pair> pairs, const PairedRule& rule) {
  return more_pairs_to_improved(pairs, rule) == 0;
}

std::optional<double> more_pairs_to_improved(std::span<const Pair> pairs, const PairedRule& rule) {
  Evidence faster(Side::smaller, 0, gap_of(rule), k_slower, rule.scale);
  Evidence beyond(Side::smaller, -rule.tolerate, gap_of(rule), k_beyond, rule.scale);
  for (const Pair& pair : pairs) {
    faster.add(pair);
    beyond.add(pair);
    if (enough(rule, faster.log_most(), beyond.log_most())) return 0;
  }
  return more_to_act(rule, static_cast<double>(pairs.size()), faster, beyond);
}

namespace {

struct Weighed {
  double now, most;
};

Weighed weigh(std::span<const Pair> pairs, const PairedRule& rule, Side side, double null) {
  Evidence evidence(side, null, gap_of(rule), k_beyond, rule.scale);
  for (const Pair& pair : pairs) evidence.add(pair);
  return {evidence.log_value(), evidence.log_most()};
}

// Where `holds` (true at `inside`, false from some point on towards `outside`) ends.
template <typename Holds>
double edge(double inside, double outside, double resolution, const Holds& holds) {
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

std::optional<EffectInterval> effect_interval(std::span<const Pair> pairs, const PairedRule& rule,
                                              double level) {
  const std::vector<double> differences = finite_differences(pairs);
  if (differences.empty()) return std::nullopt;
  auto [least, most] = std::ranges::minmax(differences);
  const double gap = gap_of(rule), resolution = gap / 200;
  // Beyond every difference seen, all pairs speak for one side.
  least -= 8 * gap;
  most += 8 * gap;
  if (rule.scale == Scale::line) {
    // Differences are no effects there. Beyond a factor of 20 nothing is told apart.
    constexpr double k_farthest = 3;
    least = -k_farthest;
    most = k_farthest;
  }

  EffectInterval interval;
  interval.estimate = edge(least, most, resolution, [&](double null) {
    return weigh(pairs, rule, Side::larger, null).now > weigh(pairs, rule, Side::smaller, null).now;
  });
  const double threshold = std::log(2 / level);
  const auto side_edge = [&](Side side, double outside) {
    const double found = edge(interval.estimate, outside, resolution, [&](double null) {
      return weigh(pairs, rule, side, null).most < threshold;
    });
    return found == outside
               ? std::copysign(std::numeric_limits<double>::infinity(), outside - interval.estimate)
               : found;
  };
  // The larger side speaks against small effects, the smaller side against large ones.
  interval.low = side_edge(Side::larger, least);
  interval.high = side_edge(Side::smaller, most);
  return interval;
}

}  // namespace weir::stats
