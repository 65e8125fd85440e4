// Compares two small sets of counts by ranks, with the exact distribution over all splits.
#include "gate/stats/rank_test.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace weir::stats {
namespace {

constexpr std::size_t k_max_exact = 60;  // values; the table then has some 100,000 sums

// Returns twice the mean rank of each value among all: whole numbers, also of equal values.
std::vector<std::size_t> doubled_ranks(const std::vector<double>& values) {
  std::vector<double> sorted = values;
  std::ranges::sort(sorted);
  std::vector<std::size_t> ranks;
  for (const double value : values) {
    const auto equal = std::ranges::equal_range(sorted, value);
    const auto first = static_cast<std::size_t>(equal.begin() - sorted.begin()) + 1;
    ranks.push_back(2 * first + equal.size() - 1);
  }
  return ranks;
}

// Returns the share of all choices of `chosen` ranks whose sum is at least `sum`. Shares, not
// numbers of choices, stand in the table: no size overflows.
double exact_chance(const std::vector<std::size_t>& ranks, std::size_t chosen, std::size_t sum) {
  const std::size_t total = std::accumulate(ranks.begin(), ranks.end(), std::size_t{0});
  // share[k][s]: of all splits of the ranks so far, those that chose k of them with sum s.
  std::vector<std::vector<double>> share(chosen + 1, std::vector<double>(total + 1, 0.0));
  share[0][0] = 1;
  const auto count = static_cast<double>(ranks.size());
  std::size_t seen = 0;
  for (const std::size_t rank : ranks) {
    for (std::size_t k = std::min(seen + 1, chosen); k-- > 0;) {
      // With k of `seen` chosen, the next is chosen as often as it is in all splits.
      const double left = count - static_cast<double>(seen);
      const double take = static_cast<double>(chosen - k) / left;
      for (std::size_t s = 0; s + rank <= total; ++s) {
        if (share[k][s] > 0) share[k + 1][s + rank] += share[k][s] * take;
      }
      for (double& stays : share[k]) stays *= 1 - take;
    }
    ++seen;
  }
  return std::accumulate(share[chosen].begin() + static_cast<std::ptrdiff_t>(sum),
                         share[chosen].end(), 0.0);
}

double normal_chance(const std::vector<std::size_t>& ranks, std::size_t chosen, std::size_t sum) {
  const auto count = static_cast<double>(ranks.size()), picks = static_cast<double>(chosen);
  double mean = 0, squares = 0;
  for (const std::size_t rank : ranks) mean += static_cast<double>(rank) / count;
  for (const std::size_t rank : ranks) {
    squares += (static_cast<double>(rank) - mean) * (static_cast<double>(rank) - mean);
  }
  const double variance = picks * (count - picks) / (count * (count - 1)) * squares;
  if (variance <= 0) return 1;
  const double distance = static_cast<double>(sum) - 1 - picks * mean;  // half a rank is 1
  return std::erfc(distance / std::sqrt(2 * variance)) / 2;
}

// Returns how many values of the candidate lie far above the base.
std::size_t count_far_above(std::span<const double> base, std::span<const double> candidate,
                            const RankPolicy& policy) {
  constexpr std::size_t k_enough = 3;
  if (base.size() < k_enough) return 0;
  const auto [low, high] = std::ranges::minmax(base);
  const double limit = high + policy.far_widths * std::max(high - low, 1.0);
  return static_cast<std::size_t>(
      std::ranges::count_if(candidate, [&](double value) { return value > limit; }));
}

std::vector<double> scaled_by(std::span<const double> values, double factor, double shift = 0) {
  std::vector<double> result;
  for (const double value : values) result.push_back(factor * value + shift);
  return result;
}

std::vector<double> repeated(std::span<const double> values, std::size_t count) {
  std::vector<double> result(values.begin(), values.end());
  while (result.size() < count) result.push_back(result[result.size() - values.size()]);
  return result;
}

}  // namespace

double chance_of_higher_ranks(std::span<const double> base, std::span<const double> candidate) {
  if (base.empty() || candidate.empty()) return 1;
  std::vector<double> values(candidate.begin(), candidate.end());
  values.insert(values.end(), base.begin(), base.end());
  const std::vector<std::size_t> ranks = doubled_ranks(values);
  const auto end_of_candidate = ranks.begin() + static_cast<std::ptrdiff_t>(candidate.size());
  const std::size_t sum = std::accumulate(ranks.begin(), end_of_candidate, std::size_t{0});
  return std::min(1.0, values.size() <= k_max_exact ? exact_chance(ranks, candidate.size(), sum)
                                                    : normal_chance(ranks, candidate.size(), sum));
}

double change_to_find(std::span<const double> base) {
  constexpr double k_share = 1.0 / 3;
  if (base.empty()) return 1;
  const auto [low, high] = std::ranges::minmax(base);
  return std::max(1.0, k_share * (high - low));
}

SetComparison compare_sets(std::span<const double> base, std::span<const double> candidate,
                           bool watches_rise, const RankPolicy& policy) {
  // Falls are rises of the negative values.
  const std::vector<double> low_base = scaled_by(base, -1),
                            low_candidate = scaled_by(candidate, -1);
  constexpr double k_rounding = 1e-9;
  const double rise = chance_of_higher_ranks(base, candidate);
  const double fall = chance_of_higher_ranks(low_base, low_candidate);
  const std::size_t far_above = count_far_above(base, candidate, policy),
                    far_below = count_far_above(low_base, low_candidate, policy);
  const bool is_above = !candidate.empty() && far_above == candidate.size();
  const bool is_below = !candidate.empty() && far_below == candidate.size();
  if (rise <= policy.false_alarm + k_rounding || is_above) return {Shift::rose, rise};
  if (fall <= policy.false_alarm + k_rounding || is_below) return {Shift::fell, fall};
  // A base that moved by that change, in the direction that matters, must lie beyond the candidate.
  const double direction = watches_rise ? 1 : -1;
  const std::vector<double> moved = scaled_by(base, direction, change_to_find(base));
  const double reached = chance_of_higher_ranks(scaled_by(candidate, direction), moved);
  const bool is_excluded = reached <= policy.missed + k_rounding;
  // Ranks do not show how much the few count that count more.
  const std::size_t far = watches_rise ? far_above : far_below;
  const bool is_same = is_excluded && far == 0;
  return {is_same ? Shift::none : Shift::undecided, std::min(rise, fall), far};
}

std::size_t fewest_values(std::size_t others, double level) {
  double splits = 1;
  std::size_t count = 0;
  while (others > 0 && splits * level < 1) {
    ++count;
    splits *= static_cast<double>(others + count) / static_cast<double>(count);
  }
  return count;
}

std::optional<std::size_t> values_to_decide(std::span<const double> base,
                                            std::span<const double> candidate, bool watches_rise,
                                            bool repeats_base, const RankPolicy& policy) {
  if (base.empty() || candidate.empty()) return std::nullopt;
  for (const std::size_t count : {5, 7, 10, 15, 20, 30, 50, 100}) {
    if (count <= candidate.size()) continue;
    const auto more = repeated(candidate, count);
    const auto more_of_base = repeated(base, repeats_base ? count : base.size());
    if (compare_sets(more_of_base, more, watches_rise, policy).shift != Shift::undecided)
      return count;
  }
  return std::nullopt;
}

}  // namespace weir::stats
