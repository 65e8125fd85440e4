// Compares a run with stored runs, by a posterior of how much runs differ.
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

// Returns the median of the samples' logarithms and its standard error; nothing if a sample is not
// above 0. With fewer than three samples an assumed spread of processes bounds the error.
std::optional<Centre> find_centre(std::span<const double> samples) {
  std::vector<double> logs;
  for (const double sample : samples) {
    if (!(sample > 0) || !std::isfinite(sample)) return std::nullopt;
    logs.push_back(std::log(sample));
  }
  if (logs.empty()) return std::nullopt;
  constexpr std::size_t k_enough = 3;
  const double min_error = logs.size() < k_enough
                               ? k_assumed_process_sd / std::sqrt(static_cast<double>(logs.size()))
                               : 0;
  const double error = logs.size() < 2 ? 0 : median_standard_error(logs);
  return Centre{*median(logs), std::max(min_error, error)};
}

// The posterior of s, as equally spaced values of ln s and how likely each is.
struct Posterior {
  std::vector<double> variance, weight;  // s^2; weights add up to 1
};

// Returns the posterior of s, the standard deviation between runs: variances on a grid of ln s,
// each with its weight. Weights add up to 1.
Posterior posterior(const BetweenRuns& spread) {
  const double freedom = spread.runs - 1;
  const double observed_sd = freedom > 0 ? std::sqrt(spread.sum_of_squares / freedom) : 0;
  if (observed_sd <= 0 && spread.expected <= 0) return {{0}, {1}};  // runs never differ
  // Runs that were assumed not to differ, and do: only their own spread is known.
  const double expected_sd = spread.expected > 0 ? spread.expected : observed_sd;
  constexpr int k_steps = 160;
  constexpr double k_margin = 4 * k_prior_spread;
  const double lowest =
      (observed_sd > 0 ? std::min(observed_sd, expected_sd) : expected_sd) * std::exp(-k_margin);
  const double first = std::log(std::max(lowest, spread.min_sd));
  const double last = std::log(std::max(observed_sd, expected_sd)) + k_margin;
  Posterior result;
  std::vector<double> log_densities;
  for (int i = 0; i <= k_steps; ++i) {
    const double log_sd = first + (last - first) * i / k_steps;  // ln s
    const double prior_distance = (log_sd - std::log(expected_sd)) / k_prior_spread;
    result.variance.push_back(std::exp(2 * log_sd));
    log_densities.push_back(-prior_distance * prior_distance / 2 - freedom * log_sd -
                            spread.sum_of_squares / (2 * result.variance.back()));
  }
  const double highest = std::ranges::max(log_densities);
  double sum = 0;
  for (const double log_density : log_densities) {
    result.weight.push_back(std::exp(log_density - highest));
    sum += result.weight.back();
  }
  for (double& weight : result.weight) weight /= sum;
  return result;
}

double mean_variance(const Posterior& posterior) {
  return std::inner_product(posterior.variance.begin(), posterior.variance.end(),
                            posterior.weight.begin(), 0.0);
}

// Returns the chance that runs differ by more than r.
double chance_beyond(const BetweenRuns& spread, const Posterior& s, double r) {
  double chance = 0;
  for (std::size_t i = 0; i < s.variance.size(); ++i) {
    const double variance = s.variance[i] * (1 + 1 / spread.runs) + spread.excess;
    if (variance > 0) chance += s.weight[i] * std::erfc(r / std::sqrt(2 * variance));
  }
  return chance;
}

// Returns half the width of the interval for a change: the smallest difference between runs that
// is exceeded with probability `spread.level`, by bisection.
double half_width(const BetweenRuns& spread) {
  const Posterior between_runs = posterior(spread);
  double low = 0, high = 1e-6;
  while (chance_beyond(spread, between_runs, high) > spread.level) high *= 2;
  constexpr int k_halvings = 60;
  for (int i = 0; i < k_halvings; ++i) {
    const double middle = (low + high) / 2;
    if (chance_beyond(spread, between_runs, middle) > spread.level) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

std::string percent_text(double share) { return fmt::format("{:.2g} %", share * 100); }

}  // namespace

// Returns the median's standard error, from the order statistics around it: no distribution is
// assumed. Needs two samples.
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
  const auto centre = find_centre(samples);
  if (!centre) return std::nullopt;
  const double half_width = normal_quantile(1 - level / 2) * centre->error;
  return MedianInterval{std::exp(centre->log_median), std::exp(centre->log_median - half_width),
                        std::exp(centre->log_median + half_width)};
}

std::optional<StoredInterval> compare_with_stored(std::span<const std::vector<double>> sessions,
                                                  std::span<const double> current,
                                                  const StoredPolicy& policy) {
  const auto candidate = find_centre(current);
  std::vector<Centre> centres;
  for (const std::vector<double>& samples : sessions) {
    if (samples.empty()) continue;
    const auto centre = find_centre(samples);
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
  spread.min_sd = policy.assumed_run_sd > 0 ? k_min_run_sd : 0;
  spread.excess = std::max(0.0, own - worst);

  const double d = candidate->log_median - mean;
  const double half = half_width(spread);
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
                                                   percent_text(answer.between))
                                     : fmt::format("{} stored runs, which differ by about {}",
                                                   centres.size(), percent_text(answer.between));
  return answer;
}

// Returns how many more stored runs, like those that are there, would put `limit` outside the
// interval; nothing if max_runs in all would not.
std::optional<std::size_t> more_stored_runs(const StoredInterval& interval, double limit,
                                            std::size_t max_runs) {
  const double log_distance = std::fabs(std::log1p(interval.change) - std::log1p(limit));
  // Each further run is assumed to be off by the middle of the posterior of s.
  const Posterior between_runs = posterior(interval.spread);
  double mean_log_variance = 0;
  for (std::size_t i = 0; i < between_runs.variance.size(); ++i) {
    if (between_runs.weight[i] > 0)
      mean_log_variance += between_runs.weight[i] * std::log(between_runs.variance[i]);
  }
  BetweenRuns enlarged = interval.spread;
  for (std::size_t runs = interval.sessions + 1; runs <= max_runs; ++runs) {
    enlarged.runs = static_cast<double>(runs);
    enlarged.sum_of_squares = interval.spread.sum_of_squares +
                              (enlarged.runs - interval.spread.runs) * std::exp(mean_log_variance);
    // The interval is narrower than `log_distance` where that is exceeded by less than its level.
    if (chance_beyond(enlarged, posterior(enlarged), log_distance) <= enlarged.level)
      return runs - interval.sessions;
  }
  return std::nullopt;
}

}  // namespace weir::stats
