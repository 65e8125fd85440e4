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

// The variance between sessions that their centres show, beyond the centres' own errors.
double variance_between(std::span<const Centre> centres) {
  const double n = static_cast<double>(centres.size());
  double mean = 0, mean_error = 0;
  for (const Centre& centre : centres) {
    mean += centre.log_median / n;
    mean_error += centre.error * centre.error / n;
  }
  double squares = 0;
  for (const Centre& centre : centres) {
    squares += (centre.log_median - mean) * (centre.log_median - mean);
  }
  return std::max(0.0, squares / (n - 1) - mean_error);
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

  const double count = static_cast<double>(centres.size());
  const double assumed = policy.assumed_session_sd * policy.assumed_session_sd;
  StoredInterval answer;
  answer.sessions = centres.size();
  answer.assumed = centres.size() < k_sessions_needed;
  double between = assumed, reach = normal_quantile(1 - policy.level / 2);
  if (!answer.assumed) {
    const double freedom = count - 1 + k_assumed_weight;
    between = (k_assumed_weight * assumed + (count - 1) * variance_between(centres)) / freedom;
    reach = student_quantile(1 - policy.level / 2, freedom);
  }
  double mean = 0, errors = 0;
  for (const Centre& centre : centres) {
    mean += centre.log_median / count;
    errors += centre.error * centre.error / (count * count);
  }
  const double d = candidate->log_median - mean;
  const double spread =
      std::sqrt(between * (1 + 1 / count) + candidate->error * candidate->error + errors);
  answer.change = std::expm1(d);
  answer.low = std::expm1(d - reach * spread);
  answer.high = std::expm1(d + reach * spread);
  answer.stored = std::exp(mean);
  answer.current = std::exp(candidate->log_median);
  answer.between = std::sqrt(between);
  answer.words =
      fmt::format("{} stored session{}; sessions are taken to differ by {} ({})", centres.size(),
                  centres.size() == 1 ? "" : "s", percent(answer.between),
                  answer.assumed ? fmt::format("assumed until {} are stored", k_sessions_needed)
                                 : std::string("estimated from them"));
  return answer;
}

}  // namespace weir::stats
