// A throughput (or time) against stored sessions: an interval for the ratio that takes into account
// that the same program measured on another day is not equally fast.
//
// Model, on logarithms: what session k shows is its centre, c_k = mu + e_k + w_k, with e_k the
// session's own offset (sd `between`) and w_k the error of its median. The candidate is one more
// session with its own offset. So
//   change   d  = median(candidate) - mean of the c_k
//   variance v  = between^2 * (1 + 1/K) + se_candidate^2 + (sum of se_k^2) / K^2
//   interval      d -+ q * sqrt(v), shown as e^x - 1
// - se: standard error of a median by order statistics (Price and Bonett, Journal of Statistical
//   Computation and Simulation 68, 2001): no normality is assumed, two modes or a heavy tail widen
//   it. It needs two samples; below three, 5 % a process is the least that is believed.
// - between: below `k_sessions_needed` sessions the assumed value, and q is the normal quantile.
// From
//   then on it is estimated from the spread of the c_k less what their own errors explain, pooled
//   with the assumed value as if that came from `k_assumed_weight` more sessions (so that a few
//   sessions taken within one quiet hour do not claim too much), and q is Student's for K - 1 +
//   k_assumed_weight degrees of freedom.
// The interval covers the true ratio with probability 1 - level if offsets are normal. That is an
// assumption, not a guarantee, and each metric has its own: the words say so. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace weir::stats {

inline constexpr std::size_t k_sessions_needed = 5;
inline constexpr double k_assumed_weight = 4;
inline constexpr double k_assumed_process_sd = 0.05;

struct StoredPolicy {
  double level = 0.05;               // two-sided; 0 < level < 1
  double assumed_session_sd = 0.03;  // of the logarithm, between sessions
};

struct StoredInterval {
  double change = 0;  // relative: current / stored - 1
  double low = 0, high = 0;
  double stored = 0;    // the centre of the stored sessions, in the metric's unit
  double current = 0;   // the candidate's median
  double between = 0;   // sd between sessions that was used
  bool assumed = true;  // ... and whether it was assumed
  std::size_t sessions = 0;
  std::string words;  // "1 stored session; sessions are taken to differ by 3 % (assumed, …)"
};

// Samples are positive, one a process; sessions without any are passed over. Absent when either
// side has none, or when a sample is not a positive number.
[[nodiscard]] std::optional<StoredInterval> compare_with_stored(
    std::span<const std::vector<double>> sessions, std::span<const double> current,
    const StoredPolicy& policy);

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
