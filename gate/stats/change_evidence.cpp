#include <array>
#include <cmath>

#include "gate/stats/change_search.hpp"
#include "gate/stats/quantile.hpp"

namespace weir::stats {
namespace {

// The normal quantile, in steps: a score is looked up some hundred times a point.
constexpr std::size_t k_score_steps = 8192;
using ScoreTable = std::array<float, k_score_steps>;
const ScoreTable& score_table() {
  static const ScoreTable table = [] {
    ScoreTable made{};
    for (std::size_t i = 0; i < made.size(); ++i) {
      const double p = (static_cast<double>(i) + 0.5) / static_cast<double>(made.size());
      made[i] = static_cast<float>(normal_quantile(p));
    }
    return made;
  }();
  return table;
}

double share_of_scores(std::size_t n) {
  return static_cast<double>(k_score_steps) / (2 * static_cast<double>(n));
}
float score_at(const ScoreTable& table, std::int32_t twice_rank, double share) {
  return table[static_cast<std::size_t>((twice_rank + 1) * share)];
}

// Autocorrelations are underestimated where a level was taken out: by about this much over n.
constexpr double k_bias_next = 3, k_bias_many = 1.5;
// An estimate counts where it is above so many standard errors, and is raised by so many: found by
// simulation, together with the thresholds (benchmarks/change_points --calibrate).
constexpr double k_clear_next = 1.25, k_raise_next = 1.5;
constexpr double k_clear_many = 2.25, k_raise_many = 0.5;
// Below so many points an estimate says little: it need not be clear to count, and is raised more.
constexpr double k_points_known = 120;

}  // namespace

std::vector<Order> orders_of(std::span<const double> values) {
  const std::vector<std::uint32_t> places = places_in_order(values);
  std::vector<Order> orders(values.size());
  Order order = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (i > 0 && values[places[i]] != values[places[i - 1]]) ++order;
    orders[places[i]] = order;
  }
  return orders;
}

double mean_of(std::span<const float> scores) {
  if (scores.empty()) return 0;
  return std::accumulate(scores.begin(), scores.end(), 0.0) / static_cast<double>(scores.size());
}

void Memory::add(const Memory& other) {
  squares += other.squares;
  next += other.next;
  slow += other.slow;
  points += other.points;
  told = std::max(told, other.told);
}

Memory Memory::with(const Memory& other) const {
  Memory both = *this;
  both.add(other);
  return both;
}

double Memory::of_next() const {
  if (told >= 0) return std::min(told, 0.95);
  if (squares <= 0 || points < 2) return 0;
  const double error = 1 / std::sqrt(points);
  const double estimate = next / squares + k_bias_next / points;
  const double unknown = std::max(0.0, (k_points_known - points) / k_points_known);
  const double clear = k_clear_next - 1.5 * (k_clear_next + 2) * unknown;
  if (estimate <= clear * error) return 0;
  return std::clamp(estimate + k_raise_next * (1 + unknown) * error, 0.0, 0.95);
}

double Memory::of_many() const {
  if (told >= 0 || squares <= 0 || points < 2) return 0;
  const double lags = static_cast<double>(k_lags);
  const double error = 1 / std::sqrt(lags * points);
  const double estimate = slow / squares / lags + k_bias_many / points;
  if (estimate <= k_clear_many * error) return 0;
  return std::clamp(estimate + k_raise_many * error, 0.0, 0.95);
}

namespace {

// Variance of the difference of two neighbouring means, over what it were without correlation.
template <class VarianceOfMean>
double inflated(double before, double after, const VarianceOfMean& variance, double shared) {
  const double plain = 1 / before + 1 / after;
  return std::max(1.0, (variance(before) + variance(after) - 2 * shared) / plain);
}

}  // namespace

double inflation_next(double correlation, double before, double after) {
  const double r = correlation;
  if (r <= 0) return 1;
  const auto variance = [r](double n) {
    return ((1 + r) / (1 - r) - 2 * r * (1 - std::pow(r, n)) / ((1 - r) * (1 - r) * n)) / n;
  };
  const double shared = r * (1 - std::pow(r, before)) * (1 - std::pow(r, after)) /
                        ((1 - r) * (1 - r) * before * after);
  return inflated(before, after, variance, shared);
}

// Correlation that holds for k_lags points and is gone after three times as many.
double inflation_many(double correlation, double before, double after) {
  if (correlation <= 0) return 1;
  constexpr std::size_t k_gone = 3 * k_lags;
  const auto at = [correlation](std::size_t lag) {
    if (lag <= k_lags) return correlation;
    return correlation * static_cast<double>(k_gone - lag) / static_cast<double>(k_gone - k_lags);
  };
  const auto variance = [&at](double n) {
    double sum = 1;
    for (std::size_t lag = 1; lag < k_gone && static_cast<double>(lag) < n; ++lag) {
      sum += 2 * (1 - static_cast<double>(lag) / n) * at(lag);
    }
    return sum / n;
  };
  double shared = 0;
  for (std::size_t lag = 1; lag < k_gone; ++lag) {
    shared += std::min({static_cast<double>(lag), before, after}) * at(lag);
  }
  return inflated(before, after, variance, shared / (before * after));
}

double inflation(const Memory& memory, double before, double after) {
  return std::max(inflation_next(memory.of_next(), before, after),
                  inflation_many(memory.of_many(), before, after));
}

void scores_of_ranks(std::span<const std::int32_t> twice_ranks, std::size_t n,
                     std::vector<float>& scores) {
  const ScoreTable& table = score_table();
  const double share = share_of_scores(n);
  scores.resize(twice_ranks.size());
  for (std::size_t i = 0; i < scores.size(); ++i) {
    scores[i] = score_at(table, twice_ranks[i], share);
  }
}

std::vector<float> scores_of(std::span<const Order> orders) {
  std::vector<float> scores;
  scores_of_ranks(twice_ranks(orders), orders.size(), scores);
  return scores;
}

double squares_of_scores(std::size_t n) {
  const ScoreTable& table = score_table();
  const double share = share_of_scores(n);
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double score = score_at(table, static_cast<std::int32_t>(2 * i), share);
    sum += score * score;
  }
  return sum;
}

Split best_split(std::span<const float> last, std::size_t n, double mean, std::size_t least_before,
                 std::size_t least_after) {
  Split best;
  if (n < least_before + least_after) return best;
  const std::size_t most = std::min(last.size(), n - least_before);
  const double whole = static_cast<double>(n);
  double sum = 0, largest = -1;  // of sum^2 / (after * before)
  for (std::size_t after = 1; after <= most; ++after) {
    sum += last[last.size() - after] - mean;
    if (after < least_after) continue;
    const double held = static_cast<double>(after);
    const double size = sum * sum / (held * (whole - held));
    if (size > largest) {
      largest = size;
      best = {after, size * whole};
    }
  }
  return best;
}

Split best_split(std::span<const float> scores, std::size_t least_before, std::size_t least_after) {
  return best_split(scores, scores.size(), mean_of(scores), least_before, least_after);
}

Split split_at(std::span<const float> scores, std::size_t after) {
  const std::size_t before = scores.size() - after;
  if (before == 0 || after == 0) return {after, 0};
  // Of all splits, the one that leaves so many on each side.
  return best_split(scores, before, after);
}

Memory memory_of_split(std::span<const float> scores, std::size_t after) {
  const std::size_t before = scores.size() - after;
  const double level_before = mean_of(scores.first(before)),
               level_after = mean_of(scores.last(after));
  const auto rest = [&](std::size_t i) {
    return scores[i] - (i < before ? level_before : level_after);
  };
  Memory memory;
  memory.points = static_cast<double>(scores.size());
  double last = 0, recent = 0;  // the point before, and the sum of the last k_lags
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const double at = rest(i);
    memory.squares += at * at;
    memory.next += at * last;
    memory.slow += at * recent;
    last = at;
    recent += at;
    if (i >= k_lags) recent -= rest(i - k_lags);
  }
  return memory;
}

double distance(const Split& split, const Memory& own, const Memory& memory) {
  const double n = own.points, after = static_cast<double>(split.after);
  // Nothing is left but what splits: as far apart as n points can say.
  const double rest = std::max(own.squares, 1e-9 * n);
  return std::sqrt((n - 2) * split.between / rest / inflation(memory, n - after, after));
}

namespace {

// Chance that a standard normal number is farther out than z, on either side.
double outside(double z) { return std::erfc(z / std::sqrt(2.0)); }
double outside_quantile(double p) {
  return p >= 1 ? 0.0 : -normal_quantile(std::max(p, 1e-300) / 2);
}

// The largest of many neighbouring normal numbers exceeds z with a chance that goes like
// z^2 * outside(z) (Siegmund, Sequential Analysis, 1985, chapter IV), times how many there are; few
// points add what one over their number has to say. The four constants are by simulation:
// benchmarks/change_points --calibrate.
constexpr double k_once = 0.40, k_once_few = 0;
constexpr double k_night = 0.27, k_night_few = 8;

// How many: what the logarithm of after / before ranges over.
double many_once(double n) {
  constexpr double k_ends =
      static_cast<double>(k_points_before) * static_cast<double>(k_points_after);
  return k_once * std::log(std::max(2.0, n * n / k_ends));
}
double many_news(double n) {
  constexpr double k_most = static_cast<double>(k_news), k_least = k_points_after;
  return k_once * std::log(k_most * (n - k_least) / (k_least * (n - k_most)));
}

double threshold(double p, double many) {
  double z = 4;
  for (int i = 0; i < 20; ++i) z = std::max(1.5, outside_quantile(p / (many * z * z)));
  return z;
}

double chance(double z, double many) {
  return z <= 1.5 ? 1.0 : std::min(1.0, many * z * z * outside(z));
}

}  // namespace

double threshold_once(double p, double n) { return threshold(p, many_once(n)) + k_once_few / n; }
OnceThresholds thresholds_once(double p, double n) {
  if (n < 3 * static_cast<double>(k_news)) return {threshold_once(p, n), threshold_once(p, n)};
  return {threshold(p / 2, many_news(n)) + k_once_few / n, threshold_once(p / 2, n)};
}
NightlyThreshold::NightlyThreshold(double p) : long_run_(threshold(p, k_night)) {}
double NightlyThreshold::at(double n) const { return long_run_ + k_night_few / n; }
double chance_left(double p, const Memory& told) {
  constexpr double k_left = 0.6;  // by simulation, as above
  return told.told >= 0 ? k_left * p : p;
}
double chance_once(double z, double n) { return chance(z - k_once_few / n, many_once(n)); }
double chance_nightly(double z, double n) { return chance(z - k_night_few / n, k_night); }

}  // namespace weir::stats
