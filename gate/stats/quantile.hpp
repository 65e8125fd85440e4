// Quantiles: of samples, of the normal distribution, of Student's t. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

namespace weir::stats {

// The middle value (the mean of the two middle ones); absent when empty. Order is ignored.
[[nodiscard]] std::optional<double> median(std::span<const double> samples);
// The same without a copy: reorders the samples.
[[nodiscard]] std::optional<double> median_in_place(std::span<double> samples);

// The value below which a share p (0…1) of the samples lies, interpolated linearly between order
// statistics (Hyndman and Fan's type 7, what R and numpy do by default); absent when empty.
[[nodiscard]] std::optional<double> quantile(std::span<const double> samples, double p);

// The same of values that are sorted already, one at least; the highest may be infinite.
[[nodiscard]] double quantile_of_sorted(std::span<const double> sorted, double p);

// z with P(Z <= z) = p for a standard normal Z. Requires 0 < p < 1. Wichura's algorithm AS 241
// (Applied Statistics 37, 1988): about 16 digits.
[[nodiscard]] double normal_quantile(double p);

// t with P(T <= t) = p for Student's T with `df` degrees of freedom. Requires 0 < p < 1 and
// df >= 1, not necessarily whole. Found by bisection over the distribution function, itself a
// continued fraction of the incomplete beta function: about 10 digits.
[[nodiscard]] double student_quantile(double p, double df);

// P(T <= t); see student_quantile.
[[nodiscard]] double student_cdf(double t, double df);

}  // namespace weir::stats
