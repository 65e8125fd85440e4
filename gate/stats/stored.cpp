#include "gate/stats/stored.hpp"

#include <cmath>

#include <fmt/format.h>

#include "gate/stats/quantile.hpp"

namespace weir::stats {
namespace {

struct Centre {
  double log_median = 0;
  double error = 0;  // standard error
};

std::optional<Centre> centre_of(std::span<const double> samples) {
  std::vector<double> logs;
  for (const double sample : samples) {
    if (!(sample > 0) || !std::isfinite(sample)) return std::nullopt;
    logs.push_back(std::log(sample));
  }
  if (logs.empty()) return std::nullopt;
  constexpr std::size_t k_enough = 3;
  const double least = logs.size() < k_enough
                           ? k_assumed_process_sd / std::sqrt(static_cast<double>(logs.size()))
                           : 0;
  const double seen = logs.size() < 2 ? 0 : median_standard_error(logs);
  return Centre{*median(logs), std::max(least, seen)};
}

// What is known of s, as equally spaced values of ln s and how likely each is.
struct Posterior {
  std::vector<double> variance, weight;  // s^2; weights add up to 1
};

Posterior posterior(const BetweenRuns& spread) {
  const double freedom = spread.runs - 1;
  const double seen = freedom > 0 ? std::sqrt(spread.sum_of_squares / freedom) : 0;
  if (seen <= 0 && spread.expected <= 0) return {{0}, {1}};  // runs never differ
  // Runs that were taken not to differ and do: nothing but what they show is known.
  const double middle = spread.expected > 0 ? spread.expected : seen;
  constexpr int k_steps = 160;
  constexpr double k_margin = 4 * k_prior_spread;
  const double lowest = (seen > 0 ? std::min(seen, middle) : middle) * std::exp(-k_margin);
  const double first = std::log(std::max(lowest, spread.least));
  const double last = std::log(std::max(seen, middle)) + k_margin;
  Posterior known;
  std::vector<double> logs;
  for (int i = 0; i <= k_steps; ++i) {
    const double at = first + (last - first) * i / k_steps;  // ln s
    const double off = (at - std::log(middle)) / k_prior_spread;
    known.variance.push_back(std::exp(2 * at));
    logs.push_back(-off * off / 2 - freedom * at -
                   spread.sum_of_squares / (2 * known.variance.back()));
  }
  const double highest = std::ranges::max(logs);
  double sum = 0;
  for (const double log : logs) {
    known.weight.push_back(std::exp(log - highest));
    sum += known.weight.back();
  }
  for (double& weight : known.weight) weight /= sum;
  return known;
}

double mean_variance(const Posterior& known) {
  return std::inner_product(known.variance.begin(), known.variance.end(), known.weight.begin(),
                            0.0);
}

// Half the interval.
double reach(const BetweenRuns& spread) {
  const Posterior known = posterior(spread);
  const auto beyond = [&](double r) {
    double chance = 0;
    for (std::size_t i = 0; i < known.variance.size(); ++i) {
      const double variance = known.variance[i] * (1 + 1 / spread.runs) + spread.excess;
      if (variance > 0) chance += known.weight[i] * std::erfc(r / std::sqrt(2 * variance));
    }
    return chance;
  };
  double low = 0, high = 1e-6;
  while (beyond(high) > spread.level) high *= 2;
  constexpr int k_halvings = 60;
  for (int i = 0; i < k_halvings; ++i) {
    const double middle = (low + high) / 2;
    if (beyond(middle) > spread.level) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

std::string percent(double share) { return fmt::format("{:.2g} %", share * 100); }

}  // namespace

double median_standard_error(std::span<const double> samples) {
  std::vector<double> sorted(samples.begin(), samples.end());
  std::ranges::sort(sorted);
  const double n = static_cast<double>(sorted.size());
  const auto rank = static_cast<std::size_t>(std::max(1.0, std::round((n + 1) / 2 - std::sqrt(n))));
  // Chance that fewer than `rank` of n fair coins show heads: the interval's one-sided miss.
  double miss = 0, term = std::exp2(-n);
  for (std::size_t i = 0; i < rank; ++i) {
    miss += term;
    term *= (n - static_cast<double>(i)) / static_cast<double>(i + 1);
  }
  const double width = sorted[sorted.size() - rank] - sorted[rank - 1];
  // Over some thousand samples 2^-n underflows; there the rank is sqrt(n) = 2 sd off the middle.
  const double z = miss > 0 ? -normal_quantile(miss) : 2.0;
  return width / (2 * z);
}

std::optional<MedianInterval> median_interval(std::span<const double> samples, double level) {
  const auto centre = centre_of(samples);
  if (!centre) return std::nullopt;
  const double reach = normal_quantile(1 - level / 2) * centre->error;
  return MedianInterval{std::exp(centre->log_median), std::exp(centre->log_median - reach),
                        std::exp(centre->log_median + reach)};
}

std::optional<StoredInterval> compare_with_stored(std::span<const std::vector<double>> sessions,
                                                  std::span<const double> current,
                                                  const StoredPolicy& policy) {
  const auto candidate = centre_of(current);
  std::vector<Centre> centres;
  for (const std::vector<double>& samples : sessions) {
    if (samples.empty()) continue;
    const auto centre = centre_of(samples);
    if (!centre) return std::nullopt;
    centres.push_back(*centre);
  }
  if (!candidate || centres.empty()) return std::nullopt;

  BetweenRuns spread{static_cast<double>(centres.size())};
  double mean = 0, errors = 0, worst = 0;
  for (const Centre& centre : centres) {
    mean += centre.log_median / spread.runs;
    errors += centre.error * centre.error;
    worst = std::max(worst, centre.error * centre.error);
  }
  for (const Centre& centre : centres) {
    spread.sum_of_squares += (centre.log_median - mean) * (centre.log_median - mean);
  }
  const double own = candidate->error * candidate->error;
  // A lognormal's root mean square is its middle times e^(spread^2).
  const double middle = policy.assumed_run_sd * std::exp(-k_prior_spread * k_prior_spread);
  spread.expected = std::sqrt(middle * middle + (errors + own) / (spread.runs + 1));
  spread.level = policy.level;
  spread.least = policy.assumed_run_sd > 0 ? k_least_run_sd : 0;
  spread.excess = std::max(0.0, own - worst);

  const double d = candidate->log_median - mean;
  const double half = reach(spread);
  StoredInterval answer;
  answer.sessions = centres.size();
  answer.spread = spread;
  answer.change = std::expm1(d);
  answer.low = std::expm1(d - half);
  answer.high = std::expm1(d + half);
  answer.stored = std::exp(mean);
  answer.current = std::exp(candidate->log_median);
  answer.between = std::sqrt(mean_variance(posterior(spread)));
  answer.words = centres.size() == 1 ? fmt::format("1 stored run; runs are assumed to differ by {}",
                                                   percent(answer.between))
                                     : fmt::format("{} stored runs, which differ by about {}",
                                                   centres.size(), percent(answer.between));
  return answer;
}

std::optional<std::size_t> more_stored_runs(const StoredInterval& interval, double limit,
                                            std::size_t most) {
  const double away = std::fabs(std::log1p(interval.change) - std::log1p(limit));
  // Each further run is taken to be off by the middle of what is known of s.
  const Posterior known = posterior(interval.spread);
  double middle = 0;
  for (std::size_t i = 0; i < known.variance.size(); ++i) {
    if (known.weight[i] > 0) middle += known.weight[i] * std::log(known.variance[i]);
  }
  BetweenRuns more = interval.spread;
  for (std::size_t runs = interval.sessions + 1; runs <= most; ++runs) {
    more.runs = static_cast<double>(runs);
    more.sum_of_squares =
        interval.spread.sum_of_squares + (more.runs - interval.spread.runs) * std::exp(middle);
    if (reach(more) < away) return runs - interval.sessions;
  }
  return std::nullopt;
}

}  // namespace weir::stats
