// Compares a throughput (or time) with stored runs: an interval for the ratio that takes into
// account that the same program is not equally fast on another day.
//
// Model, on logarithms: stored run k shows a centre c_k, the median of its processes. It is off by
// the machine's state on that day and by the median's own error; `s` is the sd of both together.
// The candidate is one more run, off by as much. So
//   change      d = median(candidate) - mean of the c_k
//   given s     v = s^2 * (1 + 1/K) + e^2
//   interval    d -+ r, where P(|N(0, v)| > r), averaged over the posterior of s, is `level`;
//               shown as e^x - 1
// - e^2: by how much the candidate's error variance exceeds that of every stored run: a run of
//   fewer or noisier processes says less. Errors of medians are by order statistics (Price and
//   Bonett, Journal of Statistical Computation and Simulation 68, 2001): no normality is assumed,
//   two modes or a heavy tail widen them. They need two samples; below three, 5 % a process is the
//   least that is believed.
// - The prior of s: before any two runs are stored, ln s is normal with sd `k_prior_spread` around
//   ln sqrt(m^2 + mean of the error variances). m is such that the root mean square of the days'
//   effects is `assumed_run_sd`. The K centres add their sum of squares, of K - 1 degrees of
//   freedom. On this scale the prior is worth one degree of freedom however far from the truth it
//   lies, so it fades. A conjugate prior on s^2 would not: its 3 % stay in the sum of squares that
//   quiet runs hardly add to. `s` is never believed to be below `k_min_run_sd`: printed digits
//   hide less, and the place where a linker puts a function moves as much.
// The interval covers the true ratio with probability 1 - level if runs are off normally and are
// independent. That is an assumption, not a guarantee: docs/evidence/decision-quality.md
// has the coverage on recorded runs. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weir::stats {

inline constexpr double k_prior_spread = 0.7;  // sd of ln s
inline constexpr double k_min_run_sd = 0.0025;
inline constexpr double k_assumed_process_sd = 0.05;

struct StoredPolicy {
  double level = 0.05;           // two-sided; 0 < level < 1
  double assumed_run_sd = 0.03;  // sd of the logarithm, from run to run; 0: runs do not differ
};

// The stored runs' information on s, and the candidate's error.
struct BetweenRuns {
  double runs = 0;            // K
  double sum_of_squares = 0;  // deviations of the centres from their mean
  double expected = 0;        // sqrt(m^2 + mean error variance): s without these runs
  double min_sd = 0;          // s is not below
  double excess = 0;          // e^2
  double level = 0.05;        // the interval's
};

struct StoredInterval {
  double change = 0;  // relative: current / stored - 1
  double low = 0, high = 0;
  double stored = 0;   // the centre of the stored runs, in the metric's unit
  double current = 0;  // the candidate's median
  double between = 0;  // s: the root mean square of its posterior
  std::size_t sessions = 0;
  BetweenRuns spread;
  std::string words;  // "1 stored run; runs are assumed to differ by 3 %"
};

// Samples are positive, one a process; runs without any are passed over. Absent when either
// side has none, or when a sample is not a positive number.
[[nodiscard]] std::optional<StoredInterval> compare_with_stored(
    std::span<const std::vector<double>> sessions, std::span<const double> current,
    const StoredPolicy& policy);

// About how many more stored runs would put `limit` (a relative change) outside the interval, if
// they are like the stored ones and the candidate stays where it is; at most `most` in all. Absent
// if they would not: the candidate is one run, and itself off by s.
[[nodiscard]] std::optional<std::size_t> more_stored_runs(const StoredInterval& interval,
                                                          double limit, std::size_t max_runs);

// Standard error of the median of `samples`, in their unit. Requires at least two.
[[nodiscard]] double median_standard_error(std::span<const double> samples);

// An interval for the median of `samples` alone (one process each), on the logarithmic scale and
// with the errors of stored.hpp: for limits that are plain numbers. Absent as above.
struct MedianInterval {
  double median = 0, low = 0, high = 0;
};
[[nodiscard]] std::optional<MedianInterval> median_interval(std::span<const double> samples,
                                                            double level);

}  // namespace weir::stats
